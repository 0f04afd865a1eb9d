# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %%
# The write-up of the transpose study. It mirrors the published study section by section; every figure in it is looked up
# in the tidy tables of one run, and sentences are chosen by what the figures say. Nothing measured is written down here.
from transpose_study.report.page import Page
from transpose_study.report.wording import (
    Amount, beside, derived, highest, listing, lowest, missing, number, plural, quotient, sentence, versus, with_unit,
)

page = Page.open()
r = page.results
study, experiment, env = r.study, r.experiment, r.environment
gpu = experiment.gpu
main, group = experiment.main_group, experiment.groups[experiment.main_group].values
modes = experiment.config.timing.cache_modes
say, m, p = page.say, r.measured, r.published

COPY, NAIVE, TILE, LOOP, UNCHECKED = "copy", "naive", "tiled_padded_32x32", "looped_padded_32x8", "looped_padded_32x8_unchecked"
FOUR = {COPY: "copy", NAIVE: "naive", TILE: "32x32 tile", LOOP: "32x8 loop"}
FIVE = FOUR | {UNCHECKED: "unchecked loop"}
NOUN = {COPY: "copy", NAIVE: "naive kernel", TILE: "32x32 tile", LOOP: "32x8 loop", UNCHECKED: "unchecked loop"}
TWO = {k: FOUR[k] for k in (TILE, LOOP)}
WARP, SECTOR_BYTES = 32, 32  # lanes of a warp, bytes of a sector: the same on every NVIDIA GPU so far
NEAR_PEAK = 80  # percent of its peak from which a unit is called near it
SAME = 0.01  # counters that differ by less than this share are called equal
CLOSE = 0.2  # share by which a figure may miss what is expected of it and still be called near that

cells = r.cells()
transposes = [c for c in cells if c.variant.computes == "transpose"]
written = {k: str(v["cell"]) for k, v in (experiment.published or {}).get("kernels", {}).items()}


def of(kernel):
    """The cell that a published kernel is."""
    return r.cell(written[kernel])


def timed(kernel, column="median_us", what="time"):
    """A timing of a published kernel at the main shape."""
    if kernel not in written:
        return missing(f"{what} of the {NOUN[kernel]}", "no published study is configured")
    return r.timing(of(kernel), column).named(f"{what} of the {NOUN[kernel]}")


def counted(kernel, quantity):
    """A counter of a published kernel at the main shape."""
    name = f"{quantity.replace('_', ' ')} of the {NOUN[kernel]}"
    return r.counter(of(kernel), quantity).named(name) if kernel in written else missing(name, "no published study is configured")


def mib(size):
    return with_unit(number(size / 2**20), "MiB")


# %%
page.raw(f"# {study.title} on {gpu['name']}")
day = str(env.get("start") or "")[: len("YYYY-MM-DD")] or "an unrecorded day"
if experiment.replay:
    archive = str(experiment.target["archive"]).replace("\\", "/").split("/")[-1]
    lines = [f"**Replay** of the archive `{archive}`, recorded on {day} on {gpu['name']}. Nothing was measured on the machine that made this page."]
else:
    lines = [f"**Live run** on {gpu['name']}, measured on {day}."]
absent = r.absences()
if not absent:
    lines.append("Every configured cell was timed.")
for where, status, reason, names in absent:
    lines.append(f"At {where}, {status}: {listing(names)}: {reason}.")
for reason, (count, total) in r.counter_absences().items():
    lines.append(f"Counters: {number(count)} of {number(total)} figures are missing: {reason}.")
page.raw("\n>\n".join(f"> {line}" for line in lines))

# %% [markdown]
# ## 1 Preface
#
# This page repeats, on one GPU, a published study of float matrix transpose, in the order of that study and with a row for
# every row of its tables. *Published* figures are always set in italics and come from the study's own device; all others
# were measured on the device named above. The tables that hold every figure lie in the folder `tables/` of the run.

# %%
elements, matrix_bytes = study.element_count(group), study.matrix_bytes(group)
say(
    f"The question is how to transpose a matrix of {main} {study.axes['dtype'].value} elements: naively, through a tile in shared",
    "memory, or through a tile that fewer threads work off in a loop. Each kernel is timed by itself and, separately, profiled.",
)
labels = {
    "looped_padded_32x8_gb_s": "Effective bandwidth of the 32x8 loop, GB/s",
    "percent_of_copy": "The same as a share of the copy's, %",
    "speedup_over_naive": "Speed of the 32x8 loop over the naive kernel",
    "unchecked_gives_clear_benefit": "Removing the bounds checks brings a clear gain",
}


def yes_or_no(amount):
    return ("yes" if amount.number else "no") if amount.known else amount


rows = []
for quantity, label in labels.items():
    theirs, ours = p("headline", quantity, ""), m("headline", quantity, "").named(label.partition(",")[0].lower())
    if quantity == "unchecked_gives_clear_benefit":
        theirs, ours = f"*{yes_or_no(theirs)}*" if theirs.known else "–", yes_or_no(ours)
    rows.append([label, theirs if isinstance(theirs, str) or theirs.known else "–", ours])
page.table(
    "The study's headline, published and on this device.", ["", "published", "measured"], rows,
    source="`tables/published.csv`", notes=["Bandwidths from arithmetic means, as the study's."], align="lrr",
)

