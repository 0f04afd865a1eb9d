"""Bytes in flight read from recorded machine code: sm_90, nvcc 13.0.88, nvdisasm 13.2.86, shortened to what matters."""

from __future__ import annotations

import synthetic
from judge.device import answers, verdicts
from transpose_study.analysis import aggregate
from transpose_study.analysis.loads import load_bytes_in_flight
from transpose_study.records import read_csv

HEAD = '\t.target\tsm_90\n\n\t.section\t.text.{name},"ax",@progbits\n{name}:\n.text.{name}:\n'
# tiled_padded, BLOCK_ROWS 4: the first load is waited for before the other seven are issued.
WAITS_ONCE = """
        /*0160*/              @!P1 LDG.E.CONSTANT R21, desc[UR4][R12.64] ;
        /*0330*/              @!P1 STS [R4+0x210], R21 ;
        /*0480*/              @!P5 LDG.E.CONSTANT R17, desc[UR4][R16.64] ;
        /*04d0*/              @!P4 LDG.E.CONSTANT R13, desc[UR4][R12.64] ;
        /*0590*/              @!P3 LDG.E.CONSTANT R19, desc[UR4][R18.64] ;
        /*05d0*/              @!P2 LDG.E.CONSTANT R21, desc[UR4][R20.64] ;
        /*06d0*/              @!P1 LDG.E.CONSTANT R15, desc[UR4][R14.64] ;
        /*0740*/              @!P0 LDG.E.CONSTANT R11, desc[UR4][R6.64] ;
        /*0750*/              @!P6 LDG.E.CONSTANT R9, desc[UR4][R8.64] ;
        /*0820*/              @!P5 STS [R4+0x630], R17 ;
        /*0830*/              @!P4 STS [R4+0x840], R13 ;
        /*0bd0*/                   EXIT ;
"""
WIDE = """
        /*0110*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0120*/                   LDG.E.128.CONSTANT R8, desc[UR4][R2.64+0x1000] ;
        /*0130*/                   STG.E.128 desc[UR4][R16.64], R4 ;
        /*0140*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64+0x2000] ;
        /*0150*/                   STG.E.128 desc[UR4][R16.64+0x1000], R8 ;
        /*0160*/                   EXIT ;
"""


def written(path, name, body):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD.format(name=name) + body, encoding="utf-8")
    return path


def test_loads_before_the_first_use(tmp_path):
    assert load_bytes_in_flight(written(tmp_path / "a.sass", "tiled_padded", WAITS_ONCE), "tiled_padded") == 7 * 4
    assert load_bytes_in_flight(written(tmp_path / "b.sass", "copy_vectorized", WIDE), "copy_vectorized") == 2 * 16


def test_no_machine_code(tmp_path):
    assert load_bytes_in_flight(tmp_path / "none.sass", "copy") is None
    assert load_bytes_in_flight(written(tmp_path / "a.sass", "copy", WIDE), "another") is None


def test_the_tables_take_it_from_the_build_folder(tmp_path):
    experiment = synthetic.make_run(tmp_path / "run", synthetic.small_config())
    written(experiment.paths.kernel(experiment.architecture, "tiled_padded_b4", "sass"), "tiled_padded", WAITS_ONCE)
    aggregate(experiment)
    verdicts(experiment)
    found = {(r["variant"], r["block_rows"]): r["load_bytes_in_flight"] for r in read_csv(experiment.paths.table("occupancy"))}
    assert found["tiled_padded", "4"] == "28" and found["tiled_padded", "8"] == ""
    rows = answers(experiment, "bytes-in-flight", "bytes_in_flight_resident")
    (value,) = {float(r["value"]) for r in rows if (r["variant"], r["block_rows"]) == ("tiled_padded", "4")}
    assert value == 28 * 128 * 12  # bytes of a thread x threads of a block x resident blocks (48 warps of 4; shared memory allows 12)


def test_a_hot_median_that_ncu_does_not_see_is_flagged(tmp_path):
    counters = {"copy:duration_ns": 300_000.0}  # the model's copy takes 134.2 MB / 306.9 GB/s = 437 us
    experiment = synthetic.make_run(tmp_path / "run", synthetic.small_config(), synthetic.Model(counters=counters))
    aggregate(experiment)
    flags = {(r["variant"], r["rows"], r["cache_mode"]): r["flags"] for r in read_csv(experiment.paths.table("timings")) if not r["block_rows"]}
    assert "off_ncu (+4" in flags["copy", "4096", "hot"] and "off_ncu" not in flags["copy", "4096", "cold"]
    assert "off_ncu" not in flags["copy_vectorized", "4096", "hot"]
