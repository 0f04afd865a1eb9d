# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %%
# The write-up of the study of banks, warps, alignment and occupancy: one section an experiment, then the claims. Figures are
# looked up in the tidy tables of one run, sentences are chosen by verdicts and figures; nothing measured is written down here.
from dataclasses import replace

from transpose_study.report import measures, sections, statistics
from transpose_study.report.figures import declared_figures
from transpose_study.report.page import Page
from transpose_study.report.texts import EMPTY, Listing, text
from transpose_study.report.verdicts import CANNOT_BE_TOLD, DOES_NOT_HOLD, HOLDS, NOT_MEASURED, Verdicts, topics_of
from transpose_study.report.wording import derived, highest, lowest, missing, quotient

page = Page.open()
r = page.results
V = Verdicts(page)
study, experiment = r.study, r.experiment
axes, modes = experiment.config.axes, experiment.config.timing.cache_modes
hot, cold = modes[0], modes[-1]
declared = declared_figures(study.name, experiment.root)
say, choose, counter, timing = page.say, V.choose, r.counter, r.timing
LANES = 32  # of a warp; as many banks has shared memory: the same on every NVIDIA GPU so far
CLOSE = 0.05  # share by which rates of starting blocks may differ and still be called one rate
LOADS = {"quantity": "shared_load_wavefronts", "per": "shared_load_instructions"}
CONTROL = ("BRA", "BRX", "BSSY", "BSYNC", "WARPSYNC", "BREAK")  # opcodes of a branch that was left as one
TOPICS = topics_of(page, [
    ("banks", ["stride-2", "column-32", "consecutive-one-bank", "compiler-pads-static", "padding-formula", "pitch-33-multiple", "latency-linear", "store-instructions-rise", "vector-phases"]),
    ("swizzles", ["scalar-swizzle-float4", "xor-power-of-two", "xor-out-of-range", "pad-plus-xor"]),
    ("divergence", ["divergence-rounds", "divergence-peak-16", "ternary-no-divergence"]),
    ("alignment", ["misaligned-5-sectors", "misaligned-halves", "malloc-4-byte"]),
    ("occupancy", ["occupancy-lower-faster", "registers-multiple-32"]),
    ("warps and memories", ["warp-order", "shared-fast-10x"]),
])
TOPIC = dict(TOPICS)
KEY = ["latency-linear", "pitch-33-multiple", "misaligned-halves", "divergence-peak-16", "ternary-no-divergence", "occupancy-lower-faster", "shared-fast-10x"]


def ways(cell, measure=LOADS):
    """Wavefronts of one shared access, counted, else predicted."""
    found = measures.measured(r, cell, measure)
    return found if found.known else measures.predicted(r, cell, measure)


def values(axis):
    """The configured values of an axis, in order."""
    return sorted(axes.get(axis) or [0])


def ends(axis):
    """The smallest and the largest of them."""
    return values(axis)[0], values(axis)[-1]


def instructions(cell, *opcodes):
    """Executed instructions of a warp, all or those of some opcodes: counted by the profiler, else by the emulator."""
    rows = [x for x in r.rows("instructions", cell) if not opcodes or x["opcode"] in opcodes] if r.has_table("instructions") else []
    name = text("instructions of {cell}", cell=r.label(cell))
    if not r.has_table("instructions") or not r.rows("instructions", cell):
        return missing(name, "no instruction was counted or predicted")
    values = [x["measured_per_warp"] or x["predicted_per_warp"] for x in rows]
    if "" in values:
        return missing(name, "not every instruction was counted or predicted")
    return derived(sum(map(float, values)), name=name, origin=f"tables/instructions.csv: {study.short_name(cell)}: measured_per_warp, {', '.join(opcodes) or '*'}")


