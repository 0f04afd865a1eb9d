"""The expressions of :mod:`transpose_study.expressions`, computed for many elements at once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from transpose_study.errors import StudyError
from transpose_study.expressions import BINARY, COMPARE, FUNCTIONS, evaluate, parse

_ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {**FUNCTIONS, "min": np.minimum, "max": np.maximum, "where": np.where}
_ARRAY_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {**BINARY, ast.LShift: np.left_shift, ast.RShift: np.right_shift}


def evaluate_array(text: str | int, names: Mapping[str, int], arrays: Mapping[str, np.ndarray], *, where: str = "") -> np.ndarray:
    """Evaluate ``text`` for every element of ``arrays`` (int64, of one shape), whose names it may use beside ``names``.

    The grammar is that of :func:`evaluate` without ``**``; all parts of ``where(c, a, b)`` are computed. The first element goes
    through :func:`evaluate`, so that what is no arithmetic is refused in its words.
    """
    shape = next(iter(arrays.values())).shape
    if not next(iter(arrays.values())).size:
        return np.zeros(shape, np.int64)
    evaluate(text, {**names, **{n: int(a.flat[0]) for n, a in arrays.items()}}, where=where)

    def visit(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return arrays[name] if name in arrays else names[name]
            case ast.UnaryOp(op=ast.USub(), operand=value):
                return -visit(value)
            case ast.UnaryOp(op=ast.Not(), operand=value):
                return np.logical_not(visit(value)).astype(np.int64)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARRAY_BINARY:
                return _ARRAY_BINARY[type(op)](visit(left), visit(right))
            case ast.BoolOp(op=op, values=values):
                every = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return every.reduce([np.broadcast_to(np.asarray(visit(v)) != 0, shape) for v in values]).astype(np.int64)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                chain = [visit(left), *(visit(r) for r in rights)]
                pairs = [COMPARE[type(op)](a, b) for op, a, b in zip(ops, chain, chain[1:], strict=False)]
                return np.logical_and.reduce([np.broadcast_to(p, shape) for p in pairs]).astype(np.int64)
            case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
                return _ARRAY_FUNCTIONS[name](*(visit(a) for a in args))
        raise StudyError(f"{ast.unparse(node)!r} cannot be computed for many elements at once", where=where)

    with np.errstate(divide="raise", over="raise"):
        try:
            return np.broadcast_to(np.asarray(visit(parse(text, where=where)), np.int64), shape)
        except FloatingPointError as error:
            raise StudyError(f"{text!r} cannot be computed for every element ({error})", where=where) from None
