"""counters.csv, opcodes.csv and occupancy.csv: means, derived quantities, and a reason for every missing value."""

from __future__ import annotations

import pytest
import synthetic
from synthetic import Model, base_config, make_run, small_config
from transpose_study.analysis import aggregate
from transpose_study.records import read_json, write_csv, write_json

CELL = {"variant": "tiled_padded", "rows": 4096, "cols": 4096, "block_rows": 8}
REQUESTS = 4096 * 4096 // 32  # one for each warp of 32 elements


def edit(experiment, change, group="4096x4096"):
    """Apply ``change`` to each raw counter row (None drops it) and aggregate anew."""
    path = experiment.paths.counters(group)
    columns, rows = synthetic.read_rows(path)
    write_csv(path, columns, [r for r in map(change, rows) if r is not None])
    aggregate(experiment)


def test_one_row_for_each_cell_and_quantity(make, table):
    experiment = make(base_config())
    counters = table(experiment, "counters")
    quantities = sum(len(b.quantities) for b in experiment.batches.values()) - 1 + 4  # without the opcodes, with what is derived
    assert len(counters) == 35 * 3 * quantities
    assert not counters.duplicated([*experiment.study.key_columns, "quantity"]).any()
    assert (counters["mean"].notna() | counters.reason.notna()).all()
    assert counters[counters["mean"].notna()].reason.isna().all()


def test_mean_and_spread_over_launches(make, table, one):
    experiment = make()
    values = {"0": "10", "1": "20", "2": "60"}

    def change(row):
        ours = row["variant"] == "tiled_padded" and row["block_rows"] == "8" and row["quantity"] == "dram_read_bytes"
        return row | {"value": values[row["launch"]]} if ours else row

    edit(experiment, change)
    row = one(table(experiment, "counters"), quantity="dram_read_bytes", **CELL)
    assert (row["mean"], row["min"], row["max"], row.launches) == (30, 10, 60, 3)
    assert row["std"] == pytest.approx(700**0.5)  # deviations -20, -10, 30: 1400 / (3 - 1)
    assert row.metric == "dram__bytes_read.sum" and row.unit == "bytes" and row.batch == "counters"


def test_derived_quantities_are_means_of_per_launch_ratios(make, table, one):
    experiment = make()
    sectors, requests = {"0": "40", "1": "30", "2": "80"}, {"0": "10", "1": "10", "2": "10"}

    def change(row):
        if row["variant"] != "tiled_padded" or row["block_rows"] != "8":
            return row
        if row["quantity"] == "global_load_sectors":
            return row | {"value": sectors[row["launch"]]}
        return row | {"value": requests[row["launch"]]} if row["quantity"] == "global_load_requests" else row

    edit(experiment, change)
    counters = table(experiment, "counters")
    row = one(counters, quantity="global_load_sectors_per_request", **CELL)
    assert (row["mean"], row["min"], row["max"], row.launches, row.metric) == (5, 3, 8, 3, "derived")
    # The model's unpadded tile takes 32 wavefronts a load and one a store, where one each would do.
    tiled = CELL | {"variant": "tiled"}
    assert one(counters, quantity="shared_conflicts_exact", **tiled)["mean"] == 31 * REQUESTS
    assert one(counters, quantity="shared_conflicts_exact", **CELL)["mean"] == 0
    assert one(counters, quantity="resident_blocks_per_sm", **CELL)["mean"] == 6  # 48 warps of an SM / 8 warps of a block
    assert one(counters, quantity="global_load_sectors_per_request", **(CELL | {"variant": "naive_write_coalesced"}))["mean"] == 32


def test_a_ratio_over_nothing_is_empty_and_says_why(make, table, one):
    counters = table(make(model=Model(counters={"tiled_padded_b8:global_load_requests": 0})), "counters")
    row = one(counters, quantity="global_load_sectors_per_request", **CELL)
    assert row["mean"] != row["mean"] and row.reason == "global_load_requests is 0"


def test_a_metric_the_chip_does_not_know_costs_only_its_own_rows(make, table, one):
    experiment = make(model=Model(no_value={"limit_warps": "unknown to this chip and version of ncu"}))
    counters = table(experiment, "counters")
    measured = counters[(counters.variant != "memcpy") & (counters["mean"].isna()) & (counters.rows == 4096)]
    assert set(measured.quantity) == {"limit_warps", "resident_blocks_per_sm"}  # the second is the least of four limits
    assert set(measured.reason) == {"unknown to this chip and version of ncu"}
    row = one(table(experiment, "occupancy"), **CELL)
    assert row.reason == "unknown to this chip and version of ncu" and row.limit_blocks == 24


