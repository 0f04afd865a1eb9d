"""``swizzle``: whether a swizzle formula fits a shared tile, and how many ways its rows and columns take."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transpose_study.cli.common import Command, add_log
from transpose_study.progress import Log

if TYPE_CHECKING:
    from transpose_study.simt.swizzle import Access, Swizzle

UNUSABLE = 1  # exit status of a formula that cannot be used
DRAWN_ROWS = 96  # rows of banks that fit into a terminal, two in a line


def add(commands: argparse._SubParsersAction[Command]) -> None:
    """Register the sub-command."""
    command = commands.add_parser(
        "swizzle",
        help="whether a swizzle formula fits a shared tile, and how many ways its accesses take",
        description="Computes where a swizzle formula puts each element of a shared tile and prints whether it fits and what it costs; "
        "writes nothing but --svg.",
    )
    command.add_argument("formula", metavar="FORMULA", help="place of an element in its row, from row and col, such as 'col ^ (row & 31)'")
    command.add_argument("--width", type=int, required=True, metavar="W", help="elements of a row of the tile")
    command.add_argument("--pitch", type=int, required=True, metavar="P", help="elements from row to row in shared memory; above the width: padding")
    command.add_argument("--bytes", type=int, required=True, metavar="B", help="bytes of an element: 1, 2, 4, 8 or 16")
    command.add_argument("--rows", type=int, default=32, metavar="R", help="rows of the tile; default: 32, a column for a warp")
    command.add_argument("--svg", type=Path, metavar="FILE", help="also draw the banks into this file")
    add_log(command)
    command.set_defaults(run_command=run_swizzle)
    command.late = _hint_at_a_minus


def _hint_at_a_minus(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """argparse takes a formula such as -col for an option, and then misses the formula."""
    options = [*re.findall(r"(?<=\[|\s)--?[a-z]+", parser.format_usage()), "--help"]
    for argument in arguments:
        if argument == "--":
            return
        number = re.fullmatch(r"-[0-9]+", argument)
        if argument.startswith("-") and " " not in argument and not number and not any(o.startswith(argument.split("=")[0]) for o in options):
            parser.error(f"{argument} is no option; a formula that begins with a minus goes last, behind --, as in: --width 32 ... -- '{argument}'")


def run_swizzle(args: argparse.Namespace, log: Log) -> int:
    """Print the answer; status 0 for a formula that can be used, 1 for one that leaves the row or maps two columns to one place."""
    from transpose_study.records import write_text
    from transpose_study.simt.explain import svg_picture, terminal_picture
    from transpose_study.simt.swizzle import Tile, picture, swizzle, why

    tile = Tile(args.rows, args.width, args.pitch, args.bytes)
    found = swizzle(args.formula, tile)
    lines = [*_verdict(found), "", *_accesses(found), "", why(found)]
    drawing = picture(found)
    if drawing:
        lines += ["", "Shared memory, 32 banks across; dark: the words of one warp's column access, light: of its row access."]
        if drawing.rows <= DRAWN_ROWS:
            lines += [f"  {line}" for line in terminal_picture(drawing)]
        else:
            lines += [f"  {drawing.rows} rows of banks are too many for a terminal; --svg FILE draws them."]
    print("\n".join(lines))
    if args.svg and drawing:
        write_text(args.svg, svg_picture([(args.formula, drawing)]))
        log.say(f"drew {args.svg}")
    return 0 if found.usable else UNUSABLE


def _verdict(found: Swizzle) -> list[str]:
    from transpose_study.simt.swizzle import unused

    tile = found.tile
    gap = tile.pitch - tile.width
    padding = f"{gap} of them padding" if gap else "no padding"
    size = f"{tile.rows} rows of {tile.width} elements of {tile.bytes} byte{'s' * (tile.bytes != 1)}"
    lines = [f"{found.formula}: a tile of {size}, {tile.pitch} from row to row ({padding})"]
    if found.outside:
        row, col, value = found.outside
        there = row + value // tile.pitch
        lands = f"in row {there}" if 0 <= there < tile.rows else "outside the tile"
        lines += [f"  leaves the row:  row {row}, col {col} -> {value}, which lies {lands}; a row has 0..{tile.pitch - 1}"]
    elif found.padding:
        row, col, value = found.padding
        lines += [f"  in its row:      yes, into the padding too (row {row}, col {col} -> {value})"]
    else:
        lines += [f"  in its row:      yes, always 0..{tile.width - 1}"]
    if found.collision:
        row, one, other, value = found.collision
        lines += [f"  no bijection:    in row {row}, cols {one} and {other} both -> {value}"]
    elif found.outside:
        lines += ["  no bijection:    what leaves its row has no place there, though no two columns of a row meet"]
    else:
        lines += [f"  a bijection:     yes, each row's {tile.width} columns have {tile.width} places"]
    lines += [f"  {name} is not in the formula" for name in unused(found.formula)]
    return [*lines, f"  it can{'' if found.usable else 'not'} be used"]


def _accesses(found: Swizzle) -> list[str]:
    from transpose_study.simt.swizzle import swizzle

    plain = swizzle("col", found.tile).by_column
    named = [("row access", found.by_row), ("column access", found.by_column), ("column, plain col", plain)]
    return ["Wavefronts of one warp:", *(f"  {name + ':':19}{_cost(access)}" for name, access in named)]


def _cost(access: Access | None) -> str:
    if access is None:
        return "not counted, the values are too far off"
    worst = access.worst
    ways = "no conflict" if access.ways == 1 else f"{access.ways:.3g}-way conflict"
    text = f"{access.taken[worst]}, ideally {access.ideal[worst]}: {ways}"
    if len({t / i for t, i in zip(access.taken, access.ideal, strict=True)}) > 1:
        text += f" (the worst; the {len(access.taken)} warps of the tile take {sum(access.taken)}, ideally {sum(access.ideal)})"
    return text
