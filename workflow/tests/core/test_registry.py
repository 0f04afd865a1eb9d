"""The registry: what each cell and kernel is called, what refuses it, which mistakes are named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from projects import ROOT
from transpose_study import entries
from transpose_study.errors import StudyError
from transpose_study.measured_code import other_code
from transpose_study.records import read_yaml
from transpose_study.registry import Cell, Study

SHIPPED = ROOT / "kernels" / "transpose" / "variants.yaml"
LADDER = [
    "copy", "copy_looped", "copy_vectorized", "memcpy", "naive_read_coalesced", "naive_write_coalesced", "tiled", "tiled_padded",
    "tiled_xor", "tiled_rotated", "tiled_padded_unchecked",
]  # fmt: skip


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(SHIPPED)


def cell(study: Study, variant: str, rows: int, cols: int, **values: int) -> Cell:
    return Cell(study.variant(variant), values, {"rows": rows, "cols": cols})


def small(tmp_path: Path, **changes: Any) -> Path:
    """A registry of one kernel, with changes to it."""
    data: dict[str, Any] = {
        "study": "mine",
        "axes": {"rows": {}, "cols": {}, "block_rows": {"tag": "b"}},
        "group": {"axes": ["rows", "cols"], "name": "{rows}x{cols}"},
        "elements": "rows * cols",
        "bytes": "2 * rows * cols * itemsize",
        "variants": {"k": {"source": "k.cu", "takes": ["block_rows"], "block": [32, "block_rows"], "grid": ["ceil_div(cols, 32)"]}},
    }
    for key, value in changes.items():
        if key in data["variants"]["k"] or (key in entries.KEYS and key not in ("elements", "bytes", "arguments")) or key == "blocks":
            data["variants"]["k"][key] = value
        else:
            data[key] = value
    (tmp_path / "k.cu").write_text("int k;\n", encoding="utf-8")
    path = tmp_path / "variants.yaml"
    path.write_text(yaml.safe_dump({k: v for k, v in data.items() if v != "absent"}, sort_keys=False), encoding="utf-8")
    return path


def test_ladder_is_complete_and_in_order(study: Study) -> None:
    assert list(study.variants) == LADDER
    assert [v.name for v in study.variants.values() if not v.takes] == ["copy", "copy_vectorized", "memcpy"]


def test_names(study: Study) -> None:
    tiled = cell(study, "tiled_padded", 4096, 1024, block_rows=8)
    assert study.kernel_name(tiled) == "tiled_padded_b8" and study.group_name(tiled.group) == "4096x1024"
    assert study.key(tiled) == {"variant": "tiled_padded", "rows": 4096, "cols": 1024, "dtype": "float32", "block_rows": 8}
    assert study.key(cell(study, "copy", 1, 2)) == {"variant": "copy", "rows": 1, "cols": 2, "dtype": "float32", "block_rows": ""}


def test_geometry_covers_the_matrix_once(study: Study) -> None:
    """Tiled kernels take 32 x 32 elements a block, the naive ones one element a thread (kernels/README.md)."""
    tiled = study.geometry(cell(study, "tiled", 4095, 4097, block_rows=8))
    assert (tiled.grid, tiled.block) == ((129, 128, 1), (32, 8, 1))
    naive = study.geometry(cell(study, "naive_write_coalesced", 4095, 4097, block_rows=8))
    assert naive.grid == (128, 513, 1) and naive.blocks * naive.threads >= 4095 * 4097  # x along the output's columns
    vectors = study.geometry(cell(study, "copy_vectorized", 4096, 4096))
    assert vectors.blocks * vectors.threads * 16 == 4096 * 4096  # four float4 a thread


def test_bytes(study: Study) -> None:
    group = {"rows": 4096, "cols": 4096}
    assert study.matrix_bytes(group) == 4096 * 4096 * 4 and study.effective_bytes(group) == 2 * 4096 * 4096 * 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernels": {}}, "unknown key 'kernels'"),
        ({"elements": "absent"}, "lacks elements"),
        ({"variants": None}, "variants is no mapping"),
        ({"variants": ["k"]}, "variants is no mapping"),
        ({"axes": ["rows"]}, "axes is no mapping"),
        ({"axes": {"rows": 5, "cols": {}}}, "axis rows: is no mapping"),
        ({"axes": {"rows": {"tagg": "r"}, "cols": {}}}, "axis rows: unknown key 'tagg'; did you mean 'tag'?"),
        ({"group": {"axes": "rows", "name": "x"}}, "key group: has the two keys axes (a list) and name"),
        ({"group": {"axes": ["rows", "col"], "name": "x"}}, "unknown axis 'col'; did you mean 'cols'?"),
        ({"group": {"axes": ["rows"], "name": "{rows}x{cols}"}}, "cannot be filled in"),
        ({"edge_groups": [{"rows": 1}]}, "each entry of edge_groups has the keys rows, cols"),
        ({"baselines": {"copy": "kk"}}, "unknown variant 'kk'"),
        ({"noise_floor": {"block_rows": 8}}, "unknown variant 'None'"),
        ({"noise_floor": ["k"]}, "key noise_floor: is a mapping, or a list of mappings"),
        ({"noise_floor": [{"variant": "k", "block_row": 8}]}, "key noise_floor: k takes no axis 'block_row'"),
        ({"noise_floor": {"variant": "k"}, "takes": ["block_rows"]}, "key noise_floor: k takes block_rows too"),
        ({"variants": {"my-kernel": {}}}, "a variant's name is the kernel's name"),
        ({"variants": {"k": "k.cu"}}, "variant k: is no mapping"),
        ({"blocks": [32]}, "variant k: unknown key 'blocks'; did you mean 'block'?"),
        ({"source": "absent.cu"}, "variant k: the source absent.cu is not there"),
        ({"driver_copy": True}, "give one of source: FILE.cu, driver_copy: true, allocates: BYTES"),
        ({"computes": "transposed"}, "computes 'transposed'; did you mean 'transpose'?"),
        ({"takes": "block_rows"}, "takes is no list"),
        ({"takes": ["block_row"]}, "takes the unknown axis 'block_row'; did you mean 'block_rows'?"),
        ({"block": 32}, "block must be a list of one to three expressions"),
        ({"grid": [1, 1, 1, 1]}, "grid must be a list of one to three expressions"),
        ({"grid": ["ceil_div(columns, 32)"]}, "'columns' in the expression 'ceil_div(columns, 32)' is no axis of this variant; did you mean 'cols'?"),
        ({"macros": ["A=1"]}, "macros is no mapping"),
        ({"macros": {"A": "rowz"}}, "is no axis of this variant; did you mean 'rows'?"),
        ({"requires": [{"holds": "rows > 1"}]}, "each entry of requires has the two keys holds and why"),
        ({"requires": "rows > 1"}, "requires is no list"),
        ({"requires": [{"holds": "rows > 1", "why": 5}]}, "each entry of requires has the two keys holds and why, a text"),
        ({"driver_copy": "no"}, "driver_copy is no choice of true and false (got 'no')"),
        ({"source": ["k.cu"]}, "source is no text (got ['k.cu'])"),
        ({"takes": [["block_rows"]]}, "takes the unknown axis ['block_rows']"),
        ({"takes": ["block_rows", "rows"]}, "takes the axis rows of its group"),
        ({"takes": ["block_rows", "block_rows"]}, "takes the axis block_rows twice"),
        ({"block": [[32]]}, "[32] is no expression"),
        ({"block": [32.5]}, "32.5 is no expression"),
        ({"grid": ["rows +"]}, "'rows +' is no expression"),
        ({"shared_bytes": {"rows": 4}}, "{'rows': 4} is no expression"),
        ({"arguments": ["input", "output", ["rows"]]}, "['rows'] is no expression"),
        ({"arguments": ["input", "outputs"]}, "'outputs' in the expression 'outputs' is no axis of this variant"),
        ({"elements": "rowz"}, "'rowz' in the expression 'rowz' is no axis of this variant; did you mean 'rows'?"),
        ({"references": {"same": {"period": 1}}}, "has the two keys period and step"),
        ({"references": {"same": {"period": [1], "step": 0}}}, "reference same: [1] is no expression"),
        ({"references": {"same": {"period": "stride", "step": 0}}}, "'stride' in the expression 'stride' is no axis of this variant"),
        ({"computes": "i +"}, "computes 'i +'; "),
        ({"computes": "j + i"}, "'j' in the expression 'j + i' is no axis of this variant"),
        ({"observes": {"cycles": {}}}, "key observes.cycles: lacks unit"),
        ({"observes": {"cycles": {"unit": "cycles"}}}, "one of its arguments must be observed"),
        ({"observes": {"cycles": {"unit": "cycles"}, "bytes": {"unit": "bytes"}}}, "there is one observed[0], so name one quantity"),
        ({"edge_groups": [{"rows": 1, "cols": "wide"}]}, "cols is 'wide' in edge_groups, no whole number"),
        ({"axes": {"rows": {"itemsize": "four"}, "cols": {}}}, "axis rows: itemsize cannot be 'four'"),
        ({"axes": {"rows": {"itemsize": 0}, "cols": {}}}, "axis rows: itemsize is 0"),
        ({"group": {"axes": [["rows"]], "name": "x"}}, "unknown axis ['rows']"),
        ({"group": {"axes": ["rows", "cols"], "name": "{rows.size}"}}, "cannot be filled in"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    path = small(tmp_path, **changes)
    with pytest.raises(StudyError) as caught:
        Study(path)
    assert words in str(caught.value) and str(caught.value).startswith(str(path))


def test_each_group_times_a_cell_of_its_own_twice() -> None:
    """A group that has none of the registry's pairs gets the first, which it does not hold: then there is no noise floor, with that reason."""
    config = read_yaml(ROOT / "config/micro.yaml")
    micro = Study(ROOT / "kernels/micro/variants.yaml")
    for group in config["shapes"]:
        pair = micro.noise_pair(group["variants"])
        values = {k: v for k, v in pair.items() if k != "variant"}
        cells = micro.cells({"experiment": group["experiment"]}, group["variants"], config["axes"])
        assert [c for c in cells if c.variant.name == pair["variant"] and dict(c.kernel_values) == values], group["experiment"]
    assert micro.noise_pair(["bank_store"]) == micro.noise_pairs[0]
    assert micro.usual_value("lanes") == micro.usual_value("lanes", micro.variant("branch_long")) == 16 and micro.usual_value("pitch") is None


