"""Arithmetic over measured quantities, as a reference file writes it to say how a published figure was computed.

Grammar: numbers, ``quantity`` (of the row's own kernel, or a fact of device and shape), ``quantity[kernel]``,
``quantity[kernel, other]`` for paired quantities, ``+ - * /``, parentheses and one comparison (1 if it holds, else 0).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from transpose_study.errors import StudyError

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARE: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Missing(Exception):
    """A quantity was not measured; the text says why."""


def evaluate(text: str, lookup: Callable[[str, tuple[str, ...]], float], *, where: str) -> float:
    """Evaluate ``text``; ``lookup(quantity, kernels)`` gives a value, raises :class:`Missing`, or StudyError for an unknown name."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        raise StudyError(f"{text!r} is no formula", where=where, hint="write for example quantity[kernel] / quantity[other]") from None

    def visit(node: ast.AST) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name):
                return lookup(name, ())
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=kernel)):
                return lookup(name, (kernel,))
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)])):
                return lookup(name, (first, second))
            case ast.UnaryOp(op=ast.USub(), operand=value):
                return -visit(value)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                top, bottom = visit(left), visit(right)
                if isinstance(op, ast.Div) and not bottom:
                    raise Missing(f"{ast.unparse(right)} is 0")
                return _ARITHMETIC[type(op)](top, bottom)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return float(_COMPARE[type(op)](visit(left), visit(right)))
        raise StudyError(f"{ast.unparse(node)!r} in the formula {text!r} is not understood", where=where)

    return visit(tree.body)
