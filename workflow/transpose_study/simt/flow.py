"""Control flow of a PTX kernel: its basic blocks, and where diverging branches join again."""

from __future__ import annotations

from dataclasses import dataclass

from transpose_study.simt.ptx import Instruction, Kernel, Sym


@dataclass(frozen=True)
class Flow:
    """``leaders``: first instructions of basic blocks; ``joins``: branch -> instruction of its immediate post-dominator.

    A branch whose ways meet only at the kernel's end has no join.
    """

    leaders: frozenset[int]
    joins: dict[int, int]


def targets(kernel: Kernel, ins: Instruction) -> list[int]:
    """Instructions a branch may jump to."""
    if ins.opcode == "brx":
        table = ins.operands[1]
        names = kernel.tables[table.name] if isinstance(table, Sym) else ()
        return [kernel.labels[n] for n in names]
    label = ins.operands[0]
    return [kernel.labels[label.name]] if isinstance(label, Sym) else []


def analyse(kernel: Kernel) -> Flow:
    """Find basic blocks and immediate post-dominators."""
    code = kernel.instructions
    end = len(code)
    leaders = {0, *(i for i in kernel.labels.values() if i < end)}
    for index, ins in enumerate(code):
        if ins.opcode in ("bra", "brx", "ret", "exit", "trap"):
            leaders.add(index + 1)
            leaders.update(targets(kernel, ins) if ins.opcode in ("bra", "brx") else ())
    starts = sorted(i for i in leaders if i < end)
    last = {start: [*starts, end][n + 1] - 1 for n, start in enumerate(starts)}
    successors: dict[int, list[int]] = {end: []}
    for start in starts:
        ins = code[last[start]]
        following: list[int] = []
        if ins.opcode in ("bra", "brx"):
            following += targets(kernel, ins)
        if ins.opcode in ("ret", "exit", "trap"):
            following.append(end)
        if ins.opcode not in ("bra", "brx", "ret", "exit", "trap") or ins.guard:
            following.append(last[start] + 1)
        successors[start] = list(dict.fromkeys(following))
    post = _post_dominators(successors, end)
    joins = {}
    for start in starts:
        if code[last[start]].opcode in ("bra", "brx"):
            join = _immediate(post, start)
            if join is not None and join != end:
                joins[last[start]] = join
    return Flow(frozenset(starts), joins)


def _post_dominators(successors: dict[int, list[int]], end: int) -> dict[int, set[int]]:
    """All post-dominators of each block, itself included (iterated to the fixed point)."""
    everything = set(successors)
    post = {block: {end} if block == end else set(everything) for block in successors}
    changed = True
    while changed:
        changed = False
        for block in sorted(successors, reverse=True):
            if block == end:
                continue
            meets = [post[s] for s in successors[block]]
            new = {block} | (set.intersection(*meets) if meets else set())
            if new != post[block]:
                post[block], changed = new, True
    return post


def _immediate(post: dict[int, set[int]], block: int) -> int | None:
    """The post-dominator that all other strict post-dominators of the block post-dominate."""
    strict = post[block] - {block}
    return next((c for c in strict if strict <= post[c]), None)
