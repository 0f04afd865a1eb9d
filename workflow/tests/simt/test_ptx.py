"""The PTX parser: what nvcc writes is understood; what is not is an error that names line and text."""

import pytest
from transpose_study.errors import StudyError
from transpose_study.simt import ptx
from transpose_study.simt.machine import Program
from transpose_study.simt.ptx import Imm, Mem, Reg, Sym, Vec

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
KERNEL = (
    HEAD
    + """.visible .entry k(.param .u64 .ptr .align 1 k_param_0, .param .u32 k_param_1)
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    .shared .align 4 .b8 tile[4224];
    ld.param.u64 %rd1, [k_param_0];   // a comment
    mov.u32 %r1, %tid.x;
    setp.ge.s32 %p1, %r1, 32;
    @!%p1 bra $L__BB0_2;
    st.global.v2.u32 [%rd1+-8], {%r1, %r2};
$L__BB0_2:
    mov.u32 %r3, tile; mov.f32 %r2, 0f3F800000;
    ret;
}
"""
)


def test_a_kernel_is_read_with_its_line_numbers():
    kernel = ptx.parse(KERNEL)["k"]
    assert [(p.name, p.size) for p in kernel.parameters] == [("k_param_0", 8), ("k_param_1", 4)]
    assert (kernel.arrays["tile"].size, kernel.arrays["tile"].space) == (4224, "shared")
    assert [i.line for i in kernel.instructions] == [10, 11, 12, 13, 14, 16, 16, 17]
    branch, store = kernel.instructions[3], kernel.instructions[4]
    assert (branch.guard, branch.guard_negated, branch.operands) == ("%p1", True, (Sym("$L__BB0_2"),))
    assert store.operands == (Mem(Reg("%rd1"), -8), Vec((Reg("%r1"), Reg("%r2"))))
    assert kernel.labels["$L__BB0_2"] == 5
    assert kernel.instructions[6].operands[1] == Imm(0x3F800000, is_float=True)
    assert kernel.register_type("%rd2") == "b64"


def test_initial_values_of_module_arrays():
    kernel = ptx.parse(HEAD + ".const .align 2 .b16 t[2] = {1, 258};\n.entry k()\n{\nret;\n}")["k"]
    assert kernel.arrays["t"].data == bytes([1, 0, 2, 1])  # little-endian


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (KERNEL[: KERNEL.index("ret;")], "ends inside kernel k"),
        (KERNEL[: KERNEL.index(", 32;")], "PTX line 12.*ends inside this statement"),
        (KERNEL[: KERNEL.index("{\n")], "ends inside this kernel's head"),
        (HEAD, "holds no kernel"),
        ("", "no .version line"),
        (KERNEL.replace("%r1, 32", "%r7a, 32"), "unknown register %r7a"),
        (KERNEL.replace("bra $L__BB0_2", "bra $L__BB0_3"), "unknown name .L__BB0_3.*\n.*hint: did you mean"),
        (KERNEL.replace("mov.u32 %r1", "#mov.u32 %r1"), "PTX line 11: instruction is not understood"),
        (HEAD + ".func f()\n{\nret;\n}\n", "PTX line 4: calls of device functions"),
    ],
)
def test_damage_is_named(text, message):
    with pytest.raises(StudyError, match=message):
        ptx.parse(text, source="k.ptx")


@pytest.mark.parametrize("unknown", ["wgmma.fence.sync.aligned;", "add.rz.f32 %r2, %r2, %r2;", "ld.global.v8.u32 %r2, [%rd1];"])
def test_unknown_instructions_are_refused_before_anything_runs(unknown):
    text = KERNEL.replace("    ret;", f"    {unknown}\n    ret;")
    with pytest.raises(StudyError, match="PTX line 17: unknown instruction") as error:
        Program(ptx.parse(text, source="k.ptx")["k"])
    assert unknown.rstrip(";") in str(error.value)
