"""The report of the study of banks and warps: every figure follows the tables, words follow verdicts, what is missing says why."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from report import micro_tables
from report.conftest import sections
from transpose_study.records import read_csv, write_csv
from transpose_study.report import figure_names, write
from transpose_study.report.texts import ENGLISH, Language
from transpose_study.report.values import Results
from transpose_study.report.verdicts import DOES_NOT_HOLD, HOLDS, NOT_MEASURED, _compared
from transpose_study.report.wording import number

CONFIG = yaml.safe_load((Path(__file__).parents[3] / "config/micro.yaml").read_text(encoding="utf-8"))

FIGURE = re.compile(r"(?<![\w.])\d[\d\u202f]*(?:\.\d+)?(?!\w)")
NAMED = r"`[^`]*`|\*\*(?:Table|Figure)[^*]*\*\*|tile\[\d+\]\[\d+\]|(?:Table|Figure)\u00a0\d+|95 %|2026-01-01|float4"
DENIED = "no permission for counters"


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """Write a run's Markdown from made-up tables: English, Chinese; each kind of run once."""
    known: dict[str, list[str]] = {}

    def make(**changes: object) -> list[str]:
        if repr(changes) not in known:
            folder = tmp_path_factory.mktemp("micro") / "micro"
            experiment = micro_tables.make(folder, languages=("en", "zh"), **changes)
            write(experiment, ["md"])
            known[repr(changes)] = [Path(experiment.paths.report("micro", s)).read_text(encoding="utf-8") for s in ("md", "zh.md")]
        return known[repr(changes)]

    return make


def prose(text: str) -> str:
    """Running text: no tables, captions, headings, banner, names."""
    lines = [t for t in text.splitlines() if t and not t.startswith(("|", "#", "**", "!", ">"))]
    return re.sub(NAMED, "", "\n".join(lines))


def test_no_figure_of_the_text_survives_a_change_of_all_measurements(texts: Callable[..., list[str]]) -> None:
    one, other = (prose(texts(seed=s, verdict=v)[0]) for s, v in ((1, HOLDS), (2, DOES_NOT_HOLD)))
    kept = set(FIGURE.findall(one)) & set(FIGURE.findall(other))
    values = {v for axis in micro_tables.FEW.values() for v in axis} | {8, 16, 24, 64}  # values of axes: widths, lanes, paths, threads
    counted = {len(micro_tables.CLAIMS), 0, 20, 1, 2, 5984}  # claims, block shapes, allocations, figures that are equal in both
    assert {k: re.findall(rf".{{40}}{k}.{{10}}", other) for k in kept - {number(v) for v in values | counted}} == {}


def test_every_table_changes_but_what_the_axes_say(texts: Callable[..., list[str]]) -> None:
    rows = [[t for t in texts(seed=s, verdict=HOLDS)[0].splitlines() if t.startswith("|")] for s in (1, 3)]
    same = [a for a, b in zip(*rows, strict=True) if a == b and re.search(r"\d\.\d", a)]
    assert len(rows[0]) > 100 and same == []


PLAIN, OTHER, REFUSED = {"seed": 1, "verdict": HOLDS}, {"seed": 2, "verdict": DOES_NOT_HOLD}, {"seed": 1, "denied": DENIED, "verdict": NOT_MEASURED}


@pytest.mark.parametrize("run", [PLAIN, OTHER, REFUSED])
def test_both_editions_hold_the_same_figures_in_the_same_order(texts: Callable[..., list[str]], run: dict[str, object]) -> None:
    names = r"(?<![A-Za-z])L[12]|float4|\]\([^)]*\)|`figures/[^`]*`"
    english, chinese = (re.findall(r"\d+(?:[\u202f.,]\d+)*", re.sub(names, "", t)) for t in texts(**run))
    assert len(english) > 400
    assert english == chinese


OPPOSITES = [
    ("1", "A conflict makes the access of a single warp longer in proportion", "A conflict does not make the access"),
    ("1", "conflicts again.", "brings no conflict back by itself"),
    ("2", "The swizzle of words cannot serve", "The swizzle of words can serve"),
    ("3", "The cost peaks when half", "The cost has no peak"),
    ("4", "That halves the speed.", "That does not halve the speed"),
    ("5", "a kernel with half the occupancy can be the faster one", "No kernel with half the occupancy"),
    ("7", "is a fair summary", "is no fair summary"),
]


@pytest.mark.parametrize(("section", "here", "there"), OPPOSITES)
def test_words_follow_the_verdicts(texts: Callable[..., list[str]], section: str, here: str, there: str) -> None:
    one, other = (sections(texts(seed=s, verdict=v)[0])[section] for s, v in ((1, HOLDS), (2, DOES_NOT_HOLD)))
    assert here in one and there not in one
    assert there in other and here not in other