def test_some_launches_without_a_value(make, table, one):
    experiment = make()
    gone = {"value": "", "reason": "the report holds no number for it"}
    edit(experiment, lambda r: r | gone if r["quantity"] == "l2_hit_pct" and r["launch"] == "2" else r)
    row = one(table(experiment, "counters"), quantity="l2_hit_pct", **CELL)
    assert row.launches == 2 and row["mean"] == row["mean"]
    assert row.reason == "1 of 3 launches without a value: the report holds no number for it"


def test_a_value_without_number_or_reason_is_missing_not_zero(make, table, one):
    experiment = make()
    edit(experiment, lambda r: r | {"value": ""} if r["quantity"] == "l2_hit_pct" else r)
    row = one(table(experiment, "counters"), quantity="l2_hit_pct", **CELL)
    assert row["mean"] != row["mean"] and row.reason == "the raw file gives neither a value nor a reason"


def test_no_counters_at_all(make, table):
    why = "ncu may not read the counters (ERR_NVGPUCTRPERM)"
    experiment = make(model=Model(no_value={"*": why}))
    counters = table(experiment, "counters")
    assert counters["mean"].isna().all() and (counters.launches == 0).all()
    ours = counters[(counters.variant == "tiled_padded")]
    assert set(ours.reason) == {why}
    occupancy = table(experiment, "occupancy")
    row = occupancy[(occupancy.variant == "tiled_padded") & (occupancy.block_rows == 8)].iloc[0]
    assert (row.registers_per_thread, row.warps_per_block, row.reason) == (26, 8, why)  # ptxas still knows the registers
    assert set(table(experiment, "opcodes").reason.dropna()) >= {why}


def test_profiling_switched_off(make, table):
    experiment = make(small_config(profile={"enabled": False}))
    assert not experiment.paths.counters("4096x4096").exists()
    counters = table(experiment, "counters")
    assert set(counters[counters.rows == 4096].reason) == {"profiling is switched off in the configuration"}
    assert table(experiment, "timings").median_us.notna().any()


def test_a_batch_that_is_not_configured(make, table, one):
    counters = table(make(small_config(profile={"batches": ["counters"]})), "counters")
    row = one(counters, quantity="duration_ns", **CELL)
    assert row.reason == "the metric batch duration is not configured (profile.batches)"


def test_driver_copies_have_a_reason_and_no_counters(make, table):
    experiment = make()
    counters = table(experiment, "counters")
    assert set(counters[counters.variant == "memcpy"].reason) == {"a copy by the driver has no kernel to profile"}


def test_opcodes(make, table, one):
    opcodes = table(make(), "opcodes")
    # The model: per warp 1 LDG, 1 STG, 6 IMAD, 1 EXIT; one LDS and STS a request; 16,384 blocks of 8 warps.
    row = one(opcodes, opcode="IMAD", **CELL)
    assert (row.instructions, row.instructions_per_warp, row.launches) == (6 * 16384 * 8, 6, 1)
    assert one(opcodes, opcode="LDS", **CELL).instructions_per_warp == REQUESTS / (16384 * 8) == 4
    memcpy = opcodes[(opcodes.variant == "memcpy") & (opcodes.rows == 4096)]
    assert len(memcpy) == 1 and memcpy.opcode.isna().all() and memcpy.reason.notna().all()


def test_occupancy_row(make, table, one):
    row = one(table(make(), "occupancy"), **CELL)
    expected = {
        "threads_per_block": 256, "warps_per_block": 8, "registers_per_thread": 26, "registers_per_thread_measured": 26, "shared_bytes": 4224,
        "spill_bytes": 0, "shared_config_bytes": 65536, "shared_allocated_bytes_per_block": 5248, "limit_blocks": 24,
        "limit_registers": 65536 // (26 * 256), "limit_shared_memory": 12, "limit_warps": 6, "resident_blocks_per_sm": 6,
        "theoretical_occupancy_pct": 100,
    }  # fmt: skip
    assert {k: row[k] for k in expected} == expected


def test_archived_run_without_counters_names_the_archive(tmp_path, table, one):
    experiment = make_run(tmp_path / "run", small_config(), archive="results/archive/some.crate.zip")
    experiment.paths.counters("4096x4096").unlink()
    aggregate(experiment)
    row = one(table(experiment, "counters"), quantity="duration_ns", **CELL)
    assert row.reason == "not measured: not in results/archive/some.crate.zip"


