"""``explain``: the accesses of one warp in words, and the picture of the banks."""

import re
import xml.etree.ElementTree as ET

import pytest
from launches import ROOT, launch_of
from transpose_study.cli import main
from transpose_study.simt.explain import Touch, bank_picture, svg_picture, terminal_picture, touches

MICRO = ("--study", "micro")


def picture(ladder, name):
    found = bank_picture(ladder(name).program, launch_of(name, 1024, 1024))
    assert found is not None
    return found


def test_banks_of_the_four_tiles_differ_at_a_glance(ladder):
    plain, padded, xor, rotated = (picture(ladder, f"{n}_b8") for n in ("tiled", "tiled_padded", "tiled_xor", "tiled_rotated"))
    assert [b for _, b in plain.load] == [13] * 32  # one bank for all
    assert [b for _, b in padded.load] == [(13 + r) % 32 for r in range(32)]  # a diagonal, over 33 rows
    assert [b for _, b in xor.load] == [13 ^ r for r in range(32)]
    assert [b for _, b in rotated.load] == [(13 + r) % 32 for r in range(32)]
    assert [r for r, _ in rotated.load] == list(range(32)) != [r for r, _ in padded.load]
    assert (plain.conflict, padded.conflict, xor.conflict, rotated.conflict) == (32, 1, 1, 1)
    assert (plain.load_wavefronts, padded.load_wavefronts) == (32, 1)
    assert (plain.rows, padded.rows) == (32, 33)
    drawn = {tuple(terminal_picture(p)) for p in (plain, padded, xor, rotated)}
    assert len(drawn) == 4
    lines = terminal_picture(plain)
    assert len(lines) == 17 and all(line[13] == "█" for line in lines[1:])


def test_a_kernel_without_shared_memory_has_no_picture(ladder):
    assert bank_picture(ladder("copy").program, launch_of("copy", 64, 64)) is None


@pytest.mark.parametrize(
    ("address", "space", "counted", "sentence"),
    [
        ([4 * i for i in range(32)], "global", (4, 1, 1), "32 lanes of 4 bytes, one after the other: 1 request, 4 sectors"),
        (
            [16384 * i for i in range(32)], "global", (32, 1, 1),
            "32 lanes of 4 bytes, 16384 bytes from lane to lane: 1 request, 32 sectors, of whose 1024 bytes 128 are used",
        ),
        ([64], "global", (1, 1, 1), "1 lane of 4 bytes, alone: 1 request, 1 sector, of whose 32 bytes 4 are used"),
        (
            [128 * i for i in range(32)], "shared", (0, 32, 1),
            "32 lanes of 4 bytes, 128 bytes from lane to lane: 32-way bank conflict, 32 wavefronts instead of 1",
        ),
        (
            [4 * (i ^ 5) for i in range(32)], "shared", (0, 1, 1),
            "32 lanes of 4 bytes, side by side in another order: no bank has two words to deliver at once, 1 wavefront",
        ),
        ([8] * 32, "shared", (0, 1, 1), "32 lanes of 4 bytes, all at one address: no bank has two words to deliver at once, 1 wavefront"),
    ],
)  # fmt: skip
def test_sentences(address, space, counted, sentence):
    assert Touch(1, "", space, "load", 4, 0, tuple(address), *counted).sentence() == sentence


def test_every_access_of_a_block_is_told(ladder):
    found = touches(ladder("tiled_padded_b8").program, launch_of("tiled_padded_b8", 64, 64))
    assert len(found) == 16 * 8  # 4 loads, 4 shared stores, 4 shared loads, 4 stores, each by 8 warps
    assert {(t.space, t.kind) for t in found} == {("global", "load"), ("shared", "store"), ("shared", "load"), ("global", "store")}


