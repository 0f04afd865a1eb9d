"""``predict`` on recorded runs and on kernels outside of the ladder: exactness, independence of the measurement, faults."""

import json
import re
import shutil
import zipfile
from types import SimpleNamespace

import pandas as pd
import pytest
from launches import BLOCK_ROWS, ROOT
from other_kernels import FAULTY, OTHERS, faulty
from transpose_study.analysis.aggregation import write_tables
from transpose_study.cli import main
from transpose_study.experiment import Experiment
from transpose_study.gpu import toolchain
from transpose_study.gpu.compile import build_kernels
from transpose_study.paths import RunPaths
from transpose_study.progress import Log
from transpose_study.records import read_csv
from transpose_study.registry import Study
from transpose_study.simt.predict import _pictured, predict_run

RECORDED = [ROOT / "workflow/tests/material/nvidia-h200-quick.crate.zip", *sorted((ROOT / "results/archive").rglob("*.crate.zip"))]

# What depends on code, geometry and limits alone and is counted without noise: equal in every cell.
EXACT = {
    "barriers", "check_failed", "global_load_requests", "global_load_sectors", "global_load_sectors_per_request", "global_store_requests",
    "limit_blocks", "limit_registers", "limit_shared_memory", "limit_warps", "registers_per_thread", "resident_blocks_per_sm",
    "shared_allocated_bytes_per_block", "shared_conflicts_exact", "shared_load_instructions", "shared_store_instructions",
    "shared_wavefronts_exact", "shared_wavefronts_ideal", "theoretical_occupancy_pct", "warp_instructions", "warps_launched",
}  # fmt: skip


LATER = {"global_lines", "threads_per_instruction"}  # exact as well; the first runs did not read them