def test_axis_that_a_variant_does_not_take_is_none_of_its_names(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="'block_rows' in the expression 'block_rows' is no axis of this variant"):
        Study(small(tmp_path, takes=[], block=["block_rows"]))


def test_launches_beyond_the_limits_are_refused(tmp_path: Path) -> None:
    def refusal(rows: int = 64, cols: int = 64, **changes: Any) -> str:
        study = Study(small(tmp_path, **changes))
        return study.cell_refusal(Cell(study.variant("k"), {"block_rows": 8}, {"rows": rows, "cols": cols}), 2**30)

    assert refusal() == ""
    assert refusal(block=[32, 33]) == "a block of 1056 threads is above the limit of 1024"
    assert refusal(block=[1, 1, 65]) == "the block's z of 65 is outside 1..64"
    assert refusal(grid=[1, "rows * 1024"]) == "the grid's y of 65536 is outside 1..65535"
    assert refusal(grid=["cols - 64"]) == "the grid's x of 0 is outside 1..2147483647"
    assert refusal(rows=2**14, cols=2**14) == ""  # without an axis of a size, an element counts as one byte: 2 * 2**28 bytes
    assert refusal(rows=2**15, cols=2**15) == "input and output need 2.0 GiB, the device has 1.0 GiB for them"


def test_digests_see_code_and_nothing_else(tmp_path: Path) -> None:
    def digests(**changes: Any) -> tuple[str, str]:
        study = Study(small(tmp_path, **changes))
        return study.code_digest(study.variant("k")), study.launch_digest(study.variant("k"))

    code, launch = digests()
    assert digests(title="another") == (code, launch)
    assert digests(grid=["ceil_div( cols,32 )"]) == (code, launch)
    assert digests(grid=["ceil_div(cols, 16)"])[0] == code != digests(macros={"A": 1})[0]
    assert launch not in (digests(grid=["ceil_div(cols, 16)"])[1], digests(macros={"A": 1})[1], digests(computes="copy")[1])
    reason, other = ([{"holds": "rows > 1", "why": w}] for w in ("too small", "more than one row is needed"))
    assert digests(requires=reason) == digests(requires=other) != (code, launch)