def test_without_counters_times_and_predictions_stay(texts: Callable[..., list[str]]) -> None:
    plain, denied = (sections(texts(**run)[0]) for run in (PLAIN, REFUSED))
    assert DENIED in denied["Banks,"] and "*Not measured here:*" in denied["1"]
    loads = [next(row.split("|") for row in part["1"].splitlines() if row.startswith("| 16 |")) for part in (plain, denied)]
    assert loads[0][7:] == loads[1][7:], "times"
    assert [f"**{f.strip()}**" for f in loads[0][2:4]] == [f.strip() for f in loads[1][2:4]], "wavefronts, then predicted and so in bold"
    assert loads[0][4:6] == loads[1][4:6], "cycles, which the kernels read themselves"
    assert re.search(r"\| – R\d+ \|", denied["4"]) and not re.search(r"\| – R\d+ \|", plain["4"])
    assert "no prediction has a measured counterpart" in denied["9"].lower()


def test_unjudged_and_partly_configured_runs_are_written(tmp_path: Path) -> None:
    shapes = [{"experiment": "divergence", "variants": ["branch_long"]}, {"experiment": "banks", "variants": ["bank_load"]}]
    experiment = micro_tables.make(tmp_path / "micro", 1, shapes=shapes, variants=["branch_long", "bank_load"])
    write(experiment, ["md"])
    text = Path(experiment.paths.report("micro", "md")).read_text(encoding="utf-8")
    assert "the claims were not judged" in text and "is not part of this run's configuration" in text
    assert "## 8" not in text and text.count("../figures/") == len(figure_names("micro", experiment.root))


def test_a_figure_that_is_not_as_predicted_is_counted_and_named(tmp_path: Path) -> None:
    """It stays among those that must be equal, so the count says that one is missing."""
    experiment = micro_tables.make(tmp_path / "micro", 1)
    path = experiment.paths.table("predictions")
    rows = read_csv(path)
    number_of = sum(bool(r["predicted"] and r["measured"]) for r in rows)
    wrong = next(r for r in rows if r["quantity"] == "warp_instructions" and r["measured"])
    wrong |= {"measured": str(float(wrong["measured"]) + 1), "note": "off by 0.1%"}
    write_csv(path, list(rows[0]), rows)
    write(experiment, ["md"])
    text = Path(experiment.paths.report("micro", "md")).read_text(encoding="utf-8").replace(" ", "")
    assert f"of{number_of}figuresthatmustbeequal,{number_of - 1}are." in text
    assert f"Of{number_of}figuresthatmustbeequal,1arenot:Warpinstructions." in text and "notequal" in text


@pytest.mark.parametrize("variants", [["bank_load"], ["allocation"], ["warp_lanes", "copy_offset"]])
def test_a_part_of_the_variants_is_written_too(tmp_path: Path, variants: list[str]) -> None:
    """Experiments of which none is left are no part of the run; one that is an allocation alone was never timed."""
    experiment = micro_tables.make(tmp_path / "micro", 1, variants=variants)
    write(experiment, ["md"])
    text = Path(experiment.paths.report("micro", "md")).read_text(encoding="utf-8")
    assert sorted(experiment.groups) == sorted({g["experiment"] for g in CONFIG["shapes"] if set(g["variants"]) & set(variants)})
    assert "nan" not in text.split() and "None" not in text.split()


def test_the_noise_floor_meant_is_that_of_the_first_pair(tmp_path: Path) -> None:
    """Without a group, the noise floor is that of the experiment which has the registry's first A/A pair."""
    results = Results(micro_tables.make(tmp_path / "micro", 1))
    assert results.experiment.main_group == "banks"
    own, alignment, banks = (results.noise_floor("hot", g).number for g in (None, "alignment", "banks"))
    assert own == alignment != banks


@pytest.mark.parametrize(
    ("condition", "threshold", "shown"),
    [
        ("cycles_per_access[a] / cycles_per_access[b] = 2 ± 0.2", "= 2 ± 0.2", "latency"),
        ("warp_instructions[a] > warp_instructions[b]", "> 7", "latency: `warp_instructions`"),
        ("occupancy[a] <= occupancy[b] / 2 and speedup[a, b] > 1.01", "> 1.01", "latency: `speedup`"),
    ],
)
def test_a_comparison_is_named_by_its_words_and_by_the_quantity_that_decided(condition: str, threshold: str, shown: str) -> None:
    row = {"condition": condition, "threshold": threshold, "says": "latency", "says_zh": ""}
    assert Language(ENGLISH).render(_compared(row, named=True)) == shown
