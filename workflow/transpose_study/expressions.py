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

from transpose_study.errors import StudyError, nearest

FUNCTIONS: dict[str, Callable[..., int]] = {
    "ceil_div": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
    "where": lambda condition, a, b: a if condition else b,
}

BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
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
            return _parsed(str(text).strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
    raise StudyError(f"{text!r} is no expression", where=where, hint="write a whole number, or arithmetic such as ceil_div(cols, 32)") from None


@cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


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
                if not all(type(op) in COMPARE for op in ops):
                    raise refuse(node, "compares in a way that is not arithmetic")
                pairs = zip(ops, chain, chain[1:], strict=False)
                return int(all(COMPARE[type(op)](a, b) for op, a, b in pairs))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                return _call(node, name, [visit(a) for a in args])
        raise refuse(node, "is not arithmetic")

    def _binary(node: ast.AST, op: ast.operator, left: int, right: int) -> int:
        if isinstance(op, (ast.Pow, ast.LShift, ast.RShift)):
            if not 0 <= right <= 128:
                raise refuse(node, "has an exponent or shift outside 0..128")
            result = left**right if isinstance(op, ast.Pow) else left << right if isinstance(op, ast.LShift) else left >> right
        elif type(op) in BINARY:
            if isinstance(op, (ast.FloorDiv, ast.Mod)) and right == 0:
                raise refuse(node, "divides by zero")
            result = BINARY[type(op)](left, right)
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