class TestStatus:
    """Why a cell has no figures, in every table that lists it."""

    def reasons(self, experiment, table, **wanted):
        found = {}
        for name in ("timings", "counters", "occupancy", "opcodes", "block_rows"):
            frame = table(experiment, name)
            for column, value in wanted.items():
                frame = frame[frame[column] == value]
            assert len(frame), name
            found[name] = set(frame.reason)
        return found

    def test_wrong_at_an_edge_shape(self, make, table):
        experiment = make(model=Model(wrong={"tiled_b8": "3 of 1 elements differ"}))
        found = self.reasons(experiment, table, variant="tiled", block_rows=8, rows=4096)
        reason = "wrong result at 1x1: 3 of 1 elements differ; first wrong element at row 0, col 0: expected 1.0, got 2.0"
        assert set.union(*found.values()) == {reason}
        timings = table(experiment, "timings")
        assert set(timings[(timings.variant == "tiled") & (timings.block_rows == 8)].status) == {"failed"}
        assert set(timings[(timings.variant == "tiled") & (timings.block_rows == 16) & (timings.rows == 4096)].status) == {"ok"}

    def test_samples_of_a_wrong_kernel_are_not_used(self, make, table):
        experiment = make()
        columns, rows = synthetic.read_rows(experiment.paths.check)
        for row in rows:
            if (row["variant"], row["block_rows"], row["rows"]) == ("tiled", "8", "31"):
                row |= {"status": "wrong", "row": "2", "col": "3", "expected": "1", "got": "9"}
        write_csv(experiment.paths.check, columns, rows)
        aggregate(experiment)
        timings = table(experiment, "timings")
        ours = timings[(timings.variant == "tiled") & (timings.block_rows == 8)]
        assert set(ours.status) == {"failed"} and ours.median_us.isna().all()
        assert set(ours.reason) == {"wrong result at 31x33: first wrong element at row 2, col 3: expected 1, got 9"}
        counters = table(experiment, "counters")
        assert counters[(counters.variant == "tiled") & (counters.block_rows == 8)]["mean"].isna().all()

    def test_a_kernel_that_does_not_compile(self, make, table):
        words = 'tiled.cu(12): error: identifier "tilee" is undefined\n\n1 error detected'
        experiment = make(model=Model(build_failed={"tiled_b4": words}))
        found = self.reasons(experiment, table, variant="tiled", block_rows=4, rows=4096)
        assert set.union(*found.values()) == {'tiled.cu(12): error: identifier "tilee" is undefined / 1 error detected'}

    def test_the_build_record_speaks_where_the_check_is_silent(self, make, table):
        experiment = make(model=Model(skipped={"tiled_b4": "x"}))
        columns, rows = synthetic.read_rows(experiment.paths.check)
        write_csv(experiment.paths.check, columns, [r for r in rows if (r["variant"], r["block_rows"]) != ("tiled", "4")])
        path = experiment.paths.kernel("120", "tiled_b4", "json")
        write_json(path, read_json(path) | {"status": "failed", "reason": "ptxas: too much shared data"})
        aggregate(experiment)
        found = self.reasons(experiment, table, variant="tiled", block_rows=4, rows=4096)
        assert set.union(*found.values()) == {"ptxas: too much shared data"}

    def test_no_samples_and_no_reason_anywhere(self, make, table):
        experiment = make()
        path = experiment.paths.timing("4096x4096")
        columns, rows = synthetic.read_rows(path)
        write_csv(path, columns, [r for r in rows if (r["variant"], r["block_rows"], r["cache_mode"]) != ("tiled", "4", "cold")])
        aggregate(experiment)
        timings = table(experiment, "timings")
        ours = timings[(timings.variant == "tiled") & (timings.block_rows == 4) & (timings.rows == 4096)].set_index("cache_mode")
        assert ours.loc["hot"].status == "ok"
        assert tuple(ours.loc["cold"][["status", "reason"]]) == ("not measured", "no sample in raw/timing/4096x4096.csv")

    def test_a_cell_the_archive_does_not_have(self, tmp_path, table):
        experiment = make_run(tmp_path / "run", small_config(), archive="a.crate.zip")
        for path in (experiment.paths.timing("4096x4096"), experiment.paths.check):
            columns, rows = synthetic.read_rows(path)
            write_csv(path, columns, [r for r in rows if r["variant"] != "tiled"])
        aggregate(experiment)
        timings = table(experiment, "timings")
        ours = timings[(timings.variant == "tiled") & (timings.rows == 4096)]
        assert set(zip(ours.status, ours.reason, strict=True)) == {("not measured", "not measured: not in a.crate.zip")}

    def test_a_shape_above_the_device_memory(self, make, table):
        config = small_config(shapes=[{"rows": 4096, "cols": 4096}, {"rows": 65536, "cols": 65536}])
        timings = table(make(config), "timings")
        ours = timings[timings.rows == 65536]
        assert set(ours.status) == {"skipped"}
        assert "input and output need 32.0 GiB, the device has 8.0 GiB for them" in set(ours.reason)
