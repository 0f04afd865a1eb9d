"""What one warp touches at each load and store of a kernel, and the words of shared memory that lie in each bank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from transpose_study.simt.blocks import buffers_of
from transpose_study.simt.boxes import Batch, Box
from transpose_study.simt.counters import BANKS, SECTOR_BYTES, WORD_BYTES, sectors, wavefronts
from transpose_study.simt.machine import Launch, Machine, Program
from transpose_study.simt.memory import Access, GlobalMemory

PREFERRED_BANK = 13  # of lane 0 in the access that is drawn: at 0 an XOR and a rotation would look alike


@dataclass(frozen=True)
class Touch:
    """One memory instruction as one warp of one block executes it. ``address`` holds the active lanes' bytes."""

    line: int
    text: str
    space: str
    kind: str
    width: int
    warp: int
    address: tuple[int, ...]
    sectors: int
    wavefronts: int
    ideal: int

    @property
    def stride(self) -> int | None:
        """Bytes from lane to lane, or None where it is not the same throughout."""
        steps = {b - a for a, b in pairwise(self.address)}
        return steps.pop() if len(steps) == 1 else None

    def sentence(self) -> str:
        """Why the access costs what it costs."""
        lanes = f"{len(self.address)} lanes of {self.width} bytes" if len(self.address) > 1 else f"1 lane of {self.width} bytes"
        return f"{lanes}, {self._spread()}: {self._cost()}"

    def _spread(self) -> str:
        if len(self.address) == 1:
            return "alone"
        if self.stride is None:
            ordered = sorted(self.address)
            packed = all(b - a == self.width for a, b in pairwise(ordered))
            return "side by side in another order" if packed else "not evenly spaced"
        if self.stride == 0:
            return "all at one address"
        return "one after the other" if self.stride == self.width else f"{self.stride} bytes from lane to lane"

    def _cost(self) -> str:
        if self.space == "global":
            used = len(set(self.address)) * self.width
            waste = "" if used == self.sectors * SECTOR_BYTES else f", of whose {self.sectors * SECTOR_BYTES} bytes {used} are used"
            return f"1 request, {self.sectors} sector{'s' * (self.sectors != 1)}{waste}"
        taken = f"{self.wavefronts} wavefront{'s' * (self.wavefronts != 1)}"
        if self.wavefronts == self.ideal:
            return f"no bank has two words to deliver at once, {taken}"
        return f"{self.wavefronts // self.ideal}-way bank conflict, {taken} instead of {self.ideal}"


@dataclass
class _Recorder:
    """Observer: every access of the batch's only block."""

    touches: list[Touch] = field(default_factory=list)

    def barrier(self, line: int, mask: np.ndarray, machine: Machine) -> None:
        """Barriers touch nothing."""

    def access(self, access: Access, machine: Machine) -> None:
        """Record the access of each warp."""
        texts = {i.line: i.text for i in machine.kernel.instructions}
        counted = sectors(access.address, access.mask, access.width)
        taken, ideal = wavefronts(access.address, access.mask, access.width)
        for warp in np.flatnonzero(access.mask.any(1)):
            lanes = access.mask[warp]
            self.touches.append(
                Touch(
                    line=access.line,
                    text=texts[access.line],
                    space=access.space,
                    kind=access.kind,
                    width=access.width,
                    warp=int(warp),
                    address=tuple(int(a) for a in access.address[warp][lanes]),
                    sectors=int(counted[warp]),
                    wavefronts=int(taken[warp]),
                    ideal=int(ideal[warp]),
                )
            )


def touches(program: Program, launch: Launch, block: tuple[int, int, int] = (0, 0, 0)) -> list[Touch]:
    """Every access of one block, in the order of execution, warp by warp."""
    recorder = _Recorder()
    batch = Batch([Box(block, (1, 1, 1), (1, 1, 1))], launch.block)
    Machine(program, launch, batch, GlobalMemory(buffers_of(program, launch)), observers=[recorder], tracked=True).run()
    return recorder.touches


