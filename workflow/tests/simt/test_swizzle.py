"""Swizzle formulas: in the row, a bijection, how many ways; against known tiles and, for random formulas, against brute force."""

import random
import xml.etree.ElementTree as ET
from collections import defaultdict

import pytest
from launches import ROOT, launch_of
from transpose_study.cli import main
from transpose_study.errors import StudyError
from transpose_study.simt.explain import bank_picture
from transpose_study.simt.swizzle import Tile, picture, swizzle, why


def ways(formula, width, pitch, size, rows=32):
    found = swizzle(formula, Tile(rows, width, pitch, size))
    return found.usable, max(found.by_row.taken), max(found.by_column.taken)


@pytest.mark.parametrize(
    ("formula", "width", "pitch", "size", "expected"),
    [
        # a row of 128 bytes is one turn of the banks: a column lies in one of them
        ("col", 32, 32, 4, (True, 1, 32)),
        # 33 words move a column by one bank a row
        ("col", 32, 33, 4, (True, 1, 1)),
        # r -> c ^ r and r -> (c + r) % 32 are permutations of 0..31 for every c
        ("col ^ row", 32, 32, 4, (True, 1, 1)),
        ("col ^ (row & 31)", 32, 32, 4, (True, 1, 1)),
        ("(col + row) % 32", 32, 32, 4, (True, 1, 1)),
        # on the pitch of 33 the banks are (r + (c ^ r)) % 32, and 31 ^ r is 31 - r: column 31 lies in bank 31
        ("col ^ row", 32, 33, 4, (True, 1, 32)),
        # 16 words a row: rows 2r and 2r + 1 lie in one turn; a column has two banks of 16 words, or 16 words at 32 places
        ("col", 16, 16, 4, (True, 1, 16)),
        ("col ^ (row & 15)", 16, 16, 4, (True, 1, 2)),
        ("col", 16, 17, 4, (True, 2, 1)),
        # 8 words a row: four banks of 8 words; a swizzle within 8 words leaves rows r and r + 8 in one bank
        ("col", 8, 8, 4, (True, 1, 8)),
        ("col ^ (row & 7)", 8, 8, 4, (True, 1, 4)),
        # the swizzle must use the rows in a turn: with row // 4 the four rows of a turn share it and eight turns differ
        ("col ^ (row // 4 & 7)", 8, 8, 4, (True, 1, 1)),
        # float4: four phases of eight lanes; a row of eight vectors is one turn
        ("col", 8, 8, 16, (True, 4, 32)),
        ("col ^ (row & 7)", 8, 8, 16, (True, 4, 4)),
        # 8 bytes: two phases of 16 lanes
        ("col", 16, 16, 8, (True, 2, 32)),
        ("col ^ (row & 15)", 16, 16, 8, (True, 2, 2)),
        # 1 and 2 bytes: 32 or 16 words a turn is four or two rows; words are shared by the lanes of a row
        ("col", 32, 32, 1, (True, 1, 8)),
        ("col", 32, 32, 2, (True, 1, 16)),
    ],
)  # fmt: skip
def test_ways_of_known_tiles(formula, width, pitch, size, expected):
    assert ways(formula, width, pitch, size) == expected


@pytest.mark.parametrize("width", [8, 16, 32])
def test_xor_without_a_mask_needs_a_row_for_each_of_32_rows(width):
    found = swizzle("col ^ row", Tile(32, width, width, 4))
    assert found.outside == (None if width == 32 else (width, 0, width))  # row ``width`` is the first whose XOR leaves 0..width-1
    assert found.collision is None  # XOR with a constant is injective
    assert swizzle("col ^ row", Tile(width, width, width, 4)).usable  # a square tile keeps it inside


def test_xor_leaves_a_row_of_24():
    found = swizzle("col ^ row", Tile(32, 24, 24, 4))
    assert found.outside == (8, 16, 24) and not found.usable
    assert swizzle("col ^ (row & 7)", Tile(32, 24, 24, 4)).usable  # the low three bits stay within blocks of eight
    wide = swizzle("col ^ row", Tile(32, 24, 32, 4))
    assert wide.usable and wide.padding == (8, 16, 24)  # a pitch of 32 has room for it


def test_the_vector_tile_needs_the_vector_swizzle():
    scalar = swizzle("col ^ row", Tile(32, 8, 8, 16))
    assert scalar.outside == (8, 0, 8) and not scalar.usable
    assert swizzle("col ^ (row & 7)", Tile(32, 8, 8, 16)).usable


