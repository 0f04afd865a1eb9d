"""Arithmetic over measured quantities, as reference files and claims write it; parsed, never run as Python.

Grammar: numbers, ``quantity`` (of the row's own kernel, or a fact of device and shape), ``quantity[kernel]``,
``quantity[kernel, other]`` for paired quantities, ``+ - * /``, ``min() max() abs() gcd()`` (gcd of whole numbers), parentheses
and one comparison (1 if it holds, else 0). :func:`comparisons` takes a text of comparisons joined by ``and`` apart instead of computing it.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from transpose_study.errors import StudyError

Lookup = Callable[[str, tuple[str, ...]], Any]

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}


class Missing(Exception):
    """A quantity was not measured; the text says why."""


def common_divisor(*values: float) -> float:
    """The greatest common divisor of whole numbers; of others there is none, which is :class:`Missing`."""
    if not all(float(v).is_integer() for v in values):
        raise Missing(f"there is no common divisor of {', '.join(f'{v:g}' for v in values)}, which are not whole numbers")
    return float(math.gcd(*map(int, values)))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs, "gcd": common_divisor}


def _parse(text: str, where: str) -> ast.expr:
    try:
        return ast.parse(str(text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise StudyError(f"{text!r} is no formula", where=where, hint="write for example quantity[kernel] / quantity[other]") from None


def evaluate(
    text: str, lookup: Lookup, *, where: str, number: Callable[[float], Any] = float, functions: Mapping[str, Callable[..., Any]] = _FUNCTIONS
) -> Any:
    """Evaluate ``text``; ``lookup(quantity, kernels)`` gives a value, raises :class:`Missing`, or StudyError for an unknown name.

    ``number`` makes a value of a constant and ``functions`` are min, max, abs and gcd, for values that are more than a float.
    """

    def visit(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=int() | float() as constant) if not isinstance(constant, bool):
                return number(float(constant))
            case ast.Name() | ast.Subscript() if reference := _reference(node):
                return lookup(*reference)
            case ast.UnaryOp(op=ast.USub(), operand=value):
                return -visit(value)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                top, bottom = visit(left), visit(right)
                if isinstance(op, ast.Div) and not bottom:
                    raise Missing(f"{ast.unparse(right)} is 0")
                return _ARITHMETIC[type(op)](top, bottom)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                return number(float(_COMPARE[type(op)][1](visit(left), visit(right))))
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if name in functions:
                return functions[name](*map(visit, args)) if len(args) > 1 or name == "abs" else visit(args[0])
        raise StudyError(f"{ast.unparse(node)!r} in the formula {text!r} is not understood", where=where)

    return visit(_parse(text, where))


def _reference(node: ast.AST) -> tuple[str, tuple[str, ...]] | None:
    """(quantity, kernels) of ``quantity``, ``quantity[kernel]`` or ``quantity[kernel, other]``."""
    match node:
        case ast.Name(id=name):
            return name, ()
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Name(id=kernel)):
            return name, (kernel,)
        case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)])):
            return name, (first, second)
    return None


def references(text: str, *, where: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every (quantity, kernels) that ``text`` names, in its order; anything but the grammar is a StudyError."""

    def visit(node: ast.AST) -> Iterator[tuple[str, tuple[str, ...]]]:
        if reference := _reference(node):
            yield reference
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
            for argument in node.args:
                yield from visit(argument)
        elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp | ast.Constant):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    yield from visit(child)
        else:
            raise StudyError(f"{ast.unparse(node)!r} in the formula {text!r} is not understood", where=where)

    yield from visit(_parse(text, where))


def comparisons(text: str, *, where: str) -> list[tuple[str, str, str]]:
    """The comparisons of a text such as ``a > b and c <= d``, each as (left, sign, right); an empty list where it compares nothing."""
    node = _parse(text, where)
    parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    found = []
    for part in parts:
        match part:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                found.append((ast.unparse(left), _COMPARE[type(op)][0], ast.unparse(right)))
            case ast.Compare() | ast.BoolOp():
                raise StudyError(f"{ast.unparse(part)!r} in {text!r} is not understood", where=where, hint="join < <= > >= by and")
            case _ if len(parts) > 1:
                raise StudyError(f"{ast.unparse(part)!r} in {text!r} compares nothing", where=where)
    return found
