"""Floating-point arithmetic of PTX on the bits of values, with numpy in the type's own precision.

``fma`` on f16 and f32 is computed in double and rounded once more; the ``approx`` instructions are computed exactly, so they
may differ from a GPU in the last places. Modes other than round-to-nearest are refused by :mod:`.alu`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from transpose_study.simt.values import COMPARE, INTEGER, UNSIGNED, Value, concrete

FLOAT = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
BITS = {"f16": 16, "f32": 32, "f64": 64}


def _as(kind: str, bits: np.ndarray) -> np.ndarray:
    return bits.astype(INTEGER[BITS[kind]], copy=False).view(FLOAT[kind])


def _bits(kind: str, number: np.ndarray) -> np.ndarray:
    return number.astype(FLOAT[kind], copy=False).view(INTEGER[BITS[kind]])


def _flush(kind: str, number: np.ndarray) -> np.ndarray:
    tiny = np.abs(number) < np.finfo(FLOAT[kind]).tiny
    return np.where(tiny, np.copysign(np.zeros_like(number), number), number)


_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "abs": np.abs,
    "neg": np.negative,
    "rcp": lambda a: 1 / a,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "ex2": np.exp2,
    "lg2": np.log2,
    "tanh": np.tanh,
}
_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.fmin,
    "max": np.fmax,
    "copysign": lambda a, b: np.copysign(b, a),
}
OPCODES = frozenset(_UNARY) | frozenset(_BINARY) | {"fma", "mad"}


def compute(opcode: str, kind: str, modifiers: tuple[str, ...], *operands: Value) -> Value:
    """``opcode`` on operands of floating type ``kind``; ``ftz`` flushes subnormals, ``sat`` clamps to 0..1."""

    def run(*bits: np.ndarray) -> np.ndarray:
        numbers = [_as(kind, b) for b in bits]
        if "ftz" in modifiers:
            numbers = [_flush(kind, n) for n in numbers]
        with np.errstate(all="ignore"):
            if opcode in ("fma", "mad"):
                a, b, c = (n.astype(np.float64) for n in numbers)
                result = (a * b + c).astype(FLOAT[kind])
            elif opcode in _UNARY:
                result = _UNARY[opcode](numbers[0]).astype(FLOAT[kind])
            else:
                result = _BINARY[opcode](*numbers).astype(FLOAT[kind])
            if "sat" in modifiers:
                result = np.where(np.isnan(result), 0, np.clip(result, 0, 1)).astype(FLOAT[kind])
            if "ftz" in modifiers:
                result = _flush(kind, result)
        return _bits(kind, result)

    return concrete(run, *operands)


_CLASSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "notanumber": np.isnan,
    "number": lambda a: ~np.isnan(a),
}


def classify(kind: str, test: str, a: Value) -> Value:
    """``testp``: whether a number is finite, infinite, a number, or none."""
    return concrete(lambda bits: _CLASSES[test](_as(kind, bits)), a)


def compare(op: str, kind: str, a: Value, b: Value) -> Value:
    """Ordered comparison, or unordered (true for NaN) where ``op`` ends in u; ``num`` and ``nan`` test for NaN."""

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        p, q = _as(kind, x), _as(kind, y)
        nan = np.isnan(p) | np.isnan(q)
        if op in ("num", "nan"):
            return nan if op == "nan" else ~nan
        base = op[:-1] if op.endswith("u") and op[:-1] in COMPARE else op
        result = COMPARE[base](p, q)
        return result | nan if base != op else result & ~nan

    return concrete(run, a, b)


_ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def convert(target: str, source: str, modifiers: tuple[str, ...], a: Value) -> Value:
    """``cvt`` where source or target is a floating type; integers saturate, NaN becomes 0."""
    rounding = next((_ROUND[m] for m in modifiers if m in _ROUND), None)

    def run(bits: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            whole_number = bits if source in FLOAT or source[0] == "s" else bits.view(UNSIGNED[int(source[1:])])
            number = _as(source, bits) if source in FLOAT else whole_number
            if target in FLOAT:
                result = rounding(number) if rounding and source in FLOAT else number
                if "sat" in modifiers:
                    result = np.where(np.isnan(result), 0, np.clip(result, 0, 1))
                return _bits(target, result.astype(FLOAT[target]))
            width = int(target[1:])
            kind = INTEGER[width] if target[0] == "s" else UNSIGNED[width]
            info = np.iinfo(kind)
            whole = (rounding or np.trunc)(number.astype(np.float64))
            inside = np.clip(np.where(np.isnan(whole), 0, whole), float(info.min), float(info.max))
            over, under = inside >= float(info.max), inside <= float(info.min)
            result = np.where(over | under, 0, inside).astype(kind)
            return np.where(over, info.max, np.where(under, info.min, result)).astype(kind).view(INTEGER[width])

    return concrete(run, a)