@pytest.fixture(scope="module", params=RECORDED, ids=lambda p: f"{p.parent.name}/{p.name}")
def run(request, tmp_path_factory):
    """A recorded run, predicted and aggregated anew from its own build outputs and raw data."""
    folder = tmp_path_factory.mktemp("run")
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(folder)
    for name in ("predicted.csv", "predicted_check.csv"):
        (folder / name).unlink(missing_ok=True)
    experiment = Experiment.from_run(folder, ROOT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        predict_run(json.loads(experiment.predict_settings()), folder, Log())
        write_tables(experiment)
    return experiment


@pytest.fixture(scope="module")
def predictions(run):
    return pd.read_csv(run.paths.table("predictions"))


def test_every_count_is_predicted_to_the_last_unit(run, predictions):
    rows = predictions[predictions.quantity.isin(EXACT | LATER)]
    assert set(rows.quantity) == EXACT | LATER
    measured = rows.dropna(subset=["measured"])
    off = measured[measured.predicted != measured.measured]
    assert off.empty, off.to_string()
    assert measured.note.str.startswith("exact").all()
    checked = {tuple(r[k] for k in run.study.key_columns) for r in read_csv(run.paths.check) if r["status"] == "ok"}  # on the GPU
    cells = [c for g in run.groups for c in run.cells(g) if tuple(map(str, run.study.key(c).values())) in checked and not c.variant.no_kernel]
    counts = measured.groupby("quantity").size()
    assert (counts[sorted(EXACT)] == len(cells)).all()
    assert set(counts.reindex(sorted(LATER)).fillna(0)) <= {0, len(cells)}


def test_store_sectors_are_exact_where_a_request_touches_four_and_close_elsewhere(predictions):
    """The hardware's counter of store sectors varies from launch to launch when requests touch other numbers of sectors."""
    rows = predictions[predictions.quantity == "global_store_sectors"].dropna(subset=["measured"])
    requests = predictions[predictions.quantity == "global_store_requests"].dropna(subset=["measured"])
    four = rows.predicted.to_numpy() % requests.predicted.to_numpy() == 0
    four &= rows.predicted.to_numpy() // requests.predicted.to_numpy() != 32
    assert four.any() and (rows.predicted[four] == rows.measured[four]).all()
    off = (rows.measured / rows.predicted - 1).abs()
    assert off.quantile(0.95) <= 0.005 and off.max() <= 0.01


def test_strided_store_sectors_are_within_half_a_per_cent_over_the_launches_of_the_archived_runs():
    """One launch at 1024 x 1024 strays by 0.6 % (standard deviation) to either side, so single means do not tell: all launches do."""
    values = []
    for path in sorted((ROOT / "results/archive").rglob("nvidia-h200-2*.crate.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if re.fullmatch(r"raw/counters/\d+x\d+\.csv", name):
                    table = pd.read_csv(archive.open(name), dtype={"value": float}, low_memory=False)
                    values.append(table[(table.quantity == "global_store_sectors") & (table.variant == "naive_read_coalesced")])
    launches = pd.concat(values)
    predicted = launches.rows * ((launches.cols + 31) // 32) * 32  # a sector a lane
    even = launches.cols % 32 == 0
    launches, predicted = launches[even], predicted[even]
    off = (launches.value / predicted - 1).groupby([launches.rows, launches.cols, launches.block_rows])
    assert off.size().min() >= 2 and off.ngroups == 7 * 4
    assert off.mean().abs().max() <= 0.005


def test_opcode_mix_is_exact(run):
    mix = pd.read_csv(run.paths.table("instructions"))
    assert len(mix) > 100 and (mix.predicted == mix.measured).all() and (mix.note == "exact").all()
    if run.study.name != "transpose":
        return
    one = mix[(mix.variant == "tiled_padded") & (mix.block_rows == 8) & (mix.rows == 4096) & (mix.cols == 4096)].set_index("opcode")
    assert one.predicted_per_warp["LDG"] == 4 and one.predicted_per_warp["BAR"] == 1


def test_compulsory_traffic_is_a_matrix_each_way(run, predictions):
    if run.study.name != "transpose":
        pytest.skip("matrices are the transpose study's")
    rows = predictions[predictions.quantity.isin(["compulsory_dram_read_bytes", "compulsory_dram_write_bytes"])]
    matrix = rows.rows * rows["cols"] * 4
    assert ((rows.predicted >= matrix) & (rows.predicted < matrix + 32)).all()


def test_nothing_measured_is_read(run, tmp_path, monkeypatch):
    """Without raw/, tables and environment, predicted.csv and predicted_check.csv have the same bytes."""
    monkeypatch.chdir(ROOT)
    shutil.copytree(run.paths.folder / "build", tmp_path / "build")
    predict_run(json.loads(run.predict_settings()), tmp_path, Log())
    for name in ("predicted.csv", "predicted_check.csv"):
        assert (tmp_path / name).read_bytes() == (run.paths.folder / name).read_bytes()


# -- kernels outside of the ladder, good and bad ---------------------------------------------------------------------------

UNKNOWN = """extern "C" __global__ void unknown_instruction(const float* in, float* out, int rows, int cols) {
    asm volatile("discard.global.L2 [%0], 128;" :: "l"(out));
}"""
STRANGE = """extern "C" __global__ void strange_parameters(float* out, int rows) { out[threadIdx.x] = rows; }"""
GRIDS = {
    "diagonal": '["ceil_div(cols, 32)", "ceil_div(rows, 32)"]',
    "tile16_swizzled": '["ceil_div(cols, 16)", "ceil_div(rows, 16)"]',
    "grid_stride": "[7]",
    "odd_even_blocks": '["ceil_div(cols, 32)", "ceil_div(rows, 4)"]',
    "warp_columns": '["ceil_div(cols, 4)", "ceil_div(rows, 32)"]',
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with kernels of a user's own beside one of the ladder, built for 9.0; (folder, run, settings)."""
    root = tmp_path_factory.mktemp("project")
    kernels = root / "kernels" / "transpose"
    shutil.copytree(ROOT / "kernels" / "transpose", kernels)
    registry = kernels / "variants.yaml"
    entries = ""
    for name, (source, block, _) in OTHERS.items():
        (kernels / f"{name}.cu").write_text(source)
        entries += f"  {name}: {{title: {name}, source: {name}.cu, block: {list(block)}, grid: {GRIDS[name]}}}\n"
    extra = {n: faulty(n) for n in FAULTY} | {"unknown_instruction": UNKNOWN, "strange_parameters": STRANGE}
    for name, source in extra.items():
        (kernels / f"{name}.cu").write_text(source)
        entries += f"  {name}: {{title: {name}, source: {name}.cu, block: [32, 8], grid: {GRIDS['diagonal']}}}\n"
    registry.write_text(registry.read_text() + entries)
    study = Study(registry)
    names = ["tiled_padded", *OTHERS, *extra]
    run = root / "results" / "mine" / "transpose"
    axes = {"block_rows": [8]}
    for name in names:
        build_kernels(study, study.kernels(study.variant(name), axes), RunPaths(run), "90", flags=[], toolchain=toolchain.find(), log=Log())
    group = {"rows": 96, "cols": 64}
    settings = {
        "study": "transpose", "groups": [{"values": group, "variants": names}], "edge_groups": [{"rows": 64, "cols": 32}],
        "axes": axes, "architecture": "90", "compute_capability": "9.0", "peak_gb_s": 4800,
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        predict_run(settings, run, Log())
    return root, run, settings


def test_kernels_outside_of_the_ladder_are_predicted(project):
    table = pd.read_csv(project[1] / "predicted.csv")
    value = table.pivot_table(index="variant", columns="quantity", values="value")
    requests = 96 * 64 // 32
    for name in OTHERS:
        assert value.global_load_requests[name] == requests
        assert value.warp_instructions[name] > 0
        assert value.registers_per_thread[name] >= 16
    assert value.global_load_sectors["diagonal"] == 4 * requests
    assert value.global_store_sectors["grid_stride"] == 32 * requests  # each lane of a warp writes into another row
    assert value.global_load_sectors["warp_columns"] == 32 * requests
    assert value.shared_conflicts_exact["tile16_swizzled"] == 0
    check = pd.read_csv(project[1] / "predicted_check.csv")
    assert (check[check.variant.isin([*OTHERS, "tiled_padded"])].status == "ok").all()


@pytest.mark.parametrize("name", sorted(FAULTY))
def test_faulty_kernels_fail_the_check_and_the_others_go_on(project, name):
    rows = pd.read_csv(project[1] / "predicted_check.csv", dtype=str)
    rows = rows[(rows.variant == name) & (rows.rows == "64")]
    (row,) = rows.to_dict("records")
    assert row["status"] == ("wrong" if name == "wrong_element" else "failed")
    assert f"kernel {name}, PTX line {row['ptx_line']}, block ({row['block'].replace(' ', ', ')})" in row["reason"]
    assert re.search(FAULTY[name][3], row["reason"])


def test_what_is_not_understood_is_named(project):
    table = pd.read_csv(project[1] / "predicted.csv")
    reasons = table[(table.variant == "unknown_instruction") & (table.quantity == "global_load_requests")].reason.iloc[0]
    assert re.search(r"unknown_instruction.ptx, kernel unknown_instruction, PTX line \d+: unknown instruction 'discard.global.L2", reasons)
    reasons = table[(table.variant == "strange_parameters") & (table.quantity == "warp_instructions")].reason.iloc[0]
    assert "takes the parameters (u64, u32)" in reasons and "the registry says that it takes input, output, rows, cols" in reasons
    limits = table[(table.variant == "unknown_instruction") & (table.quantity == "limit_warps")].value.iloc[0]
    assert limits == 8  # what needs no PTX is predicted all the same


def test_check_without_a_gpu_ends_with_status_1_for_a_fault(project, monkeypatch, capsys):
    root, run, settings = project
    monkeypatch.chdir(root)
    plain = {k: settings[k] for k in ("study", "edge_groups", "axes", "architecture")} | {"group": {"rows": 96, "cols": 64}}
    good = ["check", "--emulate", "--run", str(run), "--settings", json.dumps(plain | {"variants": {"tiled_padded": ""}})]
    assert main(good) == 0
    assert "2 ok" in capsys.readouterr().err
    bad = [*good[:-1], json.dumps(plain | {"variants": {"tiled_padded": "", "no_barrier": ""}})]
    assert main(bad) == 1
    assert re.search(r"no_barrier at 64x32: failed: kernel no_barrier, PTX line \d+, block \(0, 0, 0\)", capsys.readouterr().err)


def test_a_damaged_ptx_costs_its_own_cells_only(project, tmp_path, monkeypatch):
    root, run, settings = project
    shutil.copytree(run / "build", tmp_path / "build")
    path = tmp_path / "build" / "sm_90" / "diagonal.ptx"
    path.write_text(path.read_text()[:1200])
    monkeypatch.chdir(root)
    predict_run(settings | {"groups": [{"values": {"rows": 96, "cols": 64}, "variants": ["diagonal", "tiled_padded"]}]}, tmp_path, Log())
    table = pd.read_csv(tmp_path / "predicted.csv")
    assert table[(table.variant == "diagonal") & (table.quantity == "global_load_requests")].reason.iloc[0].count("truncated?") == 1
    assert table[(table.variant == "tiled_padded") & (table.quantity == "global_load_requests")].value.iloc[0] == 192


def test_the_registry_holds_no_expected_counts():
    """Its entries say how to compile and launch a kernel; nothing in them could be a prediction."""
    import yaml

    entries = yaml.safe_load((ROOT / "kernels/transpose/variants.yaml").read_text(encoding="utf-8"))["variants"]
    allowed = {"title", "origin", "source", "computes", "takes", "block", "grid", "macros", "requires", "driver_copy"}
    assert all(set(e) <= allowed for e in entries.values())
    assert BLOCK_ROWS["block_rows"] == [4, 8, 16, 32]


def test_a_kernel_is_pictured_at_the_last_cell_of_the_first_group_that_it_can_run_in() -> None:
    """The widest tile, since axes go from small to large; 32 columns of `early` cannot run in the first group, nor anything of `late`."""
    cells = [SimpleNamespace(kernel=k, group={"at": g}, tile=t) for g in ("first", "second") for k in ("early", "late") for t in (8, 16, 32)]
    refused = {("early", "first", 32), *(("late", "first", t) for t in (8, 16, 32))}
    plan = SimpleNamespace(
        study=SimpleNamespace(kernel_name=lambda c: c.kernel),
        refusal=lambda c: ("skipped", "too wide") if (c.kernel, c.group["at"], c.tile) in refused else ("", ""),
    )
    found = {c.kernel: (c.group["at"], c.tile) for c in _pictured(plan, cells)}
    assert found == {"early": ("first", 16), "late": ("second", 32)}