def test_the_command_prints_and_draws(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(ROOT)
    drawing = tmp_path / "tile.svg"
    assert main(["explain", "--block-rows", "16", "tiled", "--shape", "128x96", "--svg", str(drawing)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("tiled_b16 at 128x96: shared tile [32][32]")
    assert "3 x 4 blocks of 32 x 16 threads, 16 warps each" in text
    assert "shared loads: 384 instructions, 12,288 wavefronts, 384 without conflicts" in text
    assert "32-way bank conflict" in text and "32 words of the load (dark) lie in one bank" in text
    root = ET.parse(drawing).getroot()
    fills = [r.get("fill") for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(fills) == 32 * 32 and fills.count("#0072b2") == 32


@pytest.mark.parametrize(
    ("variant", "store", "load"),
    [
        # block_rows 8: warp w stores rows w, w + 8, w + 16, w + 24 of the tile and loads their columns; the picture takes the
        # load that starts in bank 13 (column 13 of the tile: warp 5's second), a column of 33 rows where each row is padded.
        ("tiled", "warp 0 writes at PTX line {store}, in row 16", "warp 5 reads at PTX line {load}, in rows 0 to 31"),
        ("tiled_padded", "warp 0 writes at PTX line {store}, in rows 16 to 17", "warp 5 reads at PTX line {load}, in rows 0 to 32"),
    ],
)
def test_the_picture_says_whose_words_it_shows(variant, store, load, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["explain", variant, "--shape", "64x64", "--block-rows", "8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    where = {}
    for kind, instruction in (("store", "st.shared"), ("load", "ld.shared")):  # which of a kind's four it is
        where[kind] = [int(found[1]) for line in lines if (found := re.match(rf"\s+(\d+)  {instruction}", line))]
    assert f"Light: the words that {store}.".format(store=where["store"][2]) in lines
    assert f"Dark: the words that {load}.".format(load=where["load"][1]) in lines
    drawn = [line for line in lines if re.match(r"\s+row +\d", line)]
    assert drawn[0].split()[:2] == ["row", "0-1"] and drawn[-1].split()[:2] == ["row", "30-31" if variant == "tiled" else "32"]
    assert len({line.index(line.split()[-1]) for line in drawn}) == 1 == len({len(line) for line in drawn})


def test_each_axis_that_selects_code_is_an_option(monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit):
        monkeypatch.chdir(ROOT)
        main(["explain", "--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    assert "--block-rows N threads of a block along y; default: 8, the noise-floor cell's" in help_text and "--rows" not in help_text
    other = tmp_path / "kernels" / "other"
    other.mkdir(parents=True)
    (other / "k.cu").write_text("")
    registry = "study: other\naxes: {n: {}, lane_step: {tag: s}}\ngroup: {axes: [n], name: 'n{n}'}\nelements: n\nbytes: n\n"
    (other / "variants.yaml").write_text(registry + "variants: {k: {source: k.cu, takes: [lane_step], block: [32], grid: [1]}}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "k", "--study", "other", "--shape", "64"]) == 2
    assert "k takes the axis lane_step, which has no value\n  hint: give --lane-step N" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["explain", "k", "--study", "other", "--block-rows", "8"])


@pytest.mark.parametrize("shape", [[], ["--shape", "banks"]])
def test_a_study_grouped_by_words_needs_no_shape(shape, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["explain", "bank_column", "--study", "micro", "--bytes", "4", "--pitch", "33", *shape]) == 0
    text = capsys.readouterr().out
    assert text.startswith("bank_column_e4, pitch 33 at banks: a column of a shared array by its pitch")
    assert "one wavefront delivers them all" in text  # 33 words from row to row: each of a column's 32 lies in a bank of its own


@pytest.mark.parametrize(
    ("variant", "cell"),
    [("copy_offset", "copy_offset, offset 0 at alignment"), ("occupancy_memory", "occupancy_memory_i4, shared_kib 0 at occupancy")],
)
def test_a_noise_floor_value_of_0_is_a_value(variant, cell, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["explain", variant, *MICRO]) == 0
    assert capsys.readouterr().out.startswith(f"{cell}: ")


@pytest.mark.parametrize("kept", [True, False])
def test_a_study_without_a_configuration_has_a_group_all_the_same(kept, monkeypatch, capsys, tmp_path):
    """The group does not enter the launch; what is told is the same."""
    (tmp_path / "kernels").symlink_to(ROOT / "kernels")
    if kept:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "micro.yaml").write_text("study: micro\nshapes: [{experiment: mine, variants: [swizzle_xor]}, 5]\n")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "swizzle_xor", "--study", "micro"]) == 0
    assert capsys.readouterr().out.startswith(f"swizzle_xor, tile 32 at {'mine' if kept else 'experiment'}: column ^ row")


def test_memory_used_up_is_said(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)

    def full(*_):
        raise MemoryError

    monkeypatch.setattr("transpose_study.simt.explain.touches", full)
    assert main(["explain", "copy"]) == 2
    assert "copy at 4096x4096: takes more memory to execute on the CPU than there is here" in capsys.readouterr().err


def test_svg_is_the_same_every_time(ladder):
    one, two = (svg_picture([("a < b", picture(ladder, "tiled_xor_b8"))]) for _ in range(2))
    assert one == two and "a &lt; b" in one


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiled_xr"], "unknown variant 'tiled_xr'; did you mean 'tiled_xor'"),
        (["memcpy"], "there is no kernel to explain"),
        (["tiled", "--block-rows", "7"], "BLOCK_ROWS must divide the tile"),
        (["tiled", "--shape", "12"], "'12' is no shape"),
        (["tiled_padded_unchecked", "--shape", "33x32"], "must be multiples of 32"),
        (["copy", "--svg", "x.svg"], "uses no shared memory"),
        (["tiled", "--architecture", "6"], "does not know the architecture sm_6"),
        (
            ["bank_column", *MICRO, "--bytes", "4", "--pitch", "33", "--shape", "1024"],
            "'1024' is no shape\n  hint: configured for bank_column: banks",
        ),
        (["swizzle_xor", *MICRO, "--shape", "blork"], "'blork' is no shape\n  hint: configured for swizzle_xor: swizzles"),
        # 227 KiB for a block of compute capability 9.0, 99 KiB of 8.6 (limits.py)
        (["bank_column", *MICRO, "--bytes", "4", "--pitch", "100000"], "needs 12800000 bytes of shared memory, the device gives at most 232448"),
        (["bank_column", *MICRO, "--bytes", "4", "--pitch", "1000000000"], "needs 128000000000 bytes of shared memory"),
        (["occupancy_memory", *MICRO, "--shared-kib", "1000000000"], "needs 1024000000000 bytes of shared memory"),
        (["occupancy_memory", *MICRO, "--shared-kib", "200", "--architecture", "86"], "needs 204800 bytes .* at most 101376"),
        (["occupancy_memory", *MICRO, "--shared-kib", "-1"], "--shared-kib: shared_kib is -1; it must be at least 0"),
        (["occupancy_registers", *MICRO, "--live", "1000000000"], "a thread needs [0-9]+ bytes of local memory, a device gives at most 524288"),
        (["copy_offset", *MICRO, "--offset", "100000000000"], "has no room in the 32 bits of an int"),
        (["block_memory", *MICRO, "--ilp", "1", "--threads", "1000000000"], "a block of 1000000000 threads is above the limit of 1024"),
    ],
)
def test_mistakes_are_said(arguments, message, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["explain", *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)
