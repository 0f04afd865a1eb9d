"""The published RTX 5060 figures, predicted for compute capability 12.0 from the code alone."""

import pytest
import yaml
from launches import ROOT, launch_of
from transpose_study.simt.blocks import count_memory
from transpose_study.simt.limits import limits_of
from transpose_study.simt.occupancy import residency

PUBLISHED = yaml.safe_load((ROOT / "config" / "reference" / "rtx5060-laptop.yaml").read_text(encoding="utf-8"))
CELLS = {
    "copy": "copy",
    "naive": "naive_write_coalesced_b32",
    "tiled_padded_32x32": "tiled_padded_b32",
    "looped_padded_32x8": "tiled_padded_b8",
    "looped_padded_32x8_unchecked": "tiled_padded_unchecked_b8",
}


def launch(name):
    return launch_of(CELLS[name], PUBLISHED["protocol"]["rows"], PUBLISHED["protocol"]["cols"])


@pytest.mark.parametrize("name", ["copy", "naive", "tiled_padded_32x32", "looped_padded_32x8"])
def test_global_access(ladder, name):
    totals = count_memory(ladder(CELLS[name]).program, launch(name)).totals
    table = PUBLISHED["global_access"]
    for way in ("load", "store"):
        requests, sectors = totals[f"global_{way}_requests"], totals[f"global_{way}_sectors"]
        assert requests == table[f"{way}_requests"][name]
        assert sectors == table[f"{way}_sectors"][name]
        assert sectors / requests == table[f"{way}_sectors_per_request"][name]


@pytest.mark.parametrize("name", ["copy", "tiled_padded_32x32", "looped_padded_32x8_unchecked"])
def test_warp_instructions(ladder, name):
    """The checked loop and naive were made by the study's own compiler, whose code has another length."""
    assert ladder(CELLS[name]).instructions(launch(name)).total == PUBLISHED["counters"]["warp_instructions"][name]


@pytest.mark.parametrize("name", ["tiled_padded_32x32", "looped_padded_32x8"])
def test_occupancy_and_ideal_wavefronts(ladder, name):
    table, kernel, shape = PUBLISHED["occupancy"], ladder(CELLS[name]), launch(name)
    threads = shape.block[0] * shape.block[1]
    found = residency(limits_of("12.0"), threads, kernel.facts["registers"], kernel.facts["shared_bytes"], table["shared_config_bytes"][name])
    assert found.registers_per_thread == table["registers_per_thread"][name]
    assert found.warps_per_block == table["warps_per_block"][name]
    assert found.shared_allocated_bytes_per_block == table["shared_allocated_bytes_per_block"][name]
    assert found.limit_blocks == table["limit_blocks"][name]
    assert found.limit_registers == table["limit_registers"][name]
    assert found.limit_shared_memory == table["limit_shared_memory"][name]
    assert found.limit_warps == table["limit_warps"][name]
    assert found.resident_blocks == table["resident_blocks_per_sm"][name]
    assert round(found.theoretical_occupancy_pct, 2) == table["theoretical_occupancy_pct"][name]
    totals = count_memory(kernel.program, shape).totals
    for way in ("load", "store"):
        assert totals[f"shared_{way}_wavefronts_ideal"] == PUBLISHED["derived"]["ideal_shared_wavefronts_per_direction"]
        assert totals[f"shared_{way}_conflicts"] == 0
