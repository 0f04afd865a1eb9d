"""Arithmetic and warp instructions of PTX, lane by lane against Python's own arithmetic."""

import math
import struct

import numpy as np
import pytest
from launches import contents, fill, plain
from transpose_study.simt import ptx
from transpose_study.simt.blocks import run_grid
from transpose_study.simt.machine import Program

A = [0, 1, 2, 5, 7, 31, 32, 33, 100, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE, 0x12345678, 0xDEADBEEF, 0x00FF00FF] * 2
B = [3, 1, 0xFFFFFFFF, 2, 32, 40, 4, 0x80000000, 7, 9, 0xFFFFFFFF, 1, 0xFFFFFFFD, 16, 12, 8, *range(1, 17)]
C = [(17 * i * i + 3 * i) & 0xFFFFFFFF for i in range(32)]


def s32(x):
    return (x & 0xFFFFFFFF) - ((x & 0x80000000) << 1)


def towards_zero(a, b):
    return int(math.copysign(abs(a) // abs(b), a * b)) if a else 0


def bits32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def f32(x):
    return struct.unpack("<f", struct.pack("<I", x))[0]


def run(body: str, *, registers: str = "", inputs=(A, B, C), bits: int = 32) -> list[int]:
    """Run ``body`` on one warp: %a, %b, %c hold the inputs, %d is stored (32 or 64 bits)."""
    text = f""".version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 k_in, .param .u64 k_out)
{{
    .reg .pred %p, %q;
    .reg .b16 %h<4>;
    .reg .b32 %a, %b, %c, %t<4>, %lane, %d32;
    .reg .b64 %in, %out, %w<4>, %at, %d64;
    {registers}
    ld.param.u64 %in, [k_in];
    ld.param.u64 %out, [k_out];
    mov.u32 %lane, %tid.x;
    mul.wide.u32 %at, %lane, 4;
    add.s64 %in, %in, %at;
    ld.global.u32 %a, [%in];
    ld.global.u32 %b, [%in+128];
    ld.global.u32 %c, [%in+256];
    mul.wide.u32 %at, %lane, {bits // 8};
    add.s64 %out, %out, %at;
    {body.replace("%d", f"%d{bits}")}
    st.global.u{bits} [%out], %d{bits};
    ret;
}}
"""
    launch = plain((1,), (32,), 384, 4 * bits)
    fill(launch.arguments[0], np.array(inputs, np.uint32))
    fill(launch.arguments[1], np.zeros(4 * bits, np.uint8))
    run_grid(Program(ptx.parse(text)["k"]), launch, lambda batch: [], tracked=True)
    return [int(v) for v in contents(launch.arguments[1], np.uint32 if bits == 32 else np.uint64)]


INTEGER = {
    "add.s32 %d, %a, %b;": lambda a, b, c: a + b,
    "sub.s32 %d, %a, %b;": lambda a, b, c: a - b,
    "mul.lo.s32 %d, %a, %b;": lambda a, b, c: a * b,
    "mul.hi.u32 %d, %a, %b;": lambda a, b, c: a * b >> 32,
    "mul.hi.s32 %d, %a, %b;": lambda a, b, c: s32(a) * s32(b) >> 32,
    "mad.lo.s32 %d, %a, %b, %c;": lambda a, b, c: a * b + c,
    "div.s32 %d, %a, %b;": lambda a, b, c: towards_zero(s32(a), s32(b)),
    "rem.s32 %d, %a, %b;": lambda a, b, c: s32(a) - s32(b) * towards_zero(s32(a), s32(b)),
    "div.u32 %d, %a, %b;": lambda a, b, c: a // b,
    "rem.u32 %d, %a, %b;": lambda a, b, c: a % b,
    "min.s32 %d, %a, %b;": lambda a, b, c: min(s32(a), s32(b)),
    "max.u32 %d, %a, %b;": lambda a, b, c: max(a, b),
    "abs.s32 %d, %a;": lambda a, b, c: abs(s32(a)),
    "neg.s32 %d, %a;": lambda a, b, c: -a,
    "and.b32 %d, %a, %b;": lambda a, b, c: a & b,
    "or.b32 %d, %a, %b;": lambda a, b, c: a | b,
    "xor.b32 %d, %a, %b;": lambda a, b, c: a ^ b,
    "not.b32 %d, %a;": lambda a, b, c: ~a,
    "cnot.b32 %d, %a;": lambda a, b, c: int(a == 0),
    "shl.b32 %d, %a, %b;": lambda a, b, c: a << b if b < 32 else 0,
    "shr.u32 %d, %a, %b;": lambda a, b, c: a >> b if b < 32 else 0,
    "shr.s32 %d, %a, %b;": lambda a, b, c: s32(a) >> min(b, 31),
    "shf.l.wrap.b32 %d, %a, %b, %c;": lambda a, b, c: ((b << 32 | a) << (c & 31)) >> 32,
    "shf.r.wrap.b32 %d, %a, %b, %c;": lambda a, b, c: (b << 32 | a) >> (c & 31),
    "shf.r.clamp.b32 %d, %a, %b, %c;": lambda a, b, c: (b << 32 | a) >> min(c, 32),
    "lop3.b32 %d, %a, %b, %c, 0x96;": lambda a, b, c: a ^ b ^ c,
    "lop3.b32 %d, %a, %b, %c, 0xE8;": lambda a, b, c: a & b | a & c | b & c,
    "lop3.b32 %d, %a, %b, 0, 0x30;": lambda a, b, c: a & ~b,
    "lop3.b32 %d, %a, %b, %c, 0x1D;": lambda a, b, c: sum((0x1D >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)),
    "popc.b32 %d, %a;": lambda a, b, c: bin(a).count("1"),
    "clz.b32 %d, %a;": lambda a, b, c: 32 - a.bit_length(),
    "brev.b32 %d, %a;": lambda a, b, c: int(f"{a:032b}"[::-1], 2),
    "bfind.u32 %d, %a;": lambda a, b, c: a.bit_length() - 1,
    "bfe.u32 %d, %a, 4, 9;": lambda a, b, c: a >> 4 & 0x1FF,
    "bfe.s32 %d, %a, 4, 9;": lambda a, b, c: (a >> 4 & 0x1FF) - ((a >> 12 & 1) << 9),
    "bfi.b32 %d, %a, %b, 8, 12;": lambda a, b, c: b & ~(0xFFF << 8) | (a & 0xFFF) << 8,
    "prmt.b32 %d, %a, %b, 0x2157;": lambda a, b, c: sum(((b << 32 | a) >> 8 * n & 0xFF) << 8 * i for i, n in enumerate((7, 5, 1, 2))),
    "setp.lt.s32 %p, %a, %b; selp.b32 %d, %a, %b, %p;": lambda a, b, c: min(s32(a), s32(b)),
    "setp.hi.u32 %p, %a, %b; selp.u32 %d, 1, 0, %p;": lambda a, b, c: int(a > b),
    "setp.ne.s32 %q, %c, 3; setp.lt.and.u32 %p, %a, %b, !%q; selp.u32 %d, 1, 0, %p;": lambda a, b, c: int(a < b and c == 3),
    "setp.eq.u32 %p|%q, %a, %b; selp.u32 %d, 1, 0, %q;": lambda a, b, c: int(a != b),
    "set.ge.u32.s32 %d, %a, %b;": lambda a, b, c: -int(s32(a) >= s32(b)),
    "cvt.s32.s8 %d, %a;": lambda a, b, c: (a & 0xFF) - ((a & 0x80) << 1),
    "cvt.u32.u16 %d, %a;": lambda a, b, c: a & 0xFFFF,
    "cvt.sat.s16.s32 %h1, %a; cvt.s32.s16 %d, %h1;": lambda a, b, c: max(-0x8000, min(0x7FFF, s32(a))),
    "mov.b32 {%h1, %h2}, %a; mov.b32 %d, {%h2, %h1};": lambda a, b, c: a >> 16 | (a & 0xFFFF) << 16,
    "add.cc.u32 %t1, %a, %b; addc.u32 %d, %c, 0;": lambda a, b, c: c + (a + b >> 32),
    "@%p bra SKIP; mov.u32 %d, %a; SKIP: setp.gt.u32 %p, %b, 7; @%p mov.u32 %d, 5;": lambda a, b, c: 5 if b > 7 else a,
}


@pytest.mark.parametrize("body", INTEGER)
def test_integers(body):
    start = "setp.ne.u32 %p, %a, %a;" if "SKIP" in body else ""
    got = run(start + body)
    want = [INTEGER[body](a, b, c) & 0xFFFFFFFF for a, b, c in zip(A, B, C, strict=True)]
    assert got == want


WIDE = {
    "mul.wide.s32 %d, %a, %b;": lambda a, b, c: s32(a) * s32(b),
    "mul.wide.u32 %d, %a, %b;": lambda a, b, c: a * b,
    "cvt.s64.s32 %w1, %c; mad.wide.u32 %d, %a, %b, %w1;": lambda a, b, c: a * b + s32(c),
    "mov.b64 %w1, {%a, %b}; mov.b64 %w2, {%c, %a}; mul.hi.u64 %d, %w1, %w2;": lambda a, b, c: (b << 32 | a) * (a << 32 | c) >> 64,
    "mov.b64 %w1, {%a, %b}; cvt.u64.u32 %w2, %c; add.s64 %w2, %w2, 1; rem.u64 %d, %w1, %w2;": lambda a, b, c: (
        (b << 32 | a) % (c + 1) if b < 0x80000000 else None
    ),
    "mov.b64 %w1, {%a, %b}; shr.s64 %d, %w1, 20;": lambda a, b, c: (s32(b) << 32 | a) >> 20,
    "mov.b64 %w1, {%a, %b}; shl.b64 %w1, %w1, 3; xor.b64 %d, %w1, 21;": lambda a, b, c: (b << 32 | a) << 3 ^ 21,
    "cvt.u64.u32 %w1, %a; cvta.to.global.u64 %w2, %w1; mov.b64 {%t1, %t2}, %w2; cvt.u64.u32 %d, %t1;": lambda a, b, c: a,
}


@pytest.mark.parametrize("body", WIDE)
def test_wide_integers(body):
    got = run(body, bits=64)
    for value, a, b, c in zip(got, A, B, C, strict=True):
        want = WIDE[body](a, b, c)
        assert want is None or value == want & 0xFFFFFFFFFFFFFFFF


X = [0.0, 1.0, -1.0, 0.5, 3.25, -7.75, 1e30, -1e-30, 2.5, -2.5, 100.7, -0.0, 1e-40, 65504.0, 123456.789, math.pi] * 2
Y = [1.0, -2.0, 0.25, 8.0, -0.125, 3.0, 1e-20, 7.0, 0.5, -4.0, 1e10, 2.0, 1.0, 1.5, -9.5, 0.3, *[float(i) - 7.5 for i in range(16)]]
FLOATS = {
    "add.f32 %d, %a, %b;": lambda x, y: np.float32(x) + np.float32(y),
    "sub.rn.f32 %d, %a, %b;": lambda x, y: np.float32(x) - np.float32(y),
    "mul.f32 %d, %a, %b;": lambda x, y: np.float32(x) * np.float32(y),
    "div.rn.f32 %d, %a, %b;": lambda x, y: np.float32(x) / np.float32(y),
    "fma.rn.f32 %d, %a, %b, %b;": lambda x, y: np.float32(float(np.float32(x)) * float(np.float32(y)) + float(np.float32(y))),
    "max.f32 %d, %a, %b;": lambda x, y: np.fmax(np.float32(x), np.float32(y)),
    "abs.f32 %d, %a;": lambda x, y: abs(np.float32(x)),
    "neg.f32 %d, %a;": lambda x, y: -np.float32(x),
    "copysign.f32 %d, %b, %a;": lambda x, y: np.copysign(np.float32(x), np.float32(y)),
    "sqrt.rn.f32 %t1, %a; max.f32 %d, %t1, 0f00000000;": lambda x, y: np.sqrt(np.float32(x)) if x > 0 else np.float32(0),
    "add.ftz.f32 %d, %a, 0f00000000;": lambda x, y: np.float32(x) if abs(x) >= 2.0**-126 else np.float32(0),
    "cvt.rmi.f32.f32 %d, %a;": lambda x, y: np.floor(np.float32(x)),
    "cvt.f64.f32 %w1, %a; add.f64 %w1, %w1, %w1; cvt.rn.f32.f64 %d, %w1;": lambda x, y: np.float32(2) * np.float32(x),
    "cvt.rn.f16.f32 %h1, %a; cvt.f32.f16 %d, %h1;": lambda x, y: np.float32(np.float16(np.float32(x))),
    "setp.ltu.f32 %p, %a, %b; selp.f32 %d, %a, %b, %p;": lambda x, y: np.float32(min(x, y)),
}


@pytest.mark.parametrize("body", FLOATS)
def test_floats(body):
    got = run(body, inputs=([bits32(x) for x in X], [bits32(y) for y in Y], C))
    with np.errstate(all="ignore"):
        assert [f32(v) for v in got] == [float(FLOATS[body](x, y)) for x, y in zip(X, Y, strict=True)]


def test_conversion_to_integers_rounds_and_saturates():
    got = run("cvt.rni.s32.f32 %d, %a;", inputs=([bits32(x) for x in [*X[:15], math.nan] * 2], B, C))
    want = [0, 1, -1, 0, 3, -8, 2**31 - 1, 0, 2, -2, 101, 0, 0, 65504, 123457, 0] * 2
    assert [s32(v) for v in got] == want


SHUFFLES = {
    "shfl.sync.bfly.b32 %d, %a, 5, 31, -1;": lambda i: A[i ^ 5],
    "shfl.sync.up.b32 %d, %a, 3, 0, -1;": lambda i: A[i - 3] if i >= 3 else A[i],
    "shfl.sync.down.b32 %d, %a, 4, 0x1807, -1;": lambda i: A[i + 4] if i % 8 < 4 else A[i],
    "shfl.sync.idx.b32 %d, %a, 2, 0x181f, -1;": lambda i: A[i // 8 * 8 + 2],
    "shfl.sync.up.b32 %d|%p, %a, 3, 0, -1; selp.u32 %d, 1, 0, %p;": lambda i: int(i >= 3),
    "setp.gt.u32 %p, %a, 100; vote.sync.ballot.b32 %d, %p, -1;": lambda i: sum((A[j] > 100) << j for j in range(32)),
    "setp.gt.u32 %p, %a, 100; vote.sync.any.pred %q, %p, -1; selp.u32 %d, 1, 0, %q;": lambda i: 1,
    "match.any.sync.b32 %d, %a, -1;": lambda i: sum((A[j] == A[i]) << j for j in range(32)),
    "redux.sync.max.s32 %d, %a, -1;": lambda i: max(s32(x) for x in A),
    "redux.sync.add.u32 %d, %a, -1;": lambda i: sum(A),
    "mov.u32 %d, 0; setp.lt.u32 %p, %lane, 9; @%p activemask.b32 %d;": lambda i: 0x1FF if i < 9 else 0,
    "mov.u32 %d, %lanemask_lt;": lambda i: (1 << i) - 1,
    "mov.u32 %d, %laneid;": lambda i: i,
}


@pytest.mark.parametrize("body", SHUFFLES)
def test_lanes_exchange_values(body):
    assert run(body) == [SHUFFLES[body](i) & 0xFFFFFFFF for i in range(32)]


def test_jump_table():
    body = """
    rem.u32 %t1, %lane, 3;
    mov.u32 %d, 0;
    WAYS: .branchtargets L0, L1, L2;
    brx.idx %t1, WAYS;
    L0: add.u32 %d, %d, 10; bra OUT;
    L1: add.u32 %d, %d, 20; bra OUT;
    L2: add.u32 %d, %d, 30;
    OUT: add.u32 %d, %d, %lane;
    """
    assert run(body) == [10 * (i % 3 + 1) + i for i in range(32)]


def test_loops_end_lane_by_lane():
    body = "mov.u32 %d, 0; mov.u32 %t1, %lane; LOOP: add.u32 %d, %d, %t1; sub.u32 %t1, %t1, 1; setp.gt.s32 %p, %t1, 0; @%p bra LOOP;"
    assert run(body) == [max(i * (i + 1) // 2, i) for i in range(32)]


def test_local_and_generic_memory():
    body = """
    mov.u64 %w1, depot;
    cvta.local.u64 %w2, %w1;
    st.u32 [%w2+4], %a;
    ld.local.u8 %h1, [%w1+5];
    cvt.u32.u16 %d, %h1;
    """
    assert run(body, registers=".local .align 8 .b8 depot[16];") == [a >> 8 & 0xFF for a in A]
    body = """
    mov.u64 %w1, tile;
    cvta.shared.u64 %w2, %w1;
    mul.wide.u32 %w3, %lane, 4;
    add.s64 %w2, %w2, %w3;
    st.u32 [%w2], %a;
    bar.sync 0;
    xor.b32 %t1, %lane, 1;
    shl.b32 %t1, %t1, 2;
    mov.u32 %t2, tile;
    add.u32 %t1, %t1, %t2;
    ld.shared.u32 %d, [%t1];
    """
    assert run(body, registers=".shared .align 4 .b8 tile[128];") == [A[i ^ 1] for i in range(32)]


def test_atomics_on_shared_memory_return_the_old_value():
    body = """
    mov.u32 %t1, sum;
    setp.eq.u32 %p, %lane, 0;
    @%p st.shared.u32 [%t1], 100;
    bar.sync 0;
    atom.shared.add.u32 %t2, [%t1], 2;
    bar.sync 0;
    ld.shared.u32 %t3, [%t1];
    sub.u32 %d, %t3, %t2;
    """
    assert sorted(run(body, registers=".shared .align 4 .b8 sum[4];")) == [164 - 100 - 2 * i for i in range(31, -1, -1)]


def test_barrier_reduction():
    body = "setp.gt.u32 %p, %a, 100; bar.red.popc.u32 %d, 0, %p;"
    assert run(body) == [sum(a > 100 for a in A)] * 32