# %%
def best_sentence(mode):
    best = r.best(transposes, mode)
    if best is None:
        return sentence("{x}", x=missing(f"fastest transpose ({mode})", "no transpose was timed in this cache mode"))
    bandwidth, share = r.timing(best, "bandwidth_gb_s", mode), r.timing(best, "percent_of_peak", mode)
    copied = r.timing(best, "ratio_to_memcpy", mode)
    text = f"With a {mode} L2 the fastest transpose is {r.label(best)}: " + "{bandwidth:i}, {share} of the nominal peak"
    if share.known and share.number > 100:
        text += ", more than the memory can deliver, so part of the data came out of a cache"
    return sentence(text + (", {copied:n} times the bandwidth of a device-to-device memcpy" if copied.known else "") + ".", bandwidth=bandwidth, share=share, copied=copied if copied.known else "")


loop_to_copy = timed(LOOP, "ratio_to_copy", "speed relative to the copy")  # taken within rounds
loop_to_naive = quotient(timed(NAIVE), timed(LOOP), name="speed of the loop relative to the naive kernel")
unchecked_to_loop = quotient(timed(LOOP), timed(UNCHECKED), name="speed of the unchecked loop relative to the loop")
floor = r.noise_floor()


def outcome(ratio, one, other, published):
    """Which of two is faster, or that no clear difference is seen."""
    tail = "; the ratio of their speeds is {x:i}" + beside(published) + "."
    return sentence(
        versus(
            ratio, r.margin(), above=f"The {one} is faster than the {other}{tail}", below=f"The {one} is slower than the {other}{tail}",
            level=f"Between the {one} and the {other} no clear difference is seen{tail}",
        ), x=ratio,
    )


page.raw("In short, from medians at the main shape:")
page.items(
    *(best_sentence(mode) for mode in modes),
    outcome(loop_to_copy, "32x8 loop", "scalar copy", missing("", "")),
    outcome(loop_to_naive, "32x8 loop", "naive kernel", p("headline", "speedup_over_naive", "")),
    outcome(unchecked_to_loop, "unchecked loop", "32x8 loop", missing("", "")),
    sentence("Differences below {floor} cannot be told from noise: that far apart are two entries of one and the same kernel.", floor=floor),
)

# %% [markdown]
# ## 2 Environment and protocol

# %%
theirs, protocol = (experiment.published or {}).get("environment", {}), (experiment.published or {}).get("protocol", {})


def shown(value, unit=""):
    return "–" if value in (None, "", {}) else f"{number(value)} {unit}".strip() if isinstance(value, int | float) else str(value)


def published_text(text):
    return text if text == "–" else f"*{text}*"


