"""Warp instructions from machine code: hand counts, every architecture, and what cannot be told."""

import pytest
from launches import LADDER, STUDY, cell_of, launch_of, plain
from transpose_study import sass
from transpose_study.errors import StudyError
from transpose_study.simt import cubin
from transpose_study.simt.sassmachine import count_instructions

ARCHITECTURES = ["75", "80", "86", "89", "90", "100", "120"]


@pytest.mark.parametrize(("name", "per_warp"), [("copy", 16), ("tiled_padded_b32", 47), ("tiled_padded_unchecked_b8", 76)])
def test_published_instructions_a_warp_on_12_0(ladder, name, per_warp):
    issued = ladder(name).instructions(launch_of(name, 4096, 4096))
    assert issued.total == per_warp * issued.warps


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_straight_line_code_counts_every_instruction_up_to_exit(ladder, architecture):
    """The unchecked kernel has no branch: its count is the number of lines before the last EXIT, each once a warp."""
    kernel = ladder("tiled_padded_unchecked_b8", architecture)
    opcodes = [i.opcode for i in kernel.code.instructions]
    assert "BRA" not in opcodes[: opcodes.index("EXIT")]
    issued = kernel.instructions(launch_of("tiled_padded_unchecked_b8", 1024, 1024))
    assert issued.total == (opcodes.index("EXIT") + 1) * issued.warps
    assert issued.warps == 1024 * 1024 // 32 // 4
    assert issued.by_opcode["LDG"] == issued.by_opcode["STG"] == 4 * issued.warps


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", ["copy_vectorized", "naive_read_coalesced_b8", "tiled_padded_b4", "tiled_xor_b32", "tiled_rotated_b8"])
def test_classes_agree_with_every_block_on_every_architecture(ladder, architecture, name):
    launch = launch_of(name, 97, 131)
    kernel = ladder(name, architecture)
    assert kernel.instructions(launch) == kernel.instructions(launch, each_block=True)


@pytest.mark.parametrize("architecture", ["90", "120"])
def test_issued_memory_instructions_agree_with_the_accesses_of_the_ptx(ladder, architecture):
    """What the machine code issues with an active lane is what the PTX machine requests: two ways to one number."""
    from transpose_study.simt.blocks import count_memory

    for name in sorted(LADDER)[::2]:
        shape = (128, 96) if STUDY.cell_refusal(cell_of(LADDER[name], 100, 75)) else (100, 75)
        kernel, launch = ladder(name, architecture), launch_of(name, *shape)
        totals, issued = count_memory(kernel.program, launch).totals, kernel.instructions(launch)
        assert issued.effective["LDG"] == totals["global_load_requests"]
        assert issued.effective["STG"] == totals["global_store_requests"]
        assert issued.effective["LDS"] == totals.get("shared_load_instructions", 0)
        assert issued.effective["STS"] == totals.get("shared_store_instructions", 0)
        assert issued.by_opcode["BAR"] == totals.get("barriers", 0)
        assert issued.warps == totals["warps"]


# A branch that diverges in the middle of the warp. Offsets are 16 bytes apart; BSSY names where the lanes join again.
DIVERGENT = """	.target	sm_90
	.section	.text.k,"ax",@progbits
k:
.text.k:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   ISETP.GE.AND P0, PT, R0, c[0x0][0x210], PT ;
        /*0020*/                   BSSY B0, `(.L_x_0) ;
        /*0030*/               @P0 BRA `(.L_x_1) ;
        /*0040*/                   FADD R1, R1, R1 ;
        /*0050*/                   FADD R1, R1, R1 ;
.L_x_1:
        /*0060*/                   BSYNC B0 ;
.L_x_0:
        /*0070*/               @P0 EXIT ;
        /*0080*/                   NOP ;
        /*0090*/                   EXIT ;
"""


@pytest.mark.parametrize(
    ("threshold", "expected"),
    [
        (0, 4 + 1 + 1),  # every lane jumps: 4 instructions, BSYNC, EXIT
        (32, 4 + 2 + 1 + 1 + 2),  # none jumps: both FADD, BSYNC, the predicated EXIT still issues, NOP, EXIT
        (7, 4 + 2 + 2 + 1 + 2),  # BSYNC is issued by each part of the warp, what follows once
    ],
)
def test_divergent_lanes_issue_both_ways_and_join(threshold, expected):
    code = sass.parse(DIVERGENT)["k"]
    issued = count_instructions(code, plain((5,), (32,), numbers=(threshold,)), [4], 0x210)
    assert issued.total == 5 * expected


def test_a_warp_without_active_lanes_issues_nothing():
    code = sass.parse(DIVERGENT)["k"]
    issued = count_instructions(code, plain((1,), (64,), numbers=(32,)), [4], 0x210)
    assert issued.total == (4 + 2 + 1 + 1 + 2) + (4 + 1 + 1)  # lanes 32..63 all jump and leave


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ISETP.GE.AND P0, PT, R0, c", "FSETP.GE.AND P0, PT, R0, c", "offset 0x0030: control flow depends on loaded data, or on FSETP"),
        ("S2R R0, SR_TID.X", "LDG.E R0, desc[UR4][R2.64]", "control flow depends on loaded data"),
        ("S2R R0, SR_TID.X", "S2R R0, SR_CLOCKLO", "control flow depends on loaded data"),
        ("BSYNC B0 ;", "BRX R0 ;", "control flow of 'BRX R0' is not understood"),
        ("`(.L_x_1)", "`(.L_x_7)", "target of .* is not in this kernel"),
    ],
)
def test_what_cannot_be_told_is_said(old, new, message):
    code = sass.parse(DIVERGENT.replace(old, new))["k"]
    with pytest.raises(StudyError, match=message):
        count_instructions(code, plain((1,), (32,), numbers=(7,)), [4], 0x210)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no .target"),
        (DIVERGENT[: DIVERGENT.index("@P0 EXIT")], "has no EXIT"),
        (DIVERGENT[: DIVERGENT.index("	.section")], "holds no kernel"),
    ],
)
def test_damaged_disassembly(text, message):
    with pytest.raises(StudyError, match=message):
        sass.parse(text)


@pytest.mark.parametrize(("architecture", "base"), [("75", 0x160), ("86", 0x160), ("90", 0x210), ("120", 0x380)])
def test_parameters_lie_where_the_cubin_says(ladder, architecture, base):
    """The disassembly of copy reads its parameters at these offsets."""
    kernel = ladder("copy", architecture)
    assert kernel.base == base
    read = {a.number for i in kernel.code.instructions for a in i.args if a.kind == "const"}
    assert read & {base, base + 8, base + 16}


@pytest.mark.parametrize("content", [b"", b"no cubin", b"\x7fELF\x02" + bytes(80)])
def test_a_damaged_cubin_is_an_error(tmp_path, content):
    path = tmp_path / "k.cubin"
    path.write_bytes(content)
    with pytest.raises(StudyError, match="is no cubin with a kernel k"):
        cubin.parameter_base(path, "k")
