"""The expressions of :mod:`transpose_study.expressions`, computed for many elements at once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.expressions import BINARY, COMPARE, FUNCTIONS, evaluate, parse

_LEAST = partial(reduce, np.minimum)
_GREATEST = partial(reduce, np.maximum)
# By reduction, since the third argument of a ufunc is the array that it writes to.
_ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **FUNCTIONS, "min": lambda *args: _LEAST(args), "max": lambda *args: _GREATEST(args), "where": np.where,
}  # fmt: skip
_ARRAY_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {**BINARY, ast.LShift: np.left_shift, ast.RShift: np.right_shift}
_BEYOND = 2**63  # what int64 does not hold
_MOST_SHIFT = 63  # above it the processor's shifts are not those of arithmetic


class _Exact(Exception):
    """Part of an expression may leave int64, or is for :func:`evaluate` to refuse in its words."""


def evaluate_array(text: str | int, names: Mapping[str, int], arrays: Mapping[str, np.ndarray], *, where: str = "") -> np.ndarray:
    """Evaluate ``text`` for every element of ``arrays`` (int64, of one shape), whose names it may use beside ``names``.

    The grammar is that of :func:`evaluate` without ``**``, and so are values and refusals: where a part of the expression could
    leave int64, by the bounds of what goes into it, or divides by zero, each element goes through :func:`evaluate`, some hundred
    times as slowly. A result that int64 does not hold is a :class:`StudyError`.
    """
    shape = next(iter(arrays.values())).shape
    if not next(iter(arrays.values())).size:
        return np.zeros(shape, np.int64)
    evaluate(text, {**names, **{n: int(a.flat[0]) for n, a in arrays.items()}}, where=where)  # refuses what is no arithmetic
    tree = parse(text, where=where)
    bounds = {n: max(-int(a.min()), int(a.max())) for n, a in arrays.items()}
    try:
        with np.errstate(divide="raise"):
            return np.broadcast_to(np.asarray(_visit(tree, names, arrays, bounds, where)[0], np.int64), shape)
    except (_Exact, FloatingPointError, RecursionError):
        return _element_by_element(text, names, arrays, where)


def _element_by_element(text: str | int, names: Mapping[str, int], arrays: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    columns = zip(*(a.ravel().tolist() for a in arrays.values()), strict=True)
    values = [evaluate(text, {**names, **dict(zip(arrays, row, strict=True))}, where=where) for row in columns]
    large = next((v for v in values if not -_BEYOND <= v < _BEYOND), None)
    if large is not None:
        raise StudyError(f"{text!r} is {large} for some element, which 64 bits do not hold", where=where)
    return np.array(values, np.int64).reshape(next(iter(arrays.values())).shape)


def _visit(node: ast.AST, names: Mapping[str, int], arrays: Mapping[str, np.ndarray], bounds: Mapping[str, int], where: str) -> tuple[Any, int]:
    """The values of a part of the expression, and a bound that none of them exceeds in magnitude."""

    def visit(node: ast.AST) -> tuple[Any, int]:
        value, bound = compute(node)
        return value, _held(bound)

    def compute(node: ast.AST) -> tuple[Any, int]:
        match node:
            case ast.Constant(value=int(value)):
                return int(value), abs(value)
            case ast.Name(id=name):
                return (arrays[name], bounds[name]) if name in arrays else (int(names[name]), abs(int(names[name])))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value, bound = visit(operand)
                return -value, bound
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return np.logical_not(visit(operand)[0]).astype(np.int64), 1
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARRAY_BINARY:
                return _binary(op, visit(left), visit(right))
            case ast.BoolOp(op=op, values=values):
                every = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return reduce(every, [np.asarray(visit(v)[0]) != 0 for v in values]).astype(np.int64), 1
            case ast.Compare(left=left, ops=ops, comparators=rights):
                chain = [visit(left)[0], *(visit(r)[0] for r in rights)]
                pairs = [np.asarray(COMPARE[type(op)](a, b)) for op, a, b in zip(ops, chain, chain[1:], strict=False)]
                return reduce(np.logical_and, pairs).astype(np.int64), 1
            case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
                found = [visit(a) for a in args]
                return _ARRAY_FUNCTIONS[name](*(np.asarray(v, np.int64) for v, _ in found)), max(b for _, b in found)
        raise StudyError(f"{ast.unparse(node)!r} cannot be computed for many elements at once", where=where)

    return visit(node)


def _binary(op: ast.operator, left: tuple[Any, int], right: tuple[Any, int]) -> tuple[Any, int]:
    """Left and right are (values, bound); the bound of the result is checked before it is computed."""
    (a, most_a), (b, most_b) = left, right
    if isinstance(op, (ast.LShift, ast.RShift)) and not (np.min(b) >= 0 and most_b <= _MOST_SHIFT):
        raise _Exact
    match op:
        case ast.Add() | ast.Sub():
            bound = most_a + most_b
        case ast.Mult():
            bound = most_a * most_b
        case ast.LShift():
            bound = most_a << most_b
        case ast.FloorDiv() | ast.RShift():
            bound = most_a  # -1 // 5 is -1
        case ast.Mod():
            bound = most_b
        case _:  # bits: at most those of the longer one, and the sign
            bound = 1 << max(most_a.bit_length(), most_b.bit_length())
    _held(bound)
    return _ARRAY_BINARY[type(op)](np.asarray(a, np.int64), np.asarray(b, np.int64)), bound


def _held(bound: int) -> int:
    if bound >= _BEYOND:
        raise _Exact
    return bound
