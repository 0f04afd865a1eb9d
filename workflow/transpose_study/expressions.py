"""Integer arithmetic over named axes, as registry entries write it; never evaluated as Python.

Grammar: integers, axis names, ``+ - * // % **``, ``& | ^ << >>``, comparisons, ``and``/``or``/``not``, parentheses and
the functions of :data:`FUNCTIONS` (``where(c, a, b)`` is a where c holds, else b). Anything else is refused with the offending text.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from transpose_study.errors import StudyError, nearest

FUNCTIONS: dict[str, Callable[..., int]] = {
    "ceil_div": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "where": lambda condition, a, b: a if condition else b,
}

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LIMIT = 2**128  # far above any size; keeps 9**9**9 from hanging the parser


def parse(text: Any, *, where: str = "") -> ast.expr:
    """The tree of an expression; anything but a whole number or text that reads as one is a :class:`StudyError`."""
    if isinstance(text, (str, int)):
        try:
            return ast.parse(str(text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    raise StudyError(f"{text!r} is no expression", where=where, hint="write a whole number, or arithmetic such as ceil_div(cols, 32)") from None


@cache
def names_in(text: str | int) -> frozenset[str]:
    """Return the axis names that an expression uses (function names excluded)."""
    try:
        tree = ast.parse(str(text).strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name)) - FUNCTIONS.keys()


def evaluate(text: str | int, names: Mapping[str, int], *, where: str = "") -> int:
    """Evaluate ``text`` over ``names`` and return an integer (comparisons give 0 or 1).

    Raises :class:`StudyError` for anything that is not arithmetic on the known names, naming the part refused.
    """
    if isinstance(text, int):
        return text

    def refuse(node: ast.AST, why: str) -> StudyError:
        part = ast.get_source_segment(str(text), node) if isinstance(node, (ast.expr, ast.stmt)) else None
        return StudyError(
            f"{part or text!r} in the expression {text!r} {why}",
            where=where,
            hint="use integers, axis names, + - * // % ** & | ^ << >>, comparisons, and/or/not, "
            + ", ".join(f"{f}()" for f in FUNCTIONS),
        )

    def visit(node: ast.AST) -> int:
        match node:
            case ast.Constant(value=bool()) | ast.Constant(value=int()):
                return int(node.value)
            case ast.Name(id=name):
                if name not in names:
                    raise refuse(node, f"is no axis here; {nearest(name, names)}")
                return int(names[name])
            case ast.UnaryOp(op=ast.USub(), operand=value):
                return -visit(value)
            case ast.UnaryOp(op=ast.Not(), operand=value):
                return int(not visit(value))
            case ast.BinOp(left=left, op=op, right=right):
                return _binary(node, op, visit(left), visit(right))
            case ast.BoolOp(op=op, values=values):
                results = [bool(visit(v)) for v in values]
                return int(all(results) if isinstance(op, ast.And) else any(results))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                chain = [visit(left), *(visit(r) for r in rights)]
                if not all(type(op) in _COMPARE for op in ops):
                    raise refuse(node, "compares in a way that is not arithmetic")
                pairs = zip(ops, chain, chain[1:], strict=False)
                return int(all(_COMPARE[type(op)](a, b) for op, a, b in pairs))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                return _call(node, name, [visit(a) for a in args])
        raise refuse(node, "is not arithmetic")

    def _binary(node: ast.AST, op: ast.operator, left: int, right: int) -> int:
        if isinstance(op, (ast.Pow, ast.LShift, ast.RShift)):
            if not 0 <= right <= 128:
                raise refuse(node, "has an exponent or shift outside 0..128")
            result = left**right if isinstance(op, ast.Pow) else left << right if isinstance(op, ast.LShift) else left >> right
        elif type(op) in _BINARY:
            if isinstance(op, (ast.FloorDiv, ast.Mod)) and right == 0:
                raise refuse(node, "divides by zero")
            result = _BINARY[type(op)](left, right)
        else:
            raise refuse(node, "is not integer arithmetic (write // for division)")
        if abs(result) > _LIMIT:
            raise refuse(node, "is larger than 2**128")
        return result

    def _call(node: ast.AST, name: str, args: list[int]) -> int:
        try:
            return FUNCTIONS[name](*args)
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise refuse(node, f"cannot be computed ({error})") from None

    tree = parse(text, where=where)
    try:
        return visit(tree)
    except RecursionError:
        raise StudyError(f"an expression of {len(text)} characters is nested too deeply", where=where) from None


_ARRAY_FUNCTIONS: dict[str, Callable[..., Any]] = {**FUNCTIONS, "min": np.minimum, "max": np.maximum, "where": np.where}
_ARRAY_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {**_BINARY, ast.LShift: np.left_shift, ast.RShift: np.right_shift}


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
                pairs = [_COMPARE[type(op)](a, b) for op, a, b in zip(ops, chain, chain[1:], strict=False)]
                return np.logical_and.reduce([np.broadcast_to(p, shape) for p in pairs]).astype(np.int64)
            case ast.Call(func=ast.Name(id=name), args=args) if name in FUNCTIONS:
                return _ARRAY_FUNCTIONS[name](*(visit(a) for a in args))
        raise StudyError(f"{ast.unparse(node)!r} cannot be computed for many elements at once", where=where)

    with np.errstate(divide="raise", over="raise"):
        try:
            return np.broadcast_to(np.asarray(visit(ast.parse(str(text).strip(), mode="eval").body), np.int64), shape)
        except FloatingPointError as error:
            raise StudyError(f"{text!r} cannot be computed for every element ({error})", where=where) from None