def slope(figure, low, high):
    """What each further wavefront adds to a figure, from the cell with the fewest to the one with the most."""
    a, b, x, y = figure(low), figure(high), ways(low), ways(high)
    for amount in (a, b, x, y):
        if not amount.known:
            return missing(amount.name, amount.reason)
    if x.number == y.number:
        return missing(a.name, "no stride of this run has a conflict")
    return derived((b.number - a.number) / (y.number - x.number), a.unit, name=a.name, origin=f"({b.origin} - {a.origin}) / ({y.origin} - {x.origin})")


def cycles(cell):
    return counter(cell, "cycles_per_access")


def whole(amount):
    """A figure without decimals."""
    return replace(amount, value=float(round(amount.number))) if amount.known else amount


# %%
sections.banner(page)

# %% [markdown]
# ## Summary

# %%
widths, strides = values("width"), values("stride")
worst_stride = max(strides, key=lambda s: ways(r.cell("bank_load", width=widths[0], stride=s)).value or 0)
easy, hard = ({v: r.cell(v, width=widths[0], stride=s) for v in ("bank_latency", "bank_load", "bank_store")} for s in (strides[0], worst_stride))
further = slope(cycles, easy["bank_latency"], hard["bank_latency"])
longer, times_longer = (quotient(f(hard[v]), f(easy[v])) for v, f in (("bank_latency", cycles), ("bank_load", timing)))
aligned, shifted = (r.cell("copy_offset", offset=x) for x in (0, 1))
lanes = values("lanes")
one_path, few, half = (r.cell("branch_long", lanes=x) for x in (0, lanes[min(1, len(lanes) - 1)], lanes[len(lanes) // 2]))
slower = {m: quotient(timing(shifted, "median_us", m), timing(aligned, "median_us", m)) for m in modes}
in_counts = {v: len(V.with_verdict(v)) for v in (HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_MEASURED)}
if V.claims:
    say(text(
        "Of {n} statements that tutorials make about banks, warps, alignment and occupancy, {a} hold on this device, {b} do not, {c} cannot be told and {d} were not measured ({table}; each with its figures in {all}). Square brackets hold 95 % intervals; figures in bold type come from the compiled code, all others were measured.",
        n=len(V.claims), a=in_counts[HOLDS], b=in_counts[DOES_NOT_HOLD], c=in_counts[CANNOT_BE_TOLD], d=in_counts[NOT_MEASURED], table=page.table_ref("verdicts"), all=page.table_ref("claims"),
    ))
compared, equal, _ = sections.equality(page, {})
floor = {m: r.noise_floor(m, r.home(study.variant("copy_offset"))) for m in modes}
page.items(
    text("Banks: each further wavefront adds {x:n} cycles to a load of {a}. A load with {n:n} wavefronts takes {l:n} times as long when one warp waits for it, and {t:n} times when every warp loads.", x=further, a=cycles(easy["bank_latency"]), n=ways(hard["bank_load"]), l=longer, t=times_longer),
    text("Divergence: with both sides of a long branch taken, the kernel runs {x:n} times as long as with every lane on the second side (sines), be it for {a} lane or for {b} ({y:n} times).", x=quotient(timing(few), timing(one_path)), y=quotient(timing(half), timing(one_path)), a=few.kernel_values["lanes"], b=lanes[len(lanes) // 2]),
    text("Alignment: a copy that starts one element off reads {s:n} sectors for each {a:n} and takes {h:n} times as long with a hot L2 (noise floor {f}), {c:n} times with a cold one (noise floor {g}).", f=floor[hot], g=floor[cold], s=counter(shifted, "global_load_sectors_per_request"), a=counter(aligned, "global_load_sectors_per_request"), h=slower[hot], c=slower[cold]),
    text("Predictions: of {n:n} figures that must be equal, {k:n} are.", n=compared, k=equal) if compared.number else "Predictions: nothing can be compared in this run.",
)
if V.claims:
    V.chosen(KEY, "Statements about which learners ask most, on this device.", "conclusions")
    V.counts(TOPICS, "All judged statements at a glance.")

# %% [markdown]
# ## 1 Bank conflicts
#
# Shared memory has as many banks as a warp has lanes, each one word of four bytes wide. An access is served in as many
# wavefronts as its busiest bank has different words to give; lanes that want the same word share it.

# %%
page.figure("bank_stride")
rows = []
for w in widths:
    low, high = ({v: r.cell(v, width=w, stride=s) for v in easy} for s in (strides[0], max(strides, key=lambda s: ways(r.cell("bank_load", width=w, stride=s)).value or 0)))
    rows.append([derived(w), ways(low["bank_load"]), ways(high["bank_load"]), cycles(low["bank_latency"]), cycles(high["bank_latency"]), slope(cycles, low["bank_latency"], high["bank_latency"]), timing(low["bank_load"]), timing(high["bank_load"]), timing(low["bank_store"]), timing(high["bank_store"])])
page.table(
    "What a conflict costs: the stride without and the one with the worst conflict.",
    ["Bytes of an access", "Wavefronts, least", "most", "Cycles of a load, least", "most", "for each further wavefront", "Time of loads, least, µs", "most, µs", "Time of stores, least, µs", "most, µs"],
    rows, source="`tables/counters.csv`, `tables/timings.csv`", name="bank_cost",
    notes=["The cycles are those of a load and of the one logic instruction that makes its address of the value before."],
)
page.figure("bank_cost")
steady = slope(timing, easy["bank_load"], hard["bank_load"])
apart = timing(easy["bank_load"]).number - steady.number * ways(easy["bank_load"]).number if steady.known else 0
say(
    choose("vector-phases", holds=text("Accesses of {w} bytes go in phases: without any conflict they take {a:n} wavefronts, as the lanes of a phase fill all banks; a conflict is counted within a phase.", w=widths[-1], a=ways(r.cell("bank_load", width=widths[-1], stride=strides[0]))), fails=text("Accesses of {w} bytes take {a:n} wavefronts without a conflict, which phases of half and quarter warps do not explain.", w=widths[-1], a=ways(r.cell("bank_load", width=widths[-1], stride=strides[0])))),
    choose("latency-linear", holds="A conflict makes the access of a single warp longer in proportion to its ways.", fails=text("A conflict does not make the access of a single warp longer in proportion to its ways: the first wavefront comes after {a:n} cycles, each further one {x:n} later, so that {n:n} take {l:n} times as long.", a=cycles(easy["bank_latency"]), x=further, n=ways(hard["bank_load"]), l=longer)),
    text("Where every warp loads at once, {n:n} wavefronts instead of {m:n} take {t:n} times as long{why}.", n=ways(hard["bank_load"]), m=ways(easy["bank_load"]), t=times_longer, why=text(": the latency is hidden, the wavefronts are not") if times_longer.known and longer.known and times_longer.number > longer.number else EMPTY),
    text("Of the {a:n} µs without a conflict {r:n} µs are no wavefronts but the launch and all else, which a conflict does not multiply.", a=timing(easy["bank_load"]), r=derived(apart, origin=f"{timing(easy['bank_load']).origin} - {ways(easy['bank_load']).origin} * ({steady.origin})")) if apart > 0 else "",
    choose("store-instructions-rise", holds="The count of store instructions rises with the conflict.", fails=text("The count of store instructions does not rise with the conflict: it is {a:n} without and {b:n} with it. What rises are wavefronts, since one instruction is served several times.", a=counter(easy["bank_store"], "shared_store_instructions"), b=counter(hard["bank_store"], "shared_store_instructions"))),
)
V.line("stride-2", "vector-phases", "latency-linear", "store-instructions-rise")

# %%
page.figure("bank_sharing")
most = ends("sharers")
say(
    text("Lanes that read one word share it, however many they are (wavefronts of a load: {a:n}); different words of one bank take a wavefront each ({b:n} where nobody shares).", a=ways(r.cell("bank_broadcast", sharers=most[1])), b=ways(r.cell("bank_multicast", sharers=most[0]))),
    choose("consecutive-one-bank", holds="Consecutive words do fall into one bank.", fails=text("Consecutive words fall into different banks, not into one (wavefronts of a load: {a:n}).", a=ways(easy["bank_load"]))),
)
page.figure("bank_column")
pitches = values("pitch")
multiple = max((p for p in pitches if p % 2 and p % (LANES + 1) == 0), default=pitches[-1])
column = {p: r.cell("bank_column", bytes=study.itemsize, pitch=p) for p in pitches}
say(
    choose("column-32", holds=text("A column of `tile[32][32]` lies in one bank: wavefronts {a:n}.", a=ways(column[pitches[0]])), fails=text("A column of `tile[32][32]` does not lie in one bank: wavefronts {a:n}.", a=ways(column[pitches[0]]))),
    choose("pitch-33-multiple", holds="A pitch that is a multiple of the padded one conflicts again.", fails=text("A pitch that is a multiple of the padded one brings no conflict back by itself: with a pitch of {p} elements the wavefronts of a column are {a:n}. What counts is the pitch of the shared array modulo the banks, and the matrix in global memory has no part in it.", p=multiple, a=ways(column[multiple]))),
    choose("padding-formula", holds="The formula for the padding gives rows without conflicts.", fails="The formula for the padding rounds a row up to whole sectors, as global memory likes it. Banks ask for the opposite, a row of an odd number of words: one word of padding after an even number."),
    choose("compiler-pads-static", holds="Static arrays do not conflict where dynamic ones do.", fails="The compiler pads neither static nor dynamic arrays: the language has the elements of an array follow one another without gaps."),
)
V.line("consecutive-one-bank", "column-32", "pitch-33-multiple", "padding-formula", "compiler-pads-static")

# %% [markdown]
# ## 2 Swizzles
#
# A tile that is written by rows and read by columns needs each column spread over the banks. Padding adds a word to each
# row, so that each begins one bank after the row before; a swizzle permutes the words within a row. `transpose-study swizzle`
# answers for any formula whether it fits a tile.

# %%
page.figure("swizzle_ways")
page.figure("swizzle_banks")
tile = values("tile")[-1]
padded, both = (r.cell(v, tile=tile) for v in ("swizzle_padded", "swizzle_padded_xor"))
turned, crossed = (timing(r.cell(v, tile=tile)) for v in ("swizzle_rotated", "swizzle_xor_masked"))
odd = [t for t in values("tile") if t & (t - 1)]  # no powers of two
VECTORS = {"vector_none": "as it is", "vector_scalar_xor": "swizzle of words", "vector_xor": "swizzle of vectors"}
page.table(
    "A column of `float4` elements, by layout.", ["Layout", "Loads", "Wavefronts of a load", "Wavefronts of all loads and stores", "Time, µs"],
    [[words, counter(r.cell(v), "shared_load_instructions"), ways(r.cell(v)), counter(r.cell(v), "shared_wavefronts_exact"), timing(r.cell(v))] for v, words in VECTORS.items()],
    source="`tables/counters.csv`, `tables/timings.csv`", name="vectors",
)
say(
    choose("xor-out-of-range", holds="Without a mask the formula leaves the row as soon as a tile has more rows than columns, so those cells are refused before they run.", fails="Without a mask the formula stays in the row at every width of this run."),
    choose("xor-power-of-two", holds="With a mask of the width less one it stays inside for widths that are a power of two, and for no others.", fails="With a mask it works for widths that are no power of two as well."),
    text("Rotation serves any width: with {n} columns the wavefronts of a column are {a:n}.", n=odd[-1], a=ways(r.cell("swizzle_rotated", tile=odd[-1]))) if odd else "",
    text("Where the width is an argument of the kernel, the remainder costs instructions: {a:n} µs for {n} columns, where XOR takes {b:n} µs.", a=turned, b=crossed, n=tile) if turned.known and crossed.known and turned.number > crossed.number else "",
    choose("pad-plus-xor", holds="Padding and XOR together spread a column at least as well as either alone.", fails=text("Padding and XOR together undo each other: the wavefronts of a column are {a:n} on average, with padding alone {b:n}.", a=ways(both), b=ways(padded))),
    choose("scalar-swizzle-float4", holds=text("The swizzle of words cannot serve vector accesses: as a formula of vectors it leaves their row, as one of words it takes each vector apart, which then needs {b:n} loads where the swizzle of vectors needs {a:n}.", a=counter(r.cell("vector_xor"), "shared_load_instructions"), b=counter(r.cell("vector_scalar_xor"), "shared_load_instructions")), fails="The swizzle of words can serve a tile of vectors, but a vector no longer lies in one piece, so each is read word by word: as many wavefronts in all, with more instructions."),
)
V.line(*TOPIC.get("swizzles", ()))

# %% [markdown]
# ## 3 Divergence
#
# Lanes of a warp that take different paths take turns: the warp executes every path that one of its lanes takes. A branch around
# few instructions the compiler often replaces by predicated ones, which are issued for the whole warp and ignored by some lanes.

# %%
page.figure("divergence")
rows = []
for v in ("branch_short", "branch_ternary", "branch_long"):
    cells = [r.cell(v, lanes=x) for x in (lanes[0], lanes[len(lanes) // 2], lanes[-1])]
    jumps = instructions(cells[1], *CONTROL)
    rows.append([f"`{v}`", jumps, *(instructions(c) for c in cells), *(timing(c) for c in cells), (EMPTY if not jumps.known else "branches" if jumps.number else "predicated instructions")])
page.table(
    "What the compiler made of the branch: instructions of a warp, read from the machine code as it ran.",
    ["Kernel", "Branch instructions", *(text("All, {n} lanes", n=x) for x in (lanes[0], lanes[len(lanes) // 2], lanes[-1])), *(text("Time, {n} lanes, µs", n=x) for x in (lanes[0], lanes[len(lanes) // 2], lanes[-1])), "It became"],
    rows, source="`tables/instructions.csv`, `tables/timings.csv`", align="lrrrrrrrl", name="predication",
    notes=[text("Branch instructions are {list}.", list=Listing([f"`{x}`" for x in CONTROL])), "`branch_short` and `branch_ternary` have half as many square roots and sines to make as `branch_long`."],
)
paths = ends("paths")
say(
    choose("divergence-rounds", holds=text("As soon as one lane leaves the others the warp issues both sides: {a:n} instructions instead of {b:n} and {c:n}.", a=instructions(few), b=instructions(one_path), c=instructions(r.cell("branch_long", lanes=lanes[-1]))), fails="The two sides together do not cost the sum of both."),
    choose("divergence-peak-16", holds="The cost peaks when half of the lanes take each side.", fails=text("The cost has no peak at half of the lanes: it is {a:n} µs for {n} lane and {b:n} µs for {m}. Only the threads an instruction serves change.", a=timing(few), b=timing(half), n=few.kernel_values["lanes"], m=lanes[len(lanes) // 2])),
    choose("ternary-no-divergence", holds="The conditional operator diverges less than the branch.", fails=text("The conditional operator is no cure: for the same short body it gives {a:n} instructions, the branch {b:n}, and both are predicated.", a=instructions(r.cell("branch_ternary", lanes=lanes[len(lanes) // 2])), b=instructions(r.cell("branch_short", lanes=lanes[len(lanes) // 2])))),
    text("With {n} paths a warp takes {x:n} times as long as with one; its instructions serve {a:n} threads instead of {b:n}.", n=paths[1], x=quotient(timing(r.cell("branch_paths", paths=paths[1])), timing(r.cell("branch_paths", paths=paths[0]))), a=counter(r.cell("branch_paths", paths=paths[1]), "threads_per_instruction"), b=counter(r.cell("branch_paths", paths=paths[0]), "threads_per_instruction")),
)
V.line(*TOPIC.get("divergence", ()))

# %% [markdown]
# ## 4 Alignment
#
# Global memory is fetched in sectors, four to a line. A warp that reads as many bytes as a line holds touches one sector more
# where its first byte is not the first of a sector, and a second line where it is not the first of a line.

# %%
page.figure("alignment")
page.table(
    "A copy of rows by their pitch in global memory.", ["Pitch, elements", "Sectors per load", "Lines, loads and stores", *(text("Time, {mode}, µs", mode=x) for x in modes)],
    [[derived(c.kernel_values["row_pitch"]), *(counter(c, q) for q in ("global_load_sectors_per_request", "global_lines")), *(timing(c, "median_us", x) for x in modes)] for c in r.cells_of("copy_pitch")],
    source="`tables/counters.csv`, `tables/timings.csv`", name="pitches",
)
given = [counter(c, "alignment_bytes") for c in r.cells_of("allocation")]
say(
    choose("misaligned-5-sectors", holds=text("One element off, a load touches {a:n} sectors instead of {b:n}.", a=counter(shifted, "global_load_sectors_per_request"), b=counter(aligned, "global_load_sectors_per_request")), fails=text("One element off, a load touches {a:n} sectors; aligned {b:n}.", a=counter(shifted, "global_load_sectors_per_request"), b=counter(aligned, "global_load_sectors_per_request"))),
    choose("misaligned-halves", holds="That halves the speed.", fails=text("That does not halve the speed: the time is {h:n} times the aligned one with a hot L2 and {c:n} times with a cold one. The further sector is one that the next warp needs as well, so it can come out of a cache.", h=slower[hot], c=slower[cold])),
    choose("malloc-4-byte", holds="The allocator gives addresses of less alignment than its documentation promises.", fails=text("No wrapper is needed: of {n} sizes asked for, the smallest alignment the allocator gave is {a:n} bytes.", n=len(given), a=lowest(given))) if given else "",
)
V.line(*TOPIC.get("alignment", ()))

# %% [markdown]
# ## 5 Occupancy
#
# Resident warps hide latency; so do independent operations within a thread. What either buys shows when the other is held
# back: shared memory limits the resident blocks, and each thread has one or several loads or chains of multiply-adds at a time.

# %%
page.figure("occupancy")
ilps, held = values("ilp"), values("shared_kib")
rows = []
for c in r.cells_of("occupancy_memory"):
    if c.kernel_values["ilp"] in (ilps[0], ilps[-1]):
        twin = r.cell("occupancy_compute", **c.kernel_values)
        rows.append([derived(c.kernel_values["ilp"]), derived(c.kernel_values["shared_kib"]), r.predicted(c, "resident_blocks_per_sm"), r.predicted(c, "theoretical_occupancy_pct"), counter(c, "achieved_occupancy_pct"), timing(c, "bandwidth_gb_s", cold), timing(twin, "median_us", hot)])
page.table(
    "Occupancy limited by shared memory, with the fewest and the most independent operations.", ["Operations", "Shared memory of a block, KiB", "Resident blocks", "Occupancy, theoretical, %", "achieved, %", text("Copy, {mode}, GB/s", mode=cold), text("Multiply-adds, {mode}, µs", mode=hot)],
    rows, source="`tables/predictions.csv`, `tables/counters.csv`, `tables/timings.csv`", name="occupancy",
)
page.figure("block_sizes")
blocks = [c for c in r.cells_of("block_memory") if c.kernel_values["ilp"] == ilps[0]]
rates = {c.kernel_values["threads"]: quotient(derived(study.geometry(c).blocks), timing(c)) for c in blocks}
page.table(
    "A copy of one element a thread by the threads of a block.", ["Threads of a block", "Blocks", "Occupancy, theoretical, %", "achieved, %", "Time, µs", "Blocks per µs"],
    [[derived(c.kernel_values["threads"]), derived(study.geometry(c).blocks), r.predicted(c, "theoretical_occupancy_pct"), counter(c, "achieved_occupancy_pct"), timing(c), rates[c.kernel_values["threads"]]] for c in blocks],
    source="`tables/predictions.csv`, `tables/counters.csv`, `tables/timings.csv`", name="block_sizes",
)
fastest = highest(list(rates.values())) if rates else missing("", "")
launched = [n for n, x in rates.items() if x.known and x.number > (1 - CLOSE) * fastest.number]
if len(launched) > 1:
    say(text("With {sizes} threads a block the time follows the number of blocks: the device starts {x:n} blocks a microsecond, whatever they hold, and blocks that small end before the multiprocessors are full. Occupancy has no part in that.", sizes=Listing(launched), x=fastest))
gains = [quotient(timing(r.cell(v, ilp=ilps[0], threads=n)), timing(r.cell(v, ilp=ilps[-1], threads=n))) for v in ("block_memory", "block_compute") for n in ends("threads")]
say(text("With {n} elements a thread instead of {m} a copy runs {a:n} times as fast in blocks of {s} threads and {b:n} times in blocks of {l}; with {n} chains of multiply-adds instead of {m} a kernel runs {c:n} and {d:n} times as fast.", n=ilps[-1], m=ilps[0], s=ends("threads")[0], l=ends("threads")[-1], **dict(zip("abcd", gains, strict=True))))
page.figure("registers")
limited = r.cells_of("occupancy_registers")
twins = [r.cell("registers_compute", **c.kernel_values) for c in limited]
page.table(
    "Occupancy limited by registers.", ["Registers of a thread", "Resident blocks", "Occupancy, theoretical, %", "achieved, %", text("Copy, {mode}, µs", mode=hot), text("Multiply-adds, {mode}, µs", mode=hot)],
    [[r.predicted(c, "registers_per_thread"), r.predicted(c, "resident_blocks_per_sm"), r.predicted(c, "theoretical_occupancy_pct"), counter(c, "achieved_occupancy_pct"), timing(c), timing(twin)] for c, twin in zip(limited, twins, strict=True)],
    source="`tables/predictions.csv`, `tables/counters.csv`, `tables/timings.csv`", name="registers",
)
full = r.cell("occupancy_memory", ilp=ilps[0], shared_kib=held[0])
half_full = [c for c in r.cells_of("occupancy_memory") if (o := quotient(r.predicted(c, "theoretical_occupancy_pct"), r.predicted(full, "theoretical_occupancy_pct"))).known and o.number <= 1 / 2]
halfway = r.best(half_full, cold)
say(
    text("With one load at a time and {o} occupancy a copy reaches {x}; with {n} loads at a time and {p} ({b}) it reaches {y}.", o=r.predicted(full, "theoretical_occupancy_pct"), x=timing(full, "bandwidth_gb_s", cold), n=halfway.kernel_values["ilp"], b=r.label(halfway), p=r.predicted(halfway, "theoretical_occupancy_pct"), y=timing(halfway, "bandwidth_gb_s", cold)) if halfway else "",
    choose("occupancy-lower-faster", holds="So a kernel with half the occupancy can be the faster one: what counts are operations in flight, which a thread can provide as well.", fails="No kernel with half the occupancy was faster than its fully occupied counterpart here."),
    choose("registers-multiple-32", holds="Occupancy falls sharply beyond multiples of a warp's lanes.", fails="Registers are handed out in small units, and occupancy falls along one curve, whole blocks at a time: the steps are high where registers are few, and multiples of a warp's lanes are no special places."),
    text("With {n:n} registers a thread instead of {m:n} occupancy is {o} instead of {p}; a copy of one element a thread then takes {x:n} times as long, one chain of multiply-adds {y:n} times.", n=r.predicted(limited[-1], "registers_per_thread"), m=r.predicted(limited[0], "registers_per_thread"), o=r.predicted(limited[-1], "theoretical_occupancy_pct"), p=r.predicted(limited[0], "theoretical_occupancy_pct"), x=quotient(timing(limited[-1]), timing(limited[0])), y=quotient(timing(twins[-1]), timing(twins[0]))) if limited else "",
)
V.line(*TOPIC.get("occupancy", ()))

# %% [markdown]
# ## 6 Threads and warps
#
# Threads of a block are numbered along x first, then y, then z; a warp is a run of consecutive numbers.

# %%
page.figure("warp_lanes")
asked = r.cells_of("warp_lanes")
right = [c for c in asked if r.status(c)[0] == "ok"]
say(
    text("Asked by a shuffle and by the register of the lane's number, the hardware gave the predicted warp and lane for every thread of {n} of {m} block shapes.", n=len(right), m=len(asked)),
    choose("warp-order", holds="Where the width of a block is a multiple of a warp's lanes, a warp lies in one row; in narrower blocks it goes on in the next.", fails="A warp does not lie in one row even where the width of a block is a multiple of its lanes."),
)
V.line("warp-order")

# %% [markdown]
# ## 7 Memories

# %%
page.figure("memories")
first, second = (r.cell("global_latency", touch=x) for x in ends("touch"))
shared_rate, global_rate = (measures.measured(r, r.cell(bar["cell"]), {k: v for k, v in bar.items() if k in measures.KEYS}) for bar in declared["memories"]["panels"][1]["bars"])
say(
    text("A load from shared memory takes {a:n} cycles, one from global memory {b:n} when it hits L1, {c:n} when it hits L2 and {d:n} when it must go to DRAM.", a=cycles(easy["bank_latency"]), b=cycles(second), c=cycles(first), d=counter(first, "cycles_per_access_cold")),
    text("All multiprocessors together load {x} from shared memory, a copy through DRAM moves {y}, reads and writes together: {q:n} times as much.", x=whole(shared_rate), y=whole(global_rate), q=quotient(shared_rate, global_rate)),
    choose("shared-fast-10x", holds="About ten times as fast is a fair summary of that.", fails="About ten times as fast is no fair summary: it depends on whether latency or bandwidth is meant, and on which cache the global load hits."),
)
V.line("shared-fast-10x")

# %%
if V.claims:
    page.heading(2, "8 The folklore, judged")
    say("Each statement is held against the tables of this run. On another device a verdict may differ.")
    V.table(TOPICS, "Statements, verdicts and the figures that decided them.")

# %% [markdown]
# ## 9 Predicted and measured

# %%
say("The predictions come from the compiled code, the launch and the device's limits alone; an emulator executes the warps and counts what they do. No measured counter enters them but the shared configuration, which the driver chooses.")
page.figure("predicted_and_measured")
words = declared["predicted_and_measured"]["quantities"] | {
    "shared_conflicts_exact": "True conflicts", "shared_load_wavefronts": "Load wavefronts", "shared_store_wavefronts": "Store wavefronts", "barriers": "Barriers",
    "global_load_sectors_per_request": "Sectors per load request", "global_store_sectors_per_request": "Sectors per store request", "shared_allocated_bytes_per_block": "Shared bytes allocated per block",
    "limit_blocks": "Limit by blocks", "limit_registers": "Limit by registers", "limit_shared_memory": "Limit by shared memory", "limit_warps": "Limit by warps", "check_failed": "Faults found by the check",
}
if sections.predictions(page, words, sections.NOTES):
    say(sections.must_be_equal(page, words))
else:
    say("No prediction has a measured counterpart in this run.")

# %% [markdown]
# ## 10 Method and limits
#
# Every kernel is checked bit for bit against its definition before it is timed. Times are medians of samples taken in rounds
# that visit every kernel once, in a random order; hot is back to back, cold with L2 displaced. Cycles are read from the
# multiprocessor's own clock around a chain of loads, each of which needs the one before; the logic instruction that makes the
# next address is part of them. Counters come from single launches. The kernels are small on purpose: what they show is one
# rule each, not what a program gains from following it.

# %%
sections.measured_shapes(page, "Experiment")
statistics.noise(page, "Experiment")
statistics.clocks(page, "Experiment")

# %% [markdown]
# ## How to repeat this
#
# The targets `all` and `archive` measure and pack this study with the main one, as the key `also` of `config/config.yaml` says;
# `kernels/micro` holds the kernels, `config/micro.yaml` the values of the axes, `config/claims-micro.yaml` the statements. Each table and figure names the file it
# was made from. `transpose-study diagnose` says of any one kernel what limits it.