@dataclass(frozen=True)
class BankPicture:
    """Words of shared memory that one warp's store and load touch: row and bank of each, of ``rows`` rows of 32 banks."""

    rows: int
    store: tuple[tuple[int, int], ...]
    load: tuple[tuple[int, int], ...]
    store_wavefronts: int
    load_wavefronts: int

    @property
    def conflict(self) -> int:
        """Words that the fullest bank must deliver to the load."""
        banks = [b for _, b in set(self.load)]
        return max((banks.count(b) for b in set(banks)), default=0)


def bank_picture(program: Program, launch: Launch, block: tuple[int, int, int] = (0, 0, 0)) -> BankPicture | None:
    """The picture of a kernel's shared memory, or None if it uses none."""
    shared = [t for t in touches(program, launch, block) if t.space == "shared"]
    loads = [t for t in shared if t.kind == "load"]
    stores = [t for t in shared if t.kind == "store"]
    if not loads or not stores:
        return None
    load = min(loads, key=lambda t: (abs(_words(t)[0][1] - PREFERRED_BANK), t.warp))
    store = stores[len(stores) // 2]
    rows = -(-(program.shared_bytes + launch.dynamic_shared) // (BANKS * WORD_BYTES))
    return BankPicture(rows, tuple(_words(store)), tuple(_words(load)), store.wavefronts, load.wavefronts)


def _words(touch: Touch) -> list[tuple[int, int]]:
    """(row, bank) of each word touched."""
    words = [a // WORD_BYTES + w for a in touch.address for w in range(max(1, touch.width // WORD_BYTES))]
    return [(w // BANKS, w % BANKS) for w in words]


def terminal_picture(picture: BankPicture) -> list[str]:
    """Lines of text: two rows of banks in each, the load's words as blocks, the store's as light shade."""
    load, store = set(picture.load), set(picture.store)
    lines = ["bank 0" + " " * (BANKS - 9) + "31"]
    for top in range(0, picture.rows, 2):
        line = ""
        for bank in range(BANKS):
            upper, lower = (top, bank) in load, (top + 1, bank) in load
            light = (top, bank) in store or (top + 1, bank) in store
            line += {(True, True): "█", (True, False): "▀", (False, True): "▄"}.get((upper, lower), "░" if light else "·")
        lines.append(line)
    return lines


def picture_sentence(picture: BankPicture) -> str:
    """What the picture shows."""
    if picture.conflict <= 1:
        return "The words of the load (dark) lie in different banks, one in each: one wavefront delivers them all."
    return f"{picture.conflict} words of the load (dark) lie in one bank, which delivers one of them in a wavefront."


_LOAD, _STORE, _EMPTY, _INK = "#0072b2", "#e6a86a", "#eef0f2", "#5c6268"


def svg_picture(pictures: Sequence[tuple[str, BankPicture]]) -> str:
    """The pictures side by side as an SVG, each under its title."""
    cell, gap, top = 7, 28, 34
    width = BANKS * cell
    height = top + max(p.rows for _, p in pictures) * cell + 24
    total = len(pictures) * width + (len(pictures) - 1) * gap + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" width="{total}" height="{height}" '
        'font-family="DejaVu Sans, sans-serif" font-size="10">'
    ]
    for number, (title, picture) in enumerate(pictures):
        left = 4 + number * (width + gap)
        parts.append(f'<text x="{left}" y="14" fill="{_INK}" font-weight="bold">{_escape(title)}</text>')
        parts.append(f'<text x="{left}" y="28" fill="{_INK}" font-size="8">bank 0</text>')
        parts.append(f'<text x="{left + width}" y="28" fill="{_INK}" font-size="8" text-anchor="end">31</text>')
        load, store = set(picture.load), set(picture.store)
        for row in range(picture.rows):
            for bank in range(BANKS):
                fill = _LOAD if (row, bank) in load else _STORE if (row, bank) in store else _EMPTY
                parts.append(f'<rect x="{left + bank * cell}" y="{top + row * cell}" width="{cell - 1}" height="{cell - 1}" fill="{fill}"/>')
        waves = f"load: {picture.load_wavefronts} wavefront{'s' * (picture.load_wavefronts != 1)}"
        parts.append(f'<text x="{left}" y="{top + picture.rows * cell + 14}" fill="{_INK}">{waves}, store: {picture.store_wavefronts}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