def test_launch_digest_sees_what_a_name_means_and_what_is_passed(tmp_path: Path) -> None:
    """The shared parts of a registry decide a measurement as much as the entry that uses them."""

    def digest(**changes: Any) -> str:
        study = Study(small(tmp_path, **changes))
        return study.launch_digest(study.variant("k"))

    usual: dict[str, Any] = {"copy": {"period": 1, "step": 0}, "transpose": {"period": "rows", "step": "cols"}}
    assert digest() == digest(references=usual) == digest(arguments=["input", "output", "rows", "cols"])
    assert digest() != digest(references=usual | {"transpose": {"period": "cols", "step": "rows"}})
    assert digest(arguments=["output", "input", "rows", "cols"]) not in (digest(), digest(arguments=["input", "output", "cols", "rows"]))


@pytest.mark.parametrize(
    ("changes", "edited"),
    [
        ({}, set()),
        ({"title": "another", "elements": "rows*cols"}, set()),
        ({"elements": "rows * cols * 2"}, {"k"}),  # sizes that the whole registry shares decide a bandwidth as much as a kernel's own
        ({"bytes": "rows * cols * itemsize"}, {"k"}),
        ({"grid": [1]}, {"k"}),
    ],
)
def test_what_an_archive_measured_otherwise(tmp_path: Path, changes: dict[str, Any], edited: set[str]) -> None:
    (tmp_path / "then").mkdir()
    (tmp_path / "now" / "mine").mkdir(parents=True)
    then = small(tmp_path / "then").parent
    now = Study(small(tmp_path / "now" / "mine", **changes))
    archive = SimpleNamespace(
        names=dict.fromkeys(["sources/kernels/mine/variants.yaml", "sources/kernels/mine/k.cu"], ""),
        read=lambda name: (then / Path(name).name).read_bytes(),
    )
    assert other_code(now, archive) == edited


def test_integers_that_no_int_holds_are_no_launch(tmp_path: Path) -> None:
    study = Study(small(tmp_path, arguments=["input", "output", "rows * 2**20"]))
    refused = {rows: study.cell_refusal(cell(study, "k", rows, 32, block_rows=8)) for rows in (2**11 - 1, 2**11)}
    assert refused == {2**11 - 1: "", 2**11: "the argument 2147483648 has no room in the 32 bits of an int"}