compiler = env.get("compiler") or {}
compiler = compiler if isinstance(compiler, dict) else {"nvcc": compiler}
facts = [
    ("GPU", shown(theirs.get("gpu")), gpu["name"]),
    ("Compute capability", shown(theirs.get("compute_capability")), shown(gpu.get("compute_capability"))),
    ("Streaming multiprocessors", shown(theirs.get("sm_count")), shown(gpu.get("sm_count"))),
    ("L2 cache", mib(theirs["l2_bytes"]) if theirs.get("l2_bytes") else "–", mib(gpu["l2_bytes"])),
    ("Nominal memory bandwidth", shown(theirs.get("dram_peak_gb_s"), "GB/s"), shown(experiment.peak_gb_s, "GB/s")),
    ("Warps an SM holds", shown(theirs.get("max_warps_per_sm")), shown(gpu["threads_per_sm"] // WARP)),
    ("ECC", "–", "on" if gpu.get("ecc") else "off"),
    ("Driver", shown(theirs.get("driver")), shown(env.get("gpu", {}).get("driver") or env.get("driver"))),
    ("CUDA", shown(theirs.get("cuda")), f"driver supports {gpu.get('driver_cuda', '–')}"),
    ("Compiler", shown(theirs.get("build")), f"nvcc {compiler.get('nvcc', '–')}, sm_{experiment.architecture}"),
    ("Nsight Compute", shown(theirs.get("nsight_compute")), shown(env.get("ncu"))),
    ("System", shown(theirs.get("os")), " ".join(str(v) for k, v in (env.get("machine") or {}).items() if k in ("system", "kernel", "architecture")) or "–"),
    ("Element type and layout", f"{protocol['dtype']}, {protocol['layout']}" if protocol else "–", f"{study.axes['dtype'].value}, row-major"),
    ("Shape", f"{protocol['rows']} x {protocol['cols']}" if protocol else "–", f"{main} (main), {plural(len(experiment.groups), 'shape')} in all"),
    ("Input", shown(protocol.get("input_init")), experiment.config.input.init + (f", seed {experiment.config.input.seed}" if experiment.config.input.init == "random" else "")),
    ("Shared array of the tiled kernels", "tile[32][33]", "tile[32][33]; tile[32][32] in `tiled`, `tiled_xor` and `tiled_rotated`"),
    ("Timing", shown(protocol.get("timing")), f"{' and '.join(modes)} L2, device-side intervals behind a delay kernel"),
]
page.table(
    "Environment.", ["", "published", "this device"], [[a, published_text(b), c] for a, b, c in facts],
    source="`environment.json`, `run_config.yaml`", notes=["Figures in italics are the published study's."],
)

# %%
timing, profile = experiment.config.timing, experiment.config.profile
say(
    "Ordinary runs and runs under Nsight Compute are separate: the times come from the former, the counters from the latter, and",
    "no time measured under the profiler is ever quoted as a kernel's time.",
)
say(
    f"In an ordinary run all kernels of a shape are interleaved: each round samples every kernel once, in random order, so that a ratio of two kernels is taken",
    f"within a round. The rounds are spread over at least {plural(timing.processes, 'fresh process', 'fresh processes')}, since the placement of allocations differs between",
    f"them, and go on until every kernel has at least {plural(timing.min_samples, 'sample')} and an interval no wider than {with_unit(number(100 * timing.interval), '%')} of its median, or the time",
    "budget ends. Intervals are bootstrap intervals of the median that resample processes, then rounds.",
)
notes = {
    "hot": f"A *hot* sample is a train of back-to-back launches on the same buffers, divided by their number; the train fills about {with_unit(number(timing.window_us), 'µs')}. It is what the study did.",
    "cold": "A *cold* sample is one launch after the L2 was displaced.",
}
say(*(notes[mode] for mode in modes))
if profile.enabled:
    controls = listing([f"`{n}` under `--cache-control {experiment.batch(n).cache_control}`" for n in experiment.batch_names()])
    say(f"Nsight Compute reads the metric batches {controls}; figures are arithmetic means over the launches.")

rows = []
for name, shape in experiment.groups.items():
    samples = [r.timing(x, "n", modes[0]) for x in r.cells(name)]
    known = [a for a in samples if a.known]
    none = missing("number of samples", "nothing was timed at this shape")
    launched = [int(x["launches"]) for x in r.table("counters") if all(x[a] == str(v) for a, v in shape.values.items()) and x["launches"] not in ("", "0")]
    rows.append([
        name, derived(2 * study.matrix_bytes(shape.values) / 2**20), r.timing(r.cells(name)[0], "footprint_to_l2", modes[0]),
        f"{len(known)} of {len(samples)}", lowest(known) if known else none, highest(known) if known else none,
        lowest([r.timing(x, "processes", modes[0]) for x in r.cells(name)]), derived(max(launched)) if launched else "–",
    ])
page.table(
    "What was measured at each shape.",
    ["Shape", "Both matrices, MiB", "÷ L2", "Kernels timed", "Samples, fewest", "most", "Processes", "ncu launches"],
    rows, source="`tables/timings.csv`, `tables/counters.csv`", align="lrrrrrrr",
)
flagged = sorted({flag.split(" ")[0] for x in r.table("timings") for flag in x["flags"].split(";") if flag})
meaning = {
    "above_peak": "above the nominal peak, hence served by a cache", "throttled": "clocks were held down in at least one sample",
    "unconverged": "the interval is wider than asked for", "skewed": "mean and median part, a heavy tail", "clock_drift": "the SM clock moved",
}
if flagged:
    say(f"Flags that occur in the tables of times: {listing([f'`{f}` ({meaning.get(f, f)})' for f in flagged])}. Flagged samples are kept.")
else:
    say("No sample carries a flag: none above the nominal peak, none throttled, no interval wider than asked for.")

# %% [markdown]
# ### 2.1 Effective bandwidth
#
# Effective bandwidth counts one read and one write of each element, whatever the hardware really moves, and divides by the
# time. Its unit is the decimal gigabyte per second.
#
# $$B = \frac{\text{bytes read} + \text{bytes written}}{t}$$

# %%
moved = study.effective_bytes(group)
say(
    f"At {main} a matrix has {number(elements)} elements and {number(matrix_bytes)} bytes, which is {with_unit(number(matrix_bytes / 1e6), 'MB')} or {mib(matrix_bytes)};",
    f"a transpose that reads and writes each element once moves {number(moved)} bytes.",
    sentence(
        "The loop's median time of {t} turns this into {b}, which is {s} of the nominal {peak}.",
        t=timed(LOOP), b=timed(LOOP, "bandwidth_gb_s", "bandwidth"), s=timed(LOOP, "percent_of_peak", "share of the peak"), peak=derived(experiment.peak_gb_s, "GB/s"),
    ),
)

# %% [markdown]
# ## 3 Analysis
#
# ### 3.1 Predicting sectors per request from the access pattern

# %%
coalesced = derived(WARP * study.itemsize / SECTOR_BYTES, "sectors")
say(
    f"A full warp of {WARP} lanes that reads {WARP} consecutive, aligned elements of {study.itemsize} bytes touches {coalesced} of {SECTOR_BYTES} bytes. Where each lane",
    f"reads from another row, the same request touches {WARP}. The naive kernel's reads cross rows and its writes are consecutive, so the pattern alone predicts",
    f"{WARP} sectors for each of its load requests and {coalesced:n} for each of its store requests, and {coalesced:n} in both directions once a tile in shared memory",
    "turns the reads around.",
)
page.published_table(
    f"Requests to global memory and the sectors they touch.", "global_access",
    {
        "load_requests": "Load requests", "load_sectors": "Load sectors", "load_sectors_per_request": "Sectors per load request",
        "store_requests": "Store requests", "store_sectors": "Store sectors", "store_sectors_per_request": "Sectors per store request",
    }, FOUR,
)
page.figure("sectors_per_request")


def pattern(kernel):
    """What the sectors per request of a kernel say about its two directions."""
    out = {}
    for way in ("load", "store"):
        amount = m("global_access", f"{way}_sectors_per_request", kernel).named(f"sectors per {way} request of the {NOUN[kernel]}")
        ratio = quotient(amount, coalesced)
        out[way] = (amount, versus(ratio, SAME, above="not coalesced", below="below the pattern of a full warp", level="coalesced"))
    (load, loads), (store, stores) = out["load"], out["store"]
    both = f"loads and stores are both {loads}" if loads == stores else f"loads are {loads}, stores are {stores}"
    return sentence(f"The {NOUN[kernel]}'s {both}" + " ({load:n} and {store:n} sectors per request).", load=load, store=store)


say(*(pattern(k) for k in FOUR))

# %% [markdown]
# ### 3.2 DRAM traffic

# %%
page.published_table(
    "Traffic between L2 and DRAM, and hit rates.", "dram_and_cache",
    {"dram_read_mb": "DRAM read", "dram_write_mb": "DRAM written", "l1_hit_pct": "L1 hit rate", "l2_hit_pct": "L2 hit rate"}, FOUR,
)
matrix_mb = derived(matrix_bytes / 1e6, "MB")
reads = {k: quotient(m("dram_and_cache", "dram_read_mb", k), matrix_mb, name=f"DRAM reads of the {NOUN[k]}") for k in FOUR}
writes = {k: quotient(m("dram_and_cache", "dram_write_mb", k), matrix_mb, name=f"DRAM writes of the {NOUN[k]}") for k in FOUR}
touched = quotient(m("global_access", "load_sectors", NAIVE), derived(matrix_bytes / SECTOR_BYTES), name="sectors touched by the naive kernel's loads")
say(
    sentence(
        "As multiples of one matrix, the versions read between {low:n} and {high:n} from DRAM; the naive kernel reads {naive:n}, while the sectors that its load requests touch amount to {touched:n} matrices.",
        low=lowest(list(reads.values())), high=highest(list(reads.values())), naive=reads[NAIVE], touched=touched,
    ),
    sentence(
        versus(
            quotient(reads[NAIVE], touched), CLOSE,
            above="So DRAM delivers more than those sectors.",
            below="So most of what its requests touch more than once does not come from DRAM again.",
            level="So what its requests touch more than once comes from DRAM again.",
        ), x=quotient(reads[NAIVE], touched),
    ),
)
hit = {k: m("dram_and_cache", "l2_hit_pct", k).named(f"L2 hit rate of the {NOUN[k]}") for k in FOUR}
others = highest([hit[k] for k in FOUR if k != NAIVE])


def hit_words():
    """What the naive kernel's hit rate may explain."""
    if not all(a.known for a in (hit[NAIVE], others, reads[NAIVE], touched)):
        return "what it explains cannot be told without its traffic."
    if hit[NAIVE].number <= others.number:
        return "it does not set the naive kernel apart."
    if reads[NAIVE].number < touched.number * (1 - CLOSE):
        return "a possible reason why DRAM delivers less than its requests touch."
    return "DRAM delivers about as much as its requests touch."


say(
    sentence(
        "The naive kernel's L2 hit rate is {naive}" + beside(p("dram_and_cache", "l2_hit_pct", NAIVE)) + ", against at most {others} in the other versions: " + hit_words(),
        naive=hit[NAIVE], others=others,
    ),
)
low, high = lowest(list(writes.values())), highest(list(writes.values()))
below_one = [f"the {NOUN[k]}" for k in FOUR if writes[k].known and writes[k].number < 1 - SAME]
say(
    sentence("Written to DRAM are between {low:n} and {high:n} matrices.", low=low, high=high),
    (f"Less than one matrix is written by {listing(below_one)}: dirty lines remain in L2 when the kernel ends. That is no inconsistency, since L2 is the point of coherence; they are written back later, outside the measurement."
     if below_one else "No version writes less than one matrix, so no dirty lines are seen to remain in L2 when a kernel ends.") if low.known else "",
)

# %% [markdown]
# ### 3.3 The bottleneck moves
#
# #### 3.3.1 Bandwidth and counters

# %%
page.published_table(
    "Effective bandwidth from ordinary runs (arithmetic means).", "effective_bandwidth_gb_s", {"effective_bandwidth_gb_s": "Effective bandwidth"}, FOUR,
)
launches = m("protocol", "ncu_runs", "").named("number of ncu launches")
say(sentence("The counters that follow are means over {n:n} launches under Nsight Compute" + beside(p("protocol", "ncu_runs", "")) + ".", n=launches))
page.published_table(
    "Counters (arithmetic means).", "counters",
    {
        "l1tex_throughput_pct": "L1TEX throughput", "l2_throughput_pct": "L2 throughput", "dram_throughput_pct": "DRAM throughput",
        "memory_throughput_pct": "Memory throughput", "sm_throughput_pct": "SM throughput", "achieved_occupancy_pct": "Achieved occupancy",
        "eligible_warps": "Eligible warps a scheduler", "issue_active_pct": "Issue active", "warp_instructions": "Warp instructions",
        "stall_long_scoreboard": "Long-scoreboard stall ratio", "stall_barrier": "Barrier stall ratio", "stall_short_scoreboard": "Short-scoreboard stall ratio",
    }, FIVE,
)
page.figure("throughput_by_unit")

# %%
UNITS = {"l1tex_throughput_pct": "L1TEX", "l2_throughput_pct": "L2", "dram_throughput_pct": "DRAM", "sm_throughput_pct": "the SM"}


def c(quantity, kernel):
    return m("counters", quantity, kernel).named(f"{quantity.removesuffix('_pct').replace('_', ' ')} of the {NOUN[kernel]}")


def busiest(kernel):
    """(name of the unit, its throughput) with the highest share of its peak."""
    shares = {u: c(q, kernel) for q, u in UNITS.items()}
    top = highest(list(shares.values()))
    return next((u for u, a in shares.items() if a is top), ""), top


say("Read by unit, each version's busiest one is:")
page.items(*(
    sentence(f"{NOUN[k]}: {busiest(k)[0]}" + " at {top} of its peak" + ("" if busiest(k)[0] == "DRAM" else "; DRAM is at {dram}") + ".", top=busiest(k)[1], dram=c("dram_throughput_pct", k))
    for k in FIVE
))
dram_gain = quotient(c("dram_throughput_pct", LOOP), c("dram_throughput_pct", TILE))
per_request = [m("global_access", f"{way}_sectors_per_request", k) for way in ("load", "store") for k in TWO]
same_pattern = all(a.known for a in per_request) and all(abs(a.number / b.number - 1) < SAME for a, b in zip(per_request[::2], per_request[1::2], strict=True))
say(
    sentence(
        versus(
            dram_gain, SAME,
            above="From the 32x32 tile to the loop, DRAM throughput rises from {a} to {b}",
            below="From the 32x32 tile to the loop, DRAM throughput falls from {a} to {b}",
            level="From the 32x32 tile to the loop, DRAM throughput hardly changes ({a} and {b})",
        ) + (" with the same sectors per request: a difference that coalescing does not explain." if same_pattern and dram_gain.known and abs(dram_gain.number - 1) > SAME
             else " with the same sectors per request." if same_pattern else "; their sectors per request are not all equal."),
        a=c("dram_throughput_pct", TILE), b=c("dram_throughput_pct", LOOP),
    ),
    *(
        sentence(
            versus(quotient(c(q, LOOP), c(q, TILE)), SAME, above=f"{what} from {{a}} up to {{b}}.", below=f"{what} from {{a}} down to {{b}}.", level=f"{what} from {{a}} to {{b}}, hardly a change."),
            a=c(q, TILE), b=c(q, LOOP),
        )
        for q, what in (("eligible_warps", "The eligible warps of a scheduler go"), ("issue_active_pct", "Issue activity goes"))
    ),
    "More eligible warps and busier schedulers would fit better hiding of latency; by themselves they prove no cause.",
)

# %%
share = m("derived", "unchecked_instruction_ratio", "").named("instruction ratio of the unchecked loop")
expected = m("derived", "expected_stall_ratio_growth", "").named("expected growth of the stall ratios")
grown = {w: m("derived", f"{q}_growth", "").named(f"growth of the {w} ratio") for q, w in (("long_scoreboard", "long-scoreboard"), ("barrier", "barrier"))}
requests = {k: [counted(k, f"global_{way}_requests") for way in ("load", "store")] for k in (LOOP, UNCHECKED)}
equal_requests = [a.value for a in requests[LOOP]] == [a.value for a in requests[UNCHECKED]]
say(
    sentence(
        versus(
            quotient(c("warp_instructions", LOOP), c("warp_instructions", NAIVE)), SAME,
            above="The loop executes more warp instructions than the naive kernel ({b:n} against {a:n}).",
            below="The loop executes fewer warp instructions than the naive kernel ({b:n} against {a:n}).",
            level="The loop executes as many warp instructions as the naive kernel ({b:n} and {a:n}).",
        ), a=c("warp_instructions", NAIVE), b=c("warp_instructions", LOOP),
    ),
    sentence(
        versus(
            share, SAME,
            above="Without bounds checks it executes more, {x:n} times as many" + beside(p("derived", "unchecked_instruction_ratio", "")),
            below="Without bounds checks it executes {x:n} times as many" + beside(p("derived", "unchecked_instruction_ratio", "")),
            level="Without bounds checks it executes about as many, {x:n} times" + beside(p("derived", "unchecked_instruction_ratio", "")),
        ) + (", with the number of global requests unchanged, since both work off {tiles:n} tiles." if equal_requests else "; the number of global requests differs too."),
        x=share, tiles=m("protocol", "tiles", "").named("number of tiles"), a=requests[LOOP][0], b=requests[UNCHECKED][0],
    ),
    outcome(unchecked_to_loop, "unchecked loop", "32x8 loop", missing("", "")),
)
explained = [w for w, a in grown.items() if a.known and expected.known and abs(a.number - expected.number) <= max(CLOSE * abs(expected.number - 1), SAME)]
say(
    sentence(
        "A stall ratio is counted for each issued instruction. With fewer of those, the same waits give higher ratios: the instruction counts alone would multiply them by {e:n}"
        + beside(p("derived", "expected_stall_ratio_growth", "")) + ". Seen are {a:n} for the long scoreboard" + beside(p("derived", "long_scoreboard_growth", "")) + " and {b:n} for the barrier" + beside(p("derived", "barrier_growth", "")) + ".",
        e=expected, a=grown["long-scoreboard"], b=grown["barrier"],
    ),
    ("" if not all(a.known for a in (*grown.values(), expected))
     else "Both are close to that, so they do not show longer latency." if len(explained) == len(grown)
     else f"Only the {explained[0]} ratio is close to that; the other changed by itself." if explained
     else "Neither is close to that, so the denominator alone does not explain them."),
)
page.figure("stall_ratios")

# %%
loop_unit, loop_top = busiest(LOOP)
say(
    sentence(
        f"In sum, the loop's busiest unit is {loop_unit} at " + "{top}" + (beside(p("counters", "dram_throughput_pct", LOOP)) if loop_unit == "DRAM" else "")
        + ", the copy's DRAM throughput is {copy}" + beside(p("counters", "dram_throughput_pct", COPY)) + ". "
        + ("The loop works mainly near the limit of the memory; that this is its only limit is not proven." if loop_unit == "DRAM" and loop_top.known and loop_top.number >= NEAR_PEAK
           else "No unit of the loop is near its peak, so its limit is not a unit's throughput." if loop_top.known and loop_top.number < NEAR_PEAK
           else "DRAM is not the unit that the loop loads most."),
        top=loop_top, copy=c("dram_throughput_pct", COPY),
    )
)

# %% [markdown]
# Two cautions go with these tables. A throughput is a share of a sustained peak; it is neither a hit rate nor a share of
# time. And a summary value is led by its largest component: that the memory throughput equals the DRAM throughput proves
# nothing by itself.
#
# #### 3.3.2 Occupancy

# %%
page.published_table(
    "Resources of a block and the limits of residency.", "occupancy",
    {
        "threads_per_block": "Threads per block", "warps_per_block": "Warps per block", "registers_per_thread": "Registers per thread",
        "shared_config_bytes": "Shared configuration of an SM", "shared_allocated_bytes_per_block": "Shared bytes allocated per block",
        "limit_blocks": "Limit by blocks", "limit_registers": "Limit by registers", "limit_shared_memory": "Limit by shared memory",
        "limit_warps": "Limit by warps", "resident_blocks_per_sm": "Resident blocks per SM", "theoretical_occupancy_pct": "Theoretical occupancy",
    }, TWO,
)
LIMITS = {"limit_blocks": "the number of blocks", "limit_registers": "registers", "limit_shared_memory": "shared memory", "limit_warps": "warps"}


def o(quantity, kernel):
    return m("occupancy", quantity, kernel).named(f"{quantity.replace('_', ' ')} of the {NOUN[kernel]}")


def residency(kernel):
    limits = {words: o(q, kernel) for q, words in LIMITS.items()}
    resident = o("resident_blocks_per_sm", kernel)
    by = [w for w, a in limits.items() if a.known and resident.known and a.number <= resident.number]
    achieved = c("achieved_occupancy_pct", kernel)
    return sentence(
        f"The {NOUN[kernel]} is limited by {listing(by)}: " + "an SM that holds {held} warps has room for {blocks} of {warps:n} warps, a theoretical occupancy of {theory}"
        + ("; {achieved} are achieved." if achieved.known else "."),
        blocks=plural(int(resident.number), "block") if resident.known else resident, warps=o("warps_per_block", kernel),
        held=number(gpu["threads_per_sm"] // WARP), theory=o("theoretical_occupancy_pct", kernel), achieved=achieved if achieved.known else "",
    )


more = quotient(o("registers_per_thread", LOOP), o("registers_per_thread", TILE))
register_limit, loop_resident = o("limit_registers", LOOP), o("resident_blocks_per_sm", LOOP)
say(*(residency(k) for k in TWO))
say(
    sentence(
        versus(more, SAME, above="The loop uses more registers per thread ({a:n} against {b:n})", below="The loop uses fewer registers per thread ({a:n} against {b:n})", level="Both use as many registers per thread ({a:n} and {b:n})")
        + ("; they are among what limits its residency." if register_limit.known and loop_resident.known and register_limit.number <= loop_resident.number else "; they are not what limits its residency."),
        a=o("registers_per_thread", LOOP), b=o("registers_per_thread", TILE), x=register_limit, y=loop_resident,
    ),
    "Occupancy counts resident warps, eligibility counts those that are ready: neither replaces the other, and high occupancy does not promise speed.",
    sentence("The shared configuration ({a} and {b}) is what the driver chose at launch.", a=o("shared_config_bytes", TILE), b=o("shared_config_bytes", LOOP)),
)

# %% [markdown]
# #### 3.3.3 Padding and shared wavefronts

# %%
page.published_table(
    "Wavefronts and bank conflicts of shared memory, by the unit's own counters.", "shared_memory",
    {
        "load_wavefronts": "Load wavefronts", "store_wavefronts": "Store wavefronts",
        "load_bank_conflicts": "Load conflict count", "store_bank_conflicts": "Store conflict count",
    }, TWO,
)
base = m("derived", "ideal_shared_wavefronts_per_direction", "").named("ideal number of shared wavefronts")
excess = {
    way: quotient(m("shared_memory", f"{way}_wavefronts", LOOP).named(f"{way} wavefronts of the loop"), base, name=f"{way} wavefronts of the loop relative to the ideal") for way in ("load", "store")
}


def against_base(way):
    x = excess[way]
    percent = missing(x.name, x.reason) if not x.known else derived(100 * abs(x.number - 1), "%")
    words = "" if not x.known else f"The loop's {way}s equal it." if x.number == 1 else f"The loop's {way}s " + ("exceed" if x.number > 1 else "stay below") + " it by {x}."
    return sentence(words, x=percent)


exact = {k: counted(k, "shared_conflicts_exact") for k in TWO}
say(
    sentence("Without any conflict each direction needs {base:n} wavefronts" + beside(p("derived", "ideal_shared_wavefronts_per_direction", "")) + ".", base=base),
    against_base("load"), against_base("store"),
)
say(
    "The unit's counters also count arbitration with other traffic.",
    sentence(
        "Counted exactly, by instruction, "
        + ("neither kernel has a wavefront beyond its ideal: tile[32][33] has no bank conflict, and what the unit's counters show more is not the layout's."
           if all(a.known and a.number == 0 for a in exact.values())
           else "the wavefronts beyond the ideal are {a:n} for the 32x32 tile and {b:n} for the loop."),
        a=exact[TILE], b=exact[LOOP],
    ),
    "A ratio of wavefronts is no ratio of times.",
)
if r.has_table("banks"):
    page.figure("banks_of_the_tile")

# %% [markdown]
# #### 3.3.4 The BLOCK_ROWS scan

# %%
scan = sorted(
    (x for x in (r.table("block_rows") if r.has_table("block_rows") else ()) if x["variant"] == "tiled_padded" and x["cache_mode"] == modes[0] and all(x[a] == str(v) for a, v in group.items())),
    key=lambda x: int(x["block_rows"]),
)
columns = {"threads_per_block": "Threads per block", "elements_per_thread": "Elements per thread", "mean_ms": "Mean, ms", "slower_than_8_pct": "Slower than at the published best, %"}


def scanned(row, column):
    name = f"{column.replace('_', ' ')} at BLOCK_ROWS {row['block_rows']}"
    key = "slower_than_published_best_pct" if column == "slower_than_8_pct" else column
    ends = [float(row[f"{key}{e}"]) if row.get(f"{key}{e}") else None for e in ("_low", "_high")]
    return Amount(float(row[key]), "", name, *ends) if row.get(key) else missing(name, row["reason"] or "no value was recorded")


rows = []
for x in scan:
    theirs = [p("block_rows_scan", q, f"block_rows {x['block_rows']}") for q in columns]
    if any(a.known for a in theirs):
        rows.append([x["block_rows"], "*published*", *(a if a.known else "–" for a in theirs)])
    rows.append(["" if any(a.known for a in theirs) else x["block_rows"], "measured", *(scanned(x, q) for q in columns)])
page.table(
    f"The padded tile at each BLOCK_ROWS, {modes[0]} L2.", ["BLOCK_ROWS", "", *columns.values()], rows, source="`tables/block_rows.csv`, `tables/published.csv`", align="llrrrr",
    notes=["Italics: published; below: measured on this device. The measured slow-down is the median of ratios taken within rounds; the published one compares means."],
)
page.figure("block_rows_scan")

ranked = sorted((x for x in scan if x["mean_ms"]), key=lambda x: float(x["median_ms"]))
if ranked:
    best_rows, worst_rows = ranked[0], ranked[-1]
    close = [x["block_rows"] for x in ranked[1:] if x["slower_than_best_pct_low"] and float(x["slower_than_best_pct_low"]) <= 100 * r.margin()]
    say(
        f"Here BLOCK_ROWS {best_rows['block_rows']} has the shortest median"
        + (f", though {listing(close)} cannot be told from it" if close else ", clear of the others")
        + f"; the longest, at {worst_rows['block_rows']}, is {with_unit(number(float(worst_rows['slower_than_best_pct'] or 0)), '%')} above it."
        if len(ranked) > 1 else f"Only BLOCK_ROWS {best_rows['block_rows']} was timed.",
        "Fewer rows of threads mean more elements for each thread: that saves repeated instructions and costs registers, and more threads are not always faster.",
    )
else:
    say(sentence("{x}", x=scanned(scan[0], "mean_ms") if scan else missing("scan of BLOCK_ROWS", "`tiled_padded` is not configured at the main shape")))

# %% [markdown]
# ## 4 Beyond the study: the whole ladder
#
# ### 4.1 Every kernel at the main shape

# %%
def ladder(mode):
    rows = []
    for cell in cells:
        t = r.timing(cell, "median_us", mode)
        interval = [Amount(v, "", t.name) if v is not None else missing(t.name, t.reason or "one sample has no interval") for v in (t.low, t.high)]
        flags = next((x["flags"] for x in r.rows("timings", cell, cache_mode=mode)), "").replace("_", " ").replace(";", ", ")
        rows.append([r.label(cell), t, *interval, r.timing(cell, "mean_us", mode), r.timing(cell, "bandwidth_gb_s", mode), r.timing(cell, "percent_of_peak", mode), r.timing(cell, "n", mode), flags])
    page.table(
        f"Times and effective bandwidth of every kernel at {main}, {mode} L2.", ["Kernel", "Median, µs", "from", "to", "Mean, µs", "GB/s", "% of peak", "Samples", "Flags"],
        rows, source="`tables/timings.csv`", notes=["`_b` is BLOCK_ROWS; from and to are the ends of the median's interval; bandwidth is from the median."], align="lrrrrrrrl",
    )


ladder(modes[0])
page.figure("bandwidth_ladder")
rows = []
for cell in cells:
    row = [r.label(cell)]
    for baseline in study.baselines:
        x = r.timing(cell, f"ratio_to_{baseline}", modes[0])
        row += [x, f"{number(x.low)} to {number(x.high)}" if x.low is not None and x.high is not None and x.low < x.high else ""]
    rows.append(row)
page.table(
    f"Speed relative to the copies of the same rounds at {main}, {modes[0]} L2.", ["Kernel", *(h for b in study.baselines for h in (f"÷ {b.replace('_', ' ')}", "interval"))],
    rows, source="`tables/timings.csv`", notes=["A ratio is the copy's time divided by the kernel's, taken within a round: above one the kernel is faster."], align="l" + "r" * 2 * len(study.baselines),
)

# %% [markdown]
# ### 4.2 Sizes, and the edge of L2

# %%
def best_of(variant, name, mode):
    best = r.best([x for x in r.cells(name) if x.variant is variant], mode)
    if best is None:
        mine = [x for x in r.cells(name) if x.variant is variant]
        return missing(f"bandwidth of `{variant.name}` at {name}", r.status(mine[0], mode)[1] if mine else f"{variant.name} is not configured at {name}")
    return best


names = sorted(experiment.groups, key=lambda n: study.matrix_bytes(experiment.groups[n].values))
for mode in modes:
    rows = []
    for variant in experiment.variants():
        row = [f"`{variant.name}`"]
        for name in names:
            best = best_of(variant, name, mode)
            if isinstance(best, Amount):
                row.append(best)
                continue
            suffix = "".join(f" {study.axes[a].tag}{v}" for a, v in best.kernel_values.items())
            row.append(f"{r.timing(best, 'bandwidth_gb_s', mode):n}{suffix}")
        rows.append(row)
    page.table(
        f"Effective bandwidth (GB/s) by shape, the fastest configuration of each variant, {mode} L2.", ["Variant", *names], rows, source="`tables/timings.csv`",
        notes=["After each figure the BLOCK_ROWS that gave it (b). Shapes are in the order of their bytes."], align="l" + "r" * len(names),
    )
page.figure("bandwidth_by_size")
inside = [n for n in names if 2 * study.matrix_bytes(experiment.groups[n].values) <= gpu["l2_bytes"]]
outside = [n for n in names if n not in inside]
say(
    f"Both matrices fit into the L2 of {mib(gpu['l2_bytes'])} at {listing(inside)}." if inside else f"At no configured shape do both matrices fit into the L2 of {mib(gpu['l2_bytes'])}.",
    f"They do not at {listing(outside)}." if outside else "",
)
above = {mode: [n for n in names if any((a := r.timing(x, "percent_of_peak", mode)).known and a.number > 100 for x in r.cells(n))] for mode in modes}
say(*(
    f"With a {mode} L2, figures above the nominal peak occur at {listing(above[mode])}: they speak of the cache, not of the memory." if above[mode]
    else f"With a {mode} L2 no figure lies above the nominal peak." for mode in modes
))

# %% [markdown]
# ### 4.3 Hot against cold

# %%
if len(modes) > 1:
    hot, cold = modes[0], modes[1]
    ladder(cold)
    changes = [(cell, quotient(r.timing(cell, "median_us", cold), r.timing(cell, "median_us", hot))) for cell in transposes]
    known = [(cell, x) for cell, x in changes if x.known]
    if known:
        least, most = min(known, key=lambda k: k[1].number), max(known, key=lambda k: k[1].number)
        hot_best, cold_best = r.best(transposes, hot), r.best(transposes, cold)
        say(
            f"Cold medians of the transposes are between {least[1]:n} ({r.label(least[0])}) and {most[1]:n} times ({r.label(most[0])}) the hot ones.",
            f"The fastest transpose is the same in both, {r.label(hot_best)}." if hot_best == cold_best else f"The fastest transpose differs: {r.label(hot_best)} hot, {r.label(cold_best)} cold.",
        )
    else:
        say(sentence("{x}", x=changes[0][1]) if changes else "No transpose is configured.")
else:
    say(f"Only the cache mode {modes[0]} is configured, so there is nothing to compare.")

# %% [markdown]
# ### 4.4 Noise and drift

# %%
rows = []
for name in experiment.groups:
    for mode in modes:
        rows.append([name, mode, r.noise_floor(mode, name)])
page.table(
    "Noise floor: how far two entries of the same kernel are apart.", ["Shape", "L2", "Noise floor, %"], rows, source="`tables/noise.csv`",
    notes=["The far end of the interval of the ratio of the two entries. A smaller difference between two kernels counts as none."],
)
page.figure("time_over_rounds")

# %%
if r.has_table("predictions"):
    page.raw("## 5 Predicted and measured")
    compared = {}
    for x in r.table("predictions"):
        if x["predicted"] and x["measured"]:
            compared.setdefault(x["quantity"], []).append((float(x["predicted"]), float(x["measured"])))
    say(
        "The predictions come from the compiled code, the launch geometry and the device's limits alone; an emulator executes the",
        "warps and counts what they do. No measured counter enters them.",
    )
    rows = []
    for quantity, pairs in sorted(compared.items()):
        worst = max((abs(b - a) / abs(a) * 100 if a else (0.0 if a == b else float("inf"))) for a, b in pairs)
        rows.append([quantity.replace("_", " "), derived(len(pairs)), derived(sum(a == b for a, b in pairs)), derived(worst) if worst != float("inf") else "zero predicted"])
    if rows:
        page.table("Predicted figures beside measured ones, all shapes.", ["Quantity", "Compared", "Equal", "Largest difference, %"], rows, source="`tables/predictions.csv`", align="lrrr")
    else:
        say("No prediction has a measured counterpart in this run.")
    page.figure("predicted_and_measured")

# %% [markdown]
# ## Where the figures come from
#
# Each table and figure names the file it was made from; all of them lie in the folder of the run. `transpose-study aggregate`
# makes the tables from the raw data, `transpose-study draw` the figures from the tables, and `transpose-study write` this
# page from both.
