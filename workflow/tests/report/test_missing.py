"""What was not measured says so, says why, and leaves the rest of the report whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from report.conftest import REPLAYED, editions, markdown, sections
from synthetic import base_config, make_run, read_rows
from transpose_study.analysis import aggregate
from transpose_study.analysis.judge import judge
from transpose_study.experiment import Experiment
from transpose_study.records import write_csv

Make = Callable[..., Experiment]
DENIED = "no permission for counters (ERR_NVGPUCTRPERM): set NVreg_RestrictProfilingToAdminUsers=0"


def test_without_counters_every_cell_says_why_and_times_stay(make: Make, plain_text: str) -> None:
    text = sections(markdown(make("denied", no_value={"*": DENIED})))
    for section in ("3.1", "3.2", "3.3.1", "3.3.2", "3.3.3"):
        table = [line for line in text[section].splitlines() if line.startswith("| ")]
        assert any(re.search(r"\| – R\d+ \|", line) for line in table)
        assert DENIED in text[section]
        assert not any("| measured | 0 |" in line for line in table)
    assert "*Not measured here:* the " in text["3.1"] and "– not measured" in text["3.1"]
    assert DENIED in text["top"] or DENIED in text["Float"]
    plain = sections(plain_text)
    for section in ("5.1", "5.2", "5.3"):
        numbered = r"\bR\d+\b|Table \d+"  # reasons and tables are numbered as they come up
        assert re.sub(numbered, "", text[section]) == re.sub(numbered, "", plain[section])


def test_unjudged_claims_are_lacking_not_wrong(make: Make) -> None:
    experiment = make("unjudged")
    for name in ("claims", "claim_parts", "analysis"):
        experiment.paths.table(name).unlink()
    text = markdown(experiment)
    assert "the claims were not judged" in text and "this question was not analysed in this run" in text
    assert "## 7" not in text and "| `tiled_padded_b8` |" in text


def test_profiling_switched_off_is_the_reason(make: Make) -> None:
    text = markdown(make("unprofiled", config=base_config(profile={"enabled": False})))
    assert "Nsight Compute reads" not in text
    assert "*Not measured here:*" in text and "profil" in text


def test_a_wrong_kernel_is_named_and_the_others_stay(make: Make, plain_text: str) -> None:
    text = markdown(make("wrong", wrong={"tiled_padded_b8": "1 of 1 elements differ"}))
    parts = sections(text)
    assert "failed: `tiled_padded_b8`: wrong result" in parts["Float"]
    assert "expected 1.0, got 2.0" in parts["Float"]
    assert "*Not measured here:* the" in parts["3.3.1"]
    assert "| `tiled_padded_b4` |" in parts["5.1"]


def test_cells_that_cannot_run_stand_in_the_first_lines(plain_text: str) -> None:
    first = "\n".join(plain_text.splitlines()[:8])
    assert "**Live run** on Synthetic GPU, measured on 2026-01-01" in first
    assert "At 4095x4097, skipped: `tiled_padded_unchecked_b4`" in first
    assert "without bounds checks rows and cols must be multiples of 32" in first


def test_a_replay_says_so_first(make: Make) -> None:
    text = markdown(make("replay", archive=REPLAYED))
    line = next(line for line in text.splitlines() if line.startswith(">"))
    assert line == (
        "> **Replay** of the archive `synthetic-gpu-2026-01-01.crate.zip`, recorded on 2026-01-01 on Synthetic GPU. "
        "Nothing was measured on the machine that made this page."
    )


def test_what_an_archive_lacks_is_said_once(tmp_path: Path) -> None:
    """A variant that is in the registry and in no raw file of the replayed archive, at any shape."""
    experiment = make_run(tmp_path / "transpose", archive=REPLAYED)
    for path in (tmp_path / "transpose" / "raw").rglob("*.csv"):
        columns, rows = read_rows(path)
        write_csv(path, columns, [r for r in rows if r["variant"] != "tiled_xor"])
    aggregate(experiment)
    judge(experiment)
    texts = editions(experiment)
    banner = [line for line in texts[0].splitlines() if line.startswith("> ") and "`tiled_xor_b8`" in line]
    groups = list(experiment.groups)
    assert len(groups) > 1 and len(banner) == 1
    assert banner[0].startswith(f"> At {', '.join(groups[:-1])} and {groups[-1]}, not measured: `tiled_xor_b4`, `tiled_xor_b8`")
    assert banner[0].endswith(f": not in {REPLAYED}.")
    assert not re.search("not measured[^.|]*not measured:", texts[0], re.IGNORECASE)
    assert not re.search("未测量[^。|]*未测量：", texts[1]) and f"不在 {REPLAYED} 中" in texts[1]


def test_other_configurations_are_written_too(make: Make) -> None:
    """Another main shape, one cache mode, fewer variants, no published study: nothing of it stops the report."""
    config = base_config(
        shapes=[{"rows": 64, "cols": 96}], axes={"block_rows": [4, 32]}, variants=["copy", "tiled_padded", "tiled"],
        timing={"min_samples": 30, "cache_modes": ["cold"]},
    )  # fmt: skip
    text = markdown(make("other_shape", config=config))
    assert "the published 4096x4096 is not configured" in text
    assert "Only the cache mode cold is configured" in text
    unpublished = markdown(make("unpublished", config=base_config(report={"published": None})))
    assert "no published study is configured" in unpublished
    assert "| `tiled_padded_b8` |" in unpublished