def test_two_columns_that_meet_are_named():
    found = swizzle("col // 2", Tile(4, 8, 8, 4))
    assert found.collision == (0, 0, 1, 0) and found.outside is None and not found.usable
    assert swizzle("min(col, 6 + row)", Tile(4, 8, 8, 4)).collision == (0, 6, 7, 6)


@pytest.mark.parametrize(("name", "formula", "pitch"), [
    ("tiled", "col", 32), ("tiled_padded", "col", 33), ("tiled_xor", "col ^ row", 32), ("tiled_rotated", "(col + row) % 32", 32),
])  # fmt: skip
def test_the_pictures_of_the_ladder_s_tiles_are_those_of_the_compiled_kernels(ladder, name, formula, pitch):
    compiled = bank_picture(ladder(f"{name}_b8").program, launch_of(f"{name}_b8", 1024, 1024))
    drawn = picture(swizzle(formula, Tile(32, 32, pitch, 4)))
    assert (drawn.rows, drawn.load_wavefronts, drawn.conflict) == (compiled.rows, compiled.load_wavefronts, compiled.conflict)
    assert sorted(drawn.load) == sorted(compiled.load)


def random_formula(rng, depth=3):
    """A formula as text, and the same as a Python function made without reading the text."""
    if depth == 0 or rng.random() < 0.2:
        number = rng.choice([1, 2, 3, 5, 7, 8, 15, 16, 31])
        return rng.choice([("col", lambda r, c: c), ("row", lambda r, c: r), (str(number), lambda r, c: number)])
    (a, f), (b, g) = random_formula(rng, depth - 1), random_formula(rng, depth - 1)
    divisor = rng.choice([3, 4, 8, 24, 32])
    return rng.choice([
        (f"({a} + {b})", lambda r, c: f(r, c) + g(r, c)),
        (f"({a} - {b})", lambda r, c: f(r, c) - g(r, c)),
        (f"({a} ^ {b})", lambda r, c: f(r, c) ^ g(r, c)),
        (f"({a} & {b})", lambda r, c: f(r, c) & g(r, c)),
        (f"({a} | {b})", lambda r, c: f(r, c) | g(r, c)),
        (f"({a} * {b})", lambda r, c: f(r, c) * g(r, c)),
        (f"({a} % {divisor})", lambda r, c: f(r, c) % divisor),
        (f"({a} // {divisor})", lambda r, c: f(r, c) // divisor),
        (f"max({a}, {b})", lambda r, c: max(f(r, c), g(r, c))),
    ])  # fmt: skip


def wavefronts_of(lanes, size):
    """Phase by phase, the number of different words that the busiest bank delivers; and the phases."""
    at_once = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[size]
    taken = phases = 0
    for first in range(0, len(lanes), at_once):
        banks = defaultdict(set)
        for address in lanes[first : first + at_once]:
            for byte in range(address, address + size):
                banks[byte // 4 % 32].add(byte // 4)
        taken += max(len(words) for words in banks.values())
        phases += 1
    return taken, phases


@pytest.mark.parametrize("seed", range(60))
def test_random_formulas_agree_with_brute_force(seed):
    rng = random.Random(seed)
    text, function = random_formula(rng)
    rows, width = rng.choice([3, 8, 17, 32, 40]), rng.choice([5, 8, 16, 24, 32, 40])
    tile = Tile(rows, width, width + rng.choice([0, 0, 1, 4, 9]), rng.choice([1, 2, 4, 8, 16]))
    found = swizzle(text, tile)
    places = {(r, c): function(r, c) for r in range(rows) for c in range(width)}
    leaves = [(r, c, p) for (r, c), p in places.items() if p < 0 or p >= tile.pitch]
    meets = [r for r in range(rows) if len({places[r, c] for c in range(width)}) < width]
    assert (found.outside is None) == (not leaves) and (found.outside is None or found.outside == leaves[0])
    assert (found.collision is None) == (not meets)
    if found.collision:
        row, one, other, value = found.collision
        assert row == meets[0] and one < other and places[row, one] == places[row, other] == value
    assert found.usable == (not leaves and not meets)
    for access, order in (
        (found.by_row, [(r, c) for r in range(rows) for c in range(width)]),
        (found.by_column, [(r, c) for c in range(width) for r in range(rows)]),
    ):
        addresses = [(r * tile.pitch + places[r, c]) * tile.bytes for r, c in order]
        expected = [wavefronts_of(addresses[i : i + 32], tile.bytes) for i in range(0, len(addresses), 32)]
        assert list(zip(access.taken, access.ideal, strict=True)) == expected, text
    assert why(found).endswith(".")


def test_values_without_bounds_are_not_counted():
    found = swizzle("col * 2**90", Tile(2, 4, 4, 4))
    assert found.outside == (0, 1, 2**90) and found.by_row is None and picture(found) is None


@pytest.mark.parametrize(
    ("formula", "tile", "message"),
    [
        ("col ^ rows", (32, 32, 32, 4), "'rows' in the expression 'col ^ rows' is no axis here; did you mean 'row'"),
        ("__import__('os').getcwd()", (32, 32, 32, 4), "is not arithmetic"),
        ("col.bit_length()", (32, 32, 32, 4), "is not arithmetic"),
        ("[row][0]", (32, 32, 32, 4), "is not arithmetic"),
        ("col / 2", (32, 32, 32, 4), "write // for division"),
        ("col // row", (32, 32, 32, 4), "divides by zero"),
        ("col ^", (32, 32, 32, 4), "is no expression"),
        ("col", (32, 32, 31, 4), "--pitch: is 31, less than the width of 32"),
        ("col", (32, 32, 32, 3), "--bytes: is 3; a lane moves 1, 2, 4, 8, 16 bytes"),
        ("col", (0, 32, 32, 4), "--rows: is 0"),
        ("col", (32, 0, 32, 4), "--width: is 0"),
        ("col", (1024, 1024, 1024, 4), "more than the 232,448 that a block can have"),
    ],
)
def test_mistakes_are_said(formula, tile, message):
    with pytest.raises(StudyError) as error:
        swizzle(formula, Tile(*tile))
    assert message in str(error.value)


def test_the_command_answers_the_issue_s_example(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    drawing = tmp_path / "banks.svg"
    assert main(["swizzle", "col ^ (row & 31)", "--width", "32", "--pitch", "32", "--bytes", "4", "--svg", str(drawing)]) == 0
    text = capsys.readouterr().out
    assert "in its row:      yes, always 0..31" in text and "each row's 32 columns have 32 places" in text
    assert "column access:     1, ideally 1: no conflict" in text and "column, plain col: 32, ideally 1: 32-way conflict" in text
    rects = [r.get("fill") for r in ET.parse(drawing).getroot().iter("{http://www.w3.org/2000/svg}rect")]
    assert len(rects) == 32 * 32 and rects.count("#0072b2") == 32


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["col ^ row", "--width", "24", "--pitch", "24", "--bytes", "4"], 1, "row 8, col 16 -> 24, which lies in row 9; a row has 0..23"),
        (["col // 2", "--width", "8", "--pitch", "8", "--bytes", "4"], 1, "in row 0, cols 0 and 1 both -> 0"),
        (["col", "--width", "1056", "--pitch", "1056", "--bytes", "4"], 0, "1056 rows of banks are too many for a terminal"),
        (["col + rwo", "--width", "8", "--pitch", "8", "--bytes", "4"], 2, "did you mean 'row'"),
    ],
)
def test_exit_statuses(arguments, status, said, capsys):
    assert main(["swizzle", *arguments]) == status
    output = capsys.readouterr()
    assert said in output.out + output.err


TILE = ["--width", "8", "--pitch=8", "--byt", "4"]


@pytest.mark.parametrize("formula", ["-col", "-(col)", "--col", "-col+7", "-row", "-7*col"])
def test_a_formula_that_begins_with_a_minus(formula, capsys):
    """argparse takes it for an option: the hint says what to do, and doing it works; a blank or a number is no option anyway."""
    for arguments in ([formula, *TILE], [*TILE, formula]):
        with pytest.raises(SystemExit) as stopped:
            main(["swizzle", *arguments])
        said = capsys.readouterr().err
        assert stopped.value.code == 2 and f"{formula} is no option; a formula that begins with a minus goes last, behind --" in said
    for working in ([*TILE, "--", formula], [*TILE, formula.replace("-", "- ")], ["-7", *TILE]):
        assert main(["swizzle", *working]) in (0, 1)


def test_options_are_not_taken_for_formulas(capsys):
    for arguments, status in ((["col", *TILE, "--rows", "-1"], 2), (["-h"], 0), (["--help"], 0)):
        try:
            assert main(["swizzle", *arguments]) == status
        except SystemExit as stopped:
            assert stopped.code == status
        assert "is no option" not in capsys.readouterr().err
