# ---
# jupyter:
#   jupytext:
#     formats: py:percent
# ---

# %%
# The write-up of the transpose study, in the order of the published study. Figures are looked up in the tidy tables of one
# run, sentences are chosen by verdicts and figures; nothing measured is written down here. Every text is an English
# template whose other editions lie in paper/transpose.<language>.yaml.
from transpose_study.report import sections, statistics
from transpose_study.report.page import Page
from transpose_study.report.texts import EMPTY, Listing, optional, plural, text
from transpose_study.report.verdicts import CANNOT_BE_TOLD, DOES_NOT_HOLD, HOLDS, NOT_MEASURED, Verdicts, topics_of
from transpose_study.report.wording import Amount, derived, highest, lowest, missing, number, product, quotient, relation

page = Page.open()
r = page.results
V = Verdicts(page)
study, experiment, env = r.study, r.experiment, r.environment
gpu = experiment.gpu
main, group = experiment.main_group, experiment.groups[experiment.main_group].values
modes = experiment.config.timing.cache_modes
say, m, p, choose = page.say, r.measured, r.published, V.choose

COPY, NAIVE, TILE, LOOP, UNCHECKED = "copy", "naive", "tiled_padded_32x32", "looped_padded_32x8", "looped_padded_32x8_unchecked"
FOUR = {COPY: "copy", NAIVE: "naive", TILE: "32x32 tile", LOOP: "32x8 loop"}
FIVE = FOUR | {UNCHECKED: "unchecked loop"}
NOUN = {COPY: "the copy", NAIVE: "the naive kernel", TILE: "the 32x32 tile", LOOP: "the 32x8 loop", UNCHECKED: "the unchecked loop"}
TWO = {k: FOUR[k] for k in (TILE, LOOP)}
WARP, SECTOR_BYTES = 32, 32  # lanes of a warp, bytes of a sector: the same on every NVIDIA GPU so far
SAME = 0.01  # figures that differ by less than this share are called equal
CLOSE = 0.2  # share by which a figure may miss what is expected of it and still be called near that

TOPICS = topics_of(page, [
    ("global access", ["naive-read-sectors", "naive-mapping-swap", "tiling-coalesces-both", "same-requests"]),
    ("DRAM and caches", ["dram-reads-one-matrix", "naive-l2-hits", "write-deficit"]),
    ("time", ["loop-near-copy", "loop-matches-copy", "loop-over-naive", "loop-beats-naive", "loop-over-32x32", "loop-beats-32x32", "block-rows-8-best", "unchecked-fewer-instructions", "unchecked-no-gain", "conflict-slower", "pad-xor-equal"]),
    ("shared memory", ["unpadded-32way", "padding-no-conflict", "xor-no-conflict", "counters-near-zero", "loop-wavefronts", "residual-not-bottleneck"]),
    ("occupancy and scheduling", ["tiling-not-enough", "occupancy-32x32", "carveout-limits-32x32", "achieved-near-theoretical", "registers-not-limit", "loop-dram-limited", "naive-l1tex-pressure", "loop-fewer-instructions", "loop-more-eligible", "stall-ratio-denominator", "occupancy-not-speed"]),
])
TOPIC = dict(TOPICS)
KEY = ["tiling-coalesces-both", "loop-matches-copy", "loop-beats-naive", "loop-beats-32x32", "block-rows-8-best", "unchecked-no-gain", "padding-no-conflict", "occupancy-32x32", "loop-dram-limited"]
cells = r.cells()
transposes = [c for c in cells if c.variant.computes == "transpose"]
written = {k: str(v["cell"]) for k, v in (experiment.published or {}).get("kernels", {}).items()}


def of(kernel):
    """The cell that a published kernel is."""
    return r.cell(written[kernel])


def timed(kernel, column="median_us"):
    """A timing of a published kernel at the main shape."""
    if kernel not in written:
        return missing(text("timing of {k}", k=NOUN[kernel]), "no published study is configured")
    return r.timing(of(kernel), column)


def counted(kernel, quantity):
    """A counter of a published kernel at the main shape."""
    if kernel not in written:
        return missing(text("{q} of {k}", q=f"`{quantity}`", k=NOUN[kernel]), "no published study is configured")
    return r.counter(of(kernel), quantity)


def guessed(quantity):
    """What was predicted of a published kernel, for the tables that show it between published and measured."""
    return lambda kernel: r.predicted(of(kernel), quantity) if kernel in written else missing("", "no published study is configured")


def beside(amount):
    """The published figure in brackets, where there is one."""
    return optional(" (published: {x})", x=amount)


def speed(one, other):
    """How many times faster one published kernel is than another, paired by round where that was computed."""
    if one not in written or other not in written:
        return missing(text("speed of {a} relative to {b}", a=NOUN[one], b=NOUN[other]), "no published study is configured")
    name = study.kernel_name(of(other))
    for x in r.rows("ratios", of(one), cache_mode=modes[0]) if r.has_table("ratios") else ():
        if x["other"] == name and x["speedup"]:
            ends = [float(x[f"speedup_{e}"]) if x[f"speedup_{e}"] else None for e in ("low", "high")]
            return Amount(float(x["speedup"]), "", text("speed of {a} relative to {b}", a=NOUN[one], b=NOUN[other]), *ends, origin=f"tables/ratios.csv: {study.kernel_name(of(one))}, {main}, {modes[0]}, other {name}: speedup")
    return quotient(timed(other), timed(one), name=text("speed of {a} relative to {b}", a=NOUN[one], b=NOUN[other]))


def answer(question, quantity, cell=None, mode=None, other=None):
    """A quantity that answers one of the study's open questions (tables/analysis.csv)."""
    name = text("{q} of {k}", q=f"`{quantity}`", k=r.label(cell) if cell else question)
    for x in r.table("analysis") if r.has_table("analysis") else ():
        if x["question"] != question or x["quantity"] != quantity or (mode and x["cache_mode"] not in ("", mode)) or (other and x["other"] != other):
            continue
        if cell and (x["variant"] != cell.variant.name or any(x[a] != str(v if v is not None else "") for a, v in study.key(cell).items() if a != "variant")):
            continue
        if x["value"] == "":
            why = x["reason"].partition(" of ")[0] if " has no " in x["reason"] else x["reason"]  # the same for every kernel
            return missing(name, why or "no value was recorded", x["unit"])
        ends = [float(x[e]) if x[e] else None for e in ("low", "high")]
        unit = {"ratio": "", "share": "", "bytes/SM": "bytes", "instructions/warp": "", "warps/issue": ""}.get(x["unit"], x["unit"])
        return Amount(float(x["value"]), unit, name, *ends, origin=f"tables/analysis.csv: {question}, {study.kernel_name(cell) if cell else ''}: {quantity}")
    return missing(name, "this question was not analysed in this run")


def mib(size):
    return derived(size / 2**20, "MiB")


# %%
sections.banner(page)

# %% [markdown]
# ## Summary

# %%
in_counts = {v: len(V.with_verdict(v)) for v in (HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD, NOT_MEASURED)}
if V.claims:
    say(
        text(
            "Of {n} statements of the study and of transpose tutorials, {a} hold on this device, {b} do not, {c} cannot be told and {d} were not measured ({table}; all of them with their figures in {all}). Square brackets hold 95 % intervals.",
            n=len(V.claims), a=in_counts[HOLDS], b=in_counts[DOES_NOT_HOLD], c=in_counts[CANNOT_BE_TOLD], d=in_counts[NOT_MEASURED],
            table=page.table_ref("verdicts"), all=page.table_ref("claims"),
        )
    )
floor = r.noise_floor(modes[0])
loop_to_copy, loop_to_naive, loop_to_tile, unchecked_to_loop = speed(LOOP, COPY), speed(LOOP, NAIVE), speed(LOOP, TILE), speed(UNCHECKED, LOOP)


def outcome(ratio, one, other, published=EMPTY):
    """Which of two kernels is faster, or that no clear difference is seen."""
    template = {
        1: "{one} is faster than {other}: the ratio of their speeds is {x:i}{p}.",
        -1: "{one} is slower than {other}: the ratio of their speeds is {x:i}{p}.",
        0: "Between {one} and {other} no clear difference is seen: the ratio of their speeds is {x:i}{p}.",
    }[relation(ratio, r.margin(modes[0]))]
    return text(template, one=f"`{study.kernel_name(of(one))}`" if one in written else one, other=f"`{study.kernel_name(of(other))}`" if other in written else other, x=ratio, p=published)


page.items(
    *sections.best_sentences(page, transposes),
    outcome(loop_to_copy, LOOP, COPY),
    outcome(loop_to_naive, LOOP, NAIVE, beside(p("headline", "speedup_over_naive", ""))),
    outcome(loop_to_tile, LOOP, TILE),
    outcome(unchecked_to_loop, UNCHECKED, LOOP),
    text("A difference below {floor} cannot be told from noise: that far apart are two entries of one and the same kernel.", floor=floor),
)
if V.claims:
    V.chosen(KEY, "The study's main conclusions on this device.", "conclusions")
    V.counts(TOPICS, "All judged claims at a glance.")
    page.items(*(
        text(lead, claims=V.named(verdict))
        for verdict, lead in (
            (HOLDS, "Holds here: {claims}."), (DOES_NOT_HOLD, "Does not hold here: {claims}."),
            (CANNOT_BE_TOLD, "Cannot be told here: {claims}."), (NOT_MEASURED, "Was not measured here: {claims}."),
        ) if in_counts[verdict]
    ))

# %% [markdown]
# ## 1 Preface
#
# This page repeats, on one GPU, a published study of float matrix transpose, in the order of that study and with a row for
# every row of its tables.

# %%
say(
    text("In every table and figure {a} figures are set in italics and come from the study's own device, {b} figures are set in bold type and come from the compiled code without a GPU, and all others were measured on the device named above.", a="*published*", b="**predicted**"),
    text("The tables that hold every figure lie in the folder {folder} of the run; in the HTML edition the row a figure of the text was taken from shows when a pointer rests on it.", folder="`tables/`"),
)
elements, matrix_bytes = study.element_count(group), study.matrix_bytes(group)
say(
    text(
        "The question is how to transpose a matrix of {shape} {dtype} elements: naively, through a tile in shared memory, or through a tile that fewer threads work off in a loop. Each kernel is timed by itself and, separately, profiled.",
        shape=main, dtype=study.axes["dtype"].value,
    )
)
labels = {
    "looped_padded_32x8_gb_s": "Effective bandwidth of the 32x8 loop, GB/s",
    "percent_of_copy": "The same as a share of the copy's, %",
    "speedup_over_naive": "Speed of the 32x8 loop over the naive kernel",
    "unchecked_gives_clear_benefit": "Removing the bounds checks brings a clear gain",
}
rows = []
for quantity, label in labels.items():
    theirs, ours = p("headline", quantity, ""), m("headline", quantity, "")
    if quantity == "unchecked_gives_clear_benefit":
        theirs, ours = [a if not a.known else "yes" if a.number else "no" for a in (theirs, ours)]
        theirs = {"yes": "*yes*", "no": "*no*"}[theirs] if isinstance(theirs, str) else "–"
    rows.append([label, theirs if isinstance(theirs, str) or theirs.known else "–", ours])
page.table(
    "The study's headline, published and on this device.", ["", "*published*", "measured"], rows,
    source="`tables/published.csv`", notes=["Bandwidths from arithmetic means, as the study's."], align="lrr", name="headline",
)
say(
    choose(
        "loop-matches-copy",
        holds=text("The study's conclusion is that the looped tile is as fast as a copy. Here it reaches the scalar copy as well, with {x:i} times its speed.", x=V.figure("loop-matches-copy")),
        fails=text("The study's conclusion is that the looped tile is as fast as a copy. Here it is not: it runs at {x:i} times the speed of the scalar copy.", x=V.figure("loop-matches-copy")),
        unclear=text("The study's conclusion is that the looped tile is as fast as a copy. Whether it is here cannot be told from {x:i} times the speed of the scalar copy.", x=V.figure("loop-matches-copy")),
    ),
    *(
        [{
            1: text("But the scalar copy is no yardstick on this device: the vectorized copy is {x:i} times as fast as it, so that being as fast as the scalar copy says little about the memory.", x=x),
            -1: text("The vectorized copy is no faster than the scalar one here ({x:i} times its speed), which makes the latter a fair yardstick.", x=x),
            0: text("The vectorized copy is as fast as the scalar one here ({x:i} times its speed), which makes the latter a fair yardstick.", x=x),
        }[relation(x, CLOSE / 2)]]
        if (x := next((r.timing(c, "ratio_to_copy", modes[0]) for c in cells if c.variant.name == "copy_vectorized"), missing("", ""))).known else []
    ),
)

# %% [markdown]
# ## 2 Environment and protocol

# %%
theirs, protocol = (experiment.published or {}).get("environment", {}), (experiment.published or {}).get("protocol", {})


def shown(value, unit=""):
    return "–" if value in (None, "", {}) else f"{number(value)} {unit}".strip() if isinstance(value, int | float) else str(value)


compiler = env.get("compiler") or {}
compiler = compiler if isinstance(compiler, dict) else {"nvcc": compiler}
random = experiment.config.input.init == "random"
facts = [
    ("GPU", shown(theirs.get("gpu")), gpu["name"]),
    ("Compute capability", shown(theirs.get("compute_capability")), shown(gpu.get("compute_capability"))),
    ("Streaming multiprocessors", shown(theirs.get("sm_count")), shown(gpu.get("sm_count"))),
    ("L2 cache", shown(theirs["l2_bytes"] / 2**20, "MiB") if theirs.get("l2_bytes") else "–", shown(gpu["l2_bytes"] / 2**20, "MiB")),
    ("Nominal memory bandwidth", shown(theirs.get("dram_peak_gb_s"), "GB/s"), shown(experiment.peak_gb_s, "GB/s")),
    ("Warps an SM holds", shown(theirs.get("max_warps_per_sm")), shown(gpu["threads_per_sm"] // WARP)),
    ("ECC", "–", "on" if gpu.get("ecc") else "off"),
    ("Driver", shown(theirs.get("driver")), shown(env.get("gpu", {}).get("driver") or env.get("driver"))),
    ("CUDA", shown(theirs.get("cuda")), text("driver supports {v}", v=str(gpu.get("driver_cuda", "–")))),
    ("Compiler", shown(theirs.get("build")), f"nvcc {compiler.get('nvcc', '–')}, sm_{experiment.architecture}"),
    ("Nsight Compute", shown(theirs.get("nsight_compute")), shown(env.get("ncu"))),
    ("System", shown(theirs.get("os")), " ".join(str(v) for k, v in (env.get("machine") or {}).items() if k in ("system", "kernel", "architecture")) or "–"),
    ("Element type and layout", f"{protocol['dtype']}, {protocol['layout']}" if protocol else "–", f"{study.axes['dtype'].value}, row-major"),
    ("Shape", f"{protocol['rows']}x{protocol['cols']}" if protocol else "–", text("{main}, and {n} others", main=main, n=len(experiment.groups) - 1)),
    ("Input", shown(protocol.get("input_init")), text("random, seed {seed}", seed=str(experiment.config.input.seed)) if random else "zeros"),
    ("Shared array of the tiled kernels", "tile[32][33]", "tile[32][33]; tile[32][32] in `tiled`, `tiled_xor` and `tiled_rotated`"),
    ("Timing", shown(protocol.get("timing")), text("{modes} L2, device-side intervals behind a delay kernel", modes=Listing(modes))),
]
page.table(
    "Environment.", ["", "*published*", "this device"], [[a, text("*{x}*", x=b) if b != "–" else b, c] for a, b, c in facts],
    source="`environment.json`, `run_config.yaml`", align="lll", name="environment",
)

# %%
timing, profile = experiment.config.timing, experiment.config.profile
say("Ordinary runs and runs under Nsight Compute are separate: the times come from the former, the counters from the latter, and no time measured under the profiler is ever quoted as a kernel's time.")
say(
    text(
        "In an ordinary run all kernels of a shape are interleaved: each round samples every kernel once, in random order, so that a ratio of two kernels is taken within a round. The rounds are spread over at least {processes}, since the placement of allocations differs between processes, and go on until every kernel has at least {samples} and an interval no wider than {width} % of its median, or the time budget ends. Intervals are 95 % bootstrap intervals of the median that resample processes, then rounds.",
        processes=plural(timing.processes, "{n} fresh process", "{n} fresh processes"), samples=plural(timing.min_samples, "{n} sample", "{n} samples"), width=100 * timing.interval,
    )
)
notes = {
    "hot": text("A *hot* sample is a train of back-to-back launches on the same buffers, divided by their number; the train fills about {t} µs. It is what the study did.", t=timing.window_us),
    "cold": text("A *cold* sample is one launch after the L2 was displaced."),
}
say(*(notes[mode] for mode in modes))
if profile.enabled:
    controls = Listing([text("{b} under {c}", b=f"`{n}`", c=f"`--cache-control {experiment.batch(n).cache_control}`") for n in experiment.batch_names()])
    say(text("Nsight Compute reads the metric batches {batches}; figures are arithmetic means over the launches.", batches=controls))
sections.measured_shapes(page)

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
    text(
        "At {main} a matrix has {n} elements and {size} bytes, which is {mb} or {mib}; a transpose that reads and writes each element once moves {moved} bytes.",
        main=main, n=elements, size=matrix_bytes, mb=derived(matrix_bytes / 1e6, "MB"), mib=mib(matrix_bytes), moved=moved,
    ),
    text("The loop's median time of {t} turns this into {b}, which is {s} of the nominal {peak}.", t=timed(LOOP), b=timed(LOOP, "bandwidth_gb_s"), s=timed(LOOP, "percent_of_peak"), peak=derived(experiment.peak_gb_s, "GB/s")),
)

# %% [markdown]
# ## 3 Analysis
#
# ### 3.1 Predicting sectors per request from the access pattern

# %%
coalesced = derived(WARP * study.itemsize / SECTOR_BYTES, "sectors")
say(
    text(
        "A full warp of {warp} lanes that reads {warp} consecutive, aligned elements of {item} bytes touches {few} of {sector} bytes. Where each lane reads from another row, the same request touches {warp}. The naive kernel's reads cross rows and its writes are consecutive, so the pattern alone predicts {warp} sectors for each of its load requests and {few:n} for each of its store requests, and {few:n} in both directions once a tile in shared memory turns the reads around.",
        warp=WARP, item=study.itemsize, few=coalesced, sector=SECTOR_BYTES,
    )
)
page.published_table(
    "Requests to global memory and the sectors they touch.", "global_access",
    {
        "load_requests": "Load requests", "load_sectors": "Load sectors", "load_sectors_per_request": "Sectors per load request",
        "store_requests": "Store requests", "store_sectors": "Store sectors", "store_sectors_per_request": "Sectors per store request",
    }, FOUR, predicted={q: guessed(f"global_{q}") for q in ("load_requests", "load_sectors", "load_sectors_per_request", "store_requests", "store_sectors", "store_sectors_per_request")},
)
page.figure("sectors_per_request")


def pattern(kernel):
    """What the sectors per request of a kernel say about its two directions."""
    load, store = (m("global_access", f"{way}_sectors_per_request", kernel) for way in ("load", "store"))
    good = tuple(a.known and a.number <= coalesced.number * (1 + SAME) for a in (load, store))
    template = {
        (True, True): "{k} reads and writes coalesced ({a:n} and {b:n} sectors per request).",
        (False, True): "{k} reads strided and writes coalesced ({a:n} and {b:n} sectors per request).",
        (True, False): "{k} reads coalesced and writes strided ({a:n} and {b:n} sectors per request).",
        (False, False): "{k} reads and writes strided ({a:n} and {b:n} sectors per request).",
    }[good]
    return text(template, k=f"`{study.kernel_name(of(kernel))}`" if kernel in written else kernel, a=load, b=store)


say(*(pattern(k) for k in FOUR))
say(
    choose("tiling-coalesces-both", holds="With a tile in shared memory both directions are coalesced: tiling mends the naive kernel's reads.", fails="A tile in shared memory does not coalesce both directions here."),
    choose("naive-mapping-swap", holds="Swapping the mapping of the threads instead only moves the strided side from the reads to the writes.", fails="Swapping the mapping of the threads does not simply move the strided side from one direction to the other here."),
)
V.line(*TOPIC.get("global access", ()))

# %% [markdown]
# ### 3.2 DRAM traffic

# %%
page.published_table(
    "Traffic between L2 and DRAM, and hit rates.", "dram_and_cache",
    {"dram_read_mb": "DRAM read", "dram_write_mb": "DRAM written", "l1_hit_pct": "L1 hit rate", "l2_hit_pct": "L2 hit rate"}, FOUR,
)
matrix_mb = derived(matrix_bytes / 1e6, "MB")
reads = {k: quotient(m("dram_and_cache", "dram_read_mb", k), matrix_mb, name=text("DRAM reads of {k}", k=NOUN[k])) for k in FOUR}
writes = {k: quotient(m("dram_and_cache", "dram_write_mb", k), matrix_mb, name=text("DRAM writes of {k}", k=NOUN[k])) for k in FOUR}
touched = quotient(m("global_access", "load_sectors", NAIVE), derived(matrix_bytes / SECTOR_BYTES), name=text("sectors touched by the loads of {k}", k=NOUN[NAIVE]))
say(
    text(
        "As multiples of one matrix, the study's versions read between {low:n} and {high:n} from DRAM; the naive kernel reads {naive:n}, while the sectors that its load requests touch amount to {touched:n} matrices.",
        low=lowest(list(reads.values())), high=highest(list(reads.values())), naive=reads[NAIVE], touched=touched,
    ),
    text(
        {
            1: "So DRAM delivers more than those sectors, {x:n} times as much.",
            -1: "So most of what its requests touch more than once does not come from DRAM again: DRAM delivers {x:n} of it.",
            0: "So what its requests touch more than once comes from DRAM again: DRAM delivers {x:n} of it.",
        }[relation(quotient(reads[NAIVE], touched), CLOSE)], x=quotient(reads[NAIVE], touched, name=text("DRAM reads of {k}", k=NOUN[NAIVE])),
    ),
    choose(
        "dram-reads-one-matrix",
        holds="That every version reads about one matrix holds for the whole ladder.",
        fails=text("For the whole ladder it does not hold that every version reads about one matrix: {cells}.", cells=Listing([
            text("{cell} reads {x:n}", cell=f"`{x['condition'].partition('[')[2].partition(']')[0]}`", x=Amount(float(x["measured"]), origin=f"tables/claim_parts.csv: dram-reads-one-matrix: {x['condition']}"))
            for x in V.parts.get("dram-reads-one-matrix", ()) if x["verdict"] == DOES_NOT_HOLD
        ])),
    ),
)
hit = {k: m("dram_and_cache", "l2_hit_pct", k) for k in FOUR}
l1_hit = m("dram_and_cache", "l1_hit_pct", NAIVE)
others = highest([hit[k] for k in FOUR if k != NAIVE])
apart = hit[NAIVE].known and others.known and hit[NAIVE].number > others.number
spared = reads[NAIVE].known and touched.known and reads[NAIVE].number < touched.number * (1 - CLOSE)
say(
    text("The naive kernel's L2 hit rate is {naive}{p}, against at most {others} in the other versions; in L1TEX it is {l1}{q}.", naive=hit[NAIVE], p=beside(p("dram_and_cache", "l2_hit_pct", NAIVE)), others=others, l1=l1_hit, q=beside(p("dram_and_cache", "l1_hit_pct", NAIVE))),
    "" if not (apart and spared) else "That is a possible reason why DRAM delivers less than its requests touch." if not l1_hit.known or l1_hit.number < hit[NAIVE].number else "A possible reason why DRAM delivers less than its requests touch is therefore L1TEX before L2: what the former holds never asks the latter.",
    choose("naive-l2-hits", holds="As in the study, its L2 hit rate is far above the others', which are close to zero.", fails="The study's reading, a hit rate far above the others' near zero, does not carry over."),
)
low, high = lowest(list(writes.values())), highest(list(writes.values()))
say(
    text("Written to DRAM are between {low:n} and {high:n} matrices.", low=low, high=high),
    choose(
        "write-deficit",
        holds=text("Less than one matrix is written by every version: dirty lines remain in L2 when the kernel ends and are written back later, outside the measurement. That is no inconsistency, since L2 is the point of coherence; {table} follows it over the sizes.", table=page.table_ref("deficit")),
        fails=text("Not every version writes less than one matrix, so no general deficit is seen that dirty lines in L2 would have to explain; {table} follows the sizes.", table=page.table_ref("deficit")),
    ),
)
V.line(*TOPIC.get("DRAM and caches", ()))

# %% [markdown]
# ### 3.3 The bottleneck moves
#
# #### 3.3.1 Bandwidth and counters

# %%
page.published_table("Effective bandwidth from ordinary runs (arithmetic means).", "effective_bandwidth_gb_s", {"effective_bandwidth_gb_s": "Effective bandwidth"}, FOUR)
say(
    choose("loop-beats-naive", holds=text("The loop is faster than the naive kernel, {x:i} times{p}.", x=V.figure("loop-beats-naive"), p=beside(p("headline", "speedup_over_naive", ""))), fails=text("The loop is not faster than the naive kernel, but runs at {x:i} times its speed{p}.", x=V.figure("loop-beats-naive"), p=beside(p("headline", "speedup_over_naive", "")))),
    choose("loop-beats-32x32", holds=text("It is faster than the 32x32 tile, {x:i} times.", x=V.figure("loop-beats-32x32")), fails=text("It is not faster than the 32x32 tile, but runs at {x:i} times its speed.", x=V.figure("loop-beats-32x32"))),
    choose("conflict-slower", holds="The tile without padding is slower than the padded and the XOR tile at every BLOCK_ROWS: here the conflicts cost time.", fails="The tile without padding is not always slower than the padded and the XOR tile: its conflicts are not what limits it everywhere."),
    choose("pad-xor-equal", holds="Padding and XOR differ little in time.", fails="Padding and XOR do not take the same time."),
)
say(text("The counters that follow are means over {n:n} launches under Nsight Compute{p}.", n=m("protocol", "ncu_runs", ""), p=beside(p("protocol", "ncu_runs", ""))))
page.published_table(
    "Counters (arithmetic means).", "counters",
    {
        "l1tex_throughput_pct": "L1TEX throughput", "l2_throughput_pct": "L2 throughput", "dram_throughput_pct": "DRAM throughput",
        "memory_throughput_pct": "Memory throughput", "sm_throughput_pct": "SM throughput", "achieved_occupancy_pct": "Achieved occupancy",
        "eligible_warps": "Eligible warps a scheduler", "issue_active_pct": "Issue active", "warp_instructions": "Warp instructions",
        "stall_long_scoreboard": "Long-scoreboard stall ratio", "stall_barrier": "Barrier stall ratio", "stall_short_scoreboard": "Short-scoreboard stall ratio",
    }, FIVE, predicted={"warp_instructions": guessed("warp_instructions")},
)
page.figure("throughput_by_unit")

# %%
UNITS = {"l1tex_throughput_pct": "L1TEX", "l2_throughput_pct": "L2", "dram_throughput_pct": "DRAM", "sm_throughput_pct": "the SM"}


def c(quantity, kernel):
    return m("counters", quantity, kernel)


def busiest(kernel):
    """(name of the unit, its throughput) with the highest share of its peak."""
    shares = {u: c(q, kernel) for q, u in UNITS.items()}
    top = highest(list(shares.values()))
    return next((u for u, a in shares.items() if a is top), ""), top


say("Read by unit, each version's busiest one is:")
page.items(*(
    text("{k}: {unit} at {top} of its peak.", k=NOUN[k], unit=busiest(k)[0], top=busiest(k)[1]) if busiest(k)[0] == "DRAM"
    else text("{k}: {unit} at {top} of its peak; DRAM is at {dram}.", k=NOUN[k], unit=busiest(k)[0], top=busiest(k)[1], dram=c("dram_throughput_pct", k))
    for k in FIVE
))
say(
    choose(
        "naive-l1tex-pressure",
        holds=text("The naive kernel loads L1TEX heavily ({a}{p}) while DRAM throughput is only {b}{q}: its {n:n} sectors a request go through one unit.", a=c("l1tex_throughput_pct", NAIVE), p=beside(p("counters", "l1tex_throughput_pct", NAIVE)), b=c("dram_throughput_pct", NAIVE), q=beside(p("counters", "dram_throughput_pct", NAIVE)), n=m("global_access", "load_sectors_per_request", NAIVE)),
        fails=text("The naive kernel's L1TEX is at {a}{p} and its DRAM at {b}{q}, which is not the study's picture of an L1TEX near its peak beside a DRAM with room.", a=c("l1tex_throughput_pct", NAIVE), p=beside(p("counters", "l1tex_throughput_pct", NAIVE)), b=c("dram_throughput_pct", NAIVE), q=beside(p("counters", "dram_throughput_pct", NAIVE))),
    ),
    choose(
        "tiling-not-enough",
        holds=text("The 32x32 tile mends the access pattern, yet its DRAM throughput is only {x}{p}, so something else limits it.", x=c("dram_throughput_pct", TILE), p=beside(p("counters", "dram_throughput_pct", TILE))),
        fails=text("The 32x32 tile's DRAM throughput is {x}{p}: coalescing both directions already brings it near the memory's limit here, or it does not coalesce both.", x=c("dram_throughput_pct", TILE), p=beside(p("counters", "dram_throughput_pct", TILE))),
    ),
)
dram_gain = quotient(c("dram_throughput_pct", LOOP), c("dram_throughput_pct", TILE))
per_request = [m("global_access", f"{way}_sectors_per_request", k) for way in ("load", "store") for k in TWO]
same_pattern = all(a.known for a in per_request) and all(abs(a.number / b.number - 1) < SAME for a, b in zip(per_request[::2], per_request[1::2], strict=True))
say(
    text(
        {
            1: "From the 32x32 tile to the loop, DRAM throughput rises from {a} to {b}{same}.",
            -1: "From the 32x32 tile to the loop, DRAM throughput falls from {a} to {b}{same}.",
            0: "From the 32x32 tile to the loop, DRAM throughput hardly changes ({a} and {b}){same}.",
        }[relation(dram_gain, SAME)], a=c("dram_throughput_pct", TILE), b=c("dram_throughput_pct", LOOP),
        same=text(" with the same sectors per request, a difference that coalescing does not explain") if same_pattern and relation(dram_gain, SAME) else text(" with the same sectors per request") if same_pattern else text("; their sectors per request are not all equal"),
    ),
    text(
        {1: "The eligible warps of a scheduler go up from {a:n} to {b:n},", -1: "The eligible warps of a scheduler go down from {a:n} to {b:n},", 0: "The eligible warps of a scheduler stay at {a:n} and {b:n},"}[relation(quotient(c("eligible_warps", LOOP), c("eligible_warps", TILE)), SAME)],
        a=c("eligible_warps", TILE), b=c("eligible_warps", LOOP),
    ),
    text(
        {1: "and issue activity goes up from {a} to {b}.", -1: "and issue activity goes down from {a} to {b}.", 0: "and issue activity stays at {a} and {b}."}[relation(quotient(c("issue_active_pct", LOOP), c("issue_active_pct", TILE)), SAME)],
        a=c("issue_active_pct", TILE), b=c("issue_active_pct", LOOP),
    ),
    choose(
        "loop-more-eligible",
        holds="The loop has more eligible warps and issues more often than every other version, which fits better hiding of latency; by itself that proves no cause.",
        fails="The loop does not lead in both eligible warps and issue activity, so that better hiding of latency is not what these two show.",
    ),
)

# %%
share = m("derived", "unchecked_instruction_ratio", "")
expected = m("derived", "expected_stall_ratio_growth", "")
grown = {w: m("derived", f"{w}_growth", "") for w in ("long_scoreboard", "barrier")}
requests = {k: [counted(k, f"global_{way}_requests") for way in ("load", "store")] for k in (LOOP, UNCHECKED)}
equal_requests = [a.value for a in requests[LOOP]] == [a.value for a in requests[UNCHECKED]]
say(
    choose(
        "loop-fewer-instructions",
        holds=text("The loop executes far fewer warp instructions ({a:n}) than the naive kernel ({b:n}) and the 32x32 tile ({c:n}).", a=c("warp_instructions", LOOP), b=c("warp_instructions", NAIVE), c=c("warp_instructions", TILE)),
        fails=text("That the loop executes far fewer warp instructions does not hold with this compiler and device: it executes {a:n}, the naive kernel {b:n} and the 32x32 tile {c:n}.", a=c("warp_instructions", LOOP), b=c("warp_instructions", NAIVE), c=c("warp_instructions", TILE)),
    ),
    text(
        {
            1: "Without bounds checks the loop executes more of them, {x:n} times as many{p}{requests}",
            -1: "Without bounds checks the loop executes {x:n} times as many{p}{requests}",
            0: "Without bounds checks the loop executes about as many, {x:n} times{p}{requests}",
        }[relation(share, SAME)], x=share, p=beside(p("derived", "unchecked_instruction_ratio", "")),
        requests=text(", with the number of global requests unchanged, since both work off {tiles:n} tiles.", tiles=m("protocol", "tiles", "")) if equal_requests else text("; the number of global requests differs too."),
    ),
    choose(
        "unchecked-no-gain",
        holds=text("As in the study this brings no clear gain in time: the unchecked loop runs at {x:i} times the loop's speed.", x=V.figure("unchecked-no-gain")),
        fails=text("Unlike in the study this changes the time: the unchecked loop runs at {x:i} times the loop's speed.", x=V.figure("unchecked-no-gain")),
        unclear=text("Whether this brings a clear gain in time cannot be told: the unchecked loop runs at {x:i} times the loop's speed.", x=V.figure("unchecked-no-gain")),
    ),
)
say(
    text(
        "A stall ratio is counted for each issued instruction. With fewer of those, the same waits give higher ratios: the instruction counts alone would multiply them by {e:n}{p}. Seen are {a:n} for the long scoreboard{q} and {b:n} for the barrier{s}.",
        e=expected, p=beside(p("derived", "expected_stall_ratio_growth", "")), a=grown["long_scoreboard"], q=beside(p("derived", "long_scoreboard_growth", "")), b=grown["barrier"], s=beside(p("derived", "barrier_growth", "")),
    ),
    choose(
        "stall-ratio-denominator",
        holds="Both are close to that, so the ratios do not show longer waits.",
        fails="Not both are close to that: what is left over changed by itself.",
    ),
    text("{figure} therefore shows the waits for each instruction and, beside it, as warps that wait at any time.", figure=page.figure_ref("stall_ratios")),
)
page.figure("stall_ratios")
loop_unit, loop_top = busiest(LOOP)
say(
    choose(
        "loop-dram-limited",
        holds=text("In sum, the loop runs close to the memory's limit: its DRAM throughput is {a}{p}, the copy's {b}{q}. That this is its only limit is not proven.", a=c("dram_throughput_pct", LOOP), p=beside(p("counters", "dram_throughput_pct", LOOP)), b=c("dram_throughput_pct", COPY), q=beside(p("counters", "dram_throughput_pct", COPY))),
        fails=text("In sum, DRAM is not shown to be the loop's limit: its DRAM throughput is {a}{p}, the copy's {b}{q}; its busiest unit is {unit} at {top}.", a=c("dram_throughput_pct", LOOP), p=beside(p("counters", "dram_throughput_pct", LOOP)), b=c("dram_throughput_pct", COPY), q=beside(p("counters", "dram_throughput_pct", COPY)), unit=loop_unit, top=loop_top),
    )
)
V.line("loop-beats-naive", "loop-over-naive", "loop-beats-32x32", "loop-over-32x32", "loop-near-copy", "conflict-slower", "pad-xor-equal", "unchecked-no-gain", "unchecked-fewer-instructions", "naive-l1tex-pressure", "tiling-not-enough", "loop-more-eligible", "loop-fewer-instructions", "stall-ratio-denominator", "loop-dram-limited")

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
    }, TWO, predicted={q: guessed(q) for q in ("registers_per_thread", "shared_allocated_bytes_per_block", "limit_blocks", "limit_registers", "limit_shared_memory", "limit_warps", "resident_blocks_per_sm", "theoretical_occupancy_pct")},
)
page.figure("occupancy_limits")
LIMITS = {"limit_blocks": "the number of blocks", "limit_registers": "registers", "limit_shared_memory": "shared memory", "limit_warps": "the number of warps"}


def o(quantity, kernel):
    return m("occupancy", quantity, kernel)


def residency(kernel):
    limits = {words: o(q, kernel) for q, words in LIMITS.items()}
    resident, achieved = o("resident_blocks_per_sm", kernel), c("achieved_occupancy_pct", kernel)
    by = [w for w, a in limits.items() if a.known and resident.known and a.number <= resident.number]
    return text(
        "The residency of {k} is limited by {by}: an SM that holds {held} warps has room for {blocks} of {warps:n} warps, a theoretical occupancy of {theory}{p}{achieved}.",
        k=NOUN[kernel], by=Listing(by), held=gpu["threads_per_sm"] // WARP, blocks=plural(int(resident.number), "{n} block", "{n} blocks") if resident.known else resident, warps=o("warps_per_block", kernel), theory=o("theoretical_occupancy_pct", kernel),
        p=beside(p("occupancy", "theoretical_occupancy_pct", kernel)), achieved=optional("; achieved are {x}{p}", x=achieved, p=beside(p("counters", "achieved_occupancy_pct", kernel))),
    )


say(*(residency(k) for k in TWO))
say(
    choose("occupancy-32x32", holds="As in the study, whole blocks of the 32x32 tile leave a third of the warps unused, and the loop's smaller blocks fill the SM.", fails=text("The study's reading, that whole blocks leave a third of the warps unused, does not carry over: an SM of this device holds {held} warps.", held=gpu["threads_per_sm"] // WARP)),
    choose("carveout-limits-32x32", holds=text("The shared configuration that the driver chose at launch ({a}) binds the 32x32 tile as well.", a=o("shared_config_bytes", TILE)), fails=text("The shared configuration that the driver chose at launch ({a} and {b}) does not bind.", a=o("shared_config_bytes", TILE), b=o("shared_config_bytes", LOOP))),
    choose(
        "registers-not-limit",
        holds=text("The loop uses more registers per thread ({a:n} against {b:n}), but they are not what limits its residency alone.", a=o("registers_per_thread", LOOP), b=o("registers_per_thread", TILE)),
        fails=text("The loop uses {a:n} registers per thread against {b:n}; that it uses more, and is not limited by them, does not hold here.", a=o("registers_per_thread", LOOP), b=o("registers_per_thread", TILE)),
    ),
)
say(
    choose("achieved-near-theoretical", holds="Achieved occupancy comes within a few points of the theoretical one.", fails="Achieved occupancy stays more than a few points below the theoretical one; blocks that end and start one after the other may be a reason, which these counters do not show."),
    "Occupancy counts resident warps, eligibility counts those that are ready: neither replaces the other.",
    choose("occupancy-not-speed", holds="High occupancy does not promise speed: at least one pair of kernels is ordered the other way round.", fails="Among these kernels the one with the higher achieved occupancy is always the faster one, which does not make it the cause."),
)
V.line("occupancy-32x32", "carveout-limits-32x32", "registers-not-limit", "achieved-near-theoretical", "occupancy-not-speed")

# %% [markdown]
# #### 3.3.3 Padding and shared wavefronts

# %%
page.published_table(
    "Wavefronts and bank conflicts of shared memory, by the unit's own counters.", "shared_memory",
    {
        "load_wavefronts": "Load wavefronts", "store_wavefronts": "Store wavefronts",
        "load_bank_conflicts": "Load conflict count", "store_bank_conflicts": "Store conflict count",
    }, TWO, predicted={q: guessed(f"shared_{q}") for q in ("load_wavefronts", "store_wavefronts", "load_bank_conflicts", "store_bank_conflicts")},
)
base = m("derived", "ideal_shared_wavefronts_per_direction", "")


def against_base(way):
    """How the loop's wavefronts of one direction compare with the ideal."""
    x = quotient(m("shared_memory", f"{way}_wavefronts", LOOP), base)
    percent = missing(text("{way} wavefronts of {k}", way=way, k=NOUN[LOOP]), x.reason) if not x.known else derived(100 * abs(x.number - 1), "%", origin=x.origin)
    name = {"load": "loads", "store": "stores"}[way]
    if x.known and x.number == 1:
        return text({"loads": "The loop's loads equal it.", "stores": "The loop's stores equal it."}[name])
    over = not x.known or x.number > 1
    return text({
        ("loads", True): "The loop's loads exceed it by {x}.", ("loads", False): "The loop's loads stay below it by {x}.",
        ("stores", True): "The loop's stores exceed it by {x}.", ("stores", False): "The loop's stores stay below it by {x}.",
    }[name, over], x=percent)


say(
    text("Without any conflict each direction needs {base:n} wavefronts{p}.", base=base, p=beside(p("derived", "ideal_shared_wavefronts_per_direction", ""))),
    against_base("load"), against_base("store"),
)
say(
    "The unit's counters also count arbitration with other traffic.",
    choose("padding-no-conflict", holds="Counted exactly, by instruction, tile[32][33] has no bank conflict in either direction: what the unit's counters show more is not the layout's.", fails="Counted exactly, by instruction, tile[32][33] has bank conflicts, too."),
    choose("xor-no-conflict", holds="Nor has column ^ row, which needs no extra memory.", fails="That column ^ row has no conflict and needs no extra memory does not hold here."),
    choose("unpadded-32way", holds="The unpadded tile's column reads are full conflicts, one wavefront for each lane.", fails="The unpadded tile's column reads are not the full conflicts that the layout makes one expect."),
    choose("counters-near-zero", holds="The unit's conflict counters of the padded and XOR versions are close to zero.", fails="A tutorial's rule, that the conflict counters of the padded and XOR versions are close to zero, would call these kernels conflicted: the counter misleads."),
    choose("residual-not-bottleneck", holds=text("The counted conflicts are no main limit: they take {a} % of an SM's cycles in the 32x32 tile and {b} % in the loop.", a=product(V.figure("residual-not-bottleneck"), scale=100), b=product(V.figure("residual-not-bottleneck", index=1), scale=100)), fails="The counted conflicts take more than a tenth of an SM's cycles, which makes them a limit to reckon with."),
    "A ratio of wavefronts is no ratio of times.",
)
if r.has_table("banks") and r.table("banks"):
    page.figure("banks_of_the_tile")
V.line(*TOPIC.get("shared memory", ()))

# %% [markdown]
# #### 3.3.4 The BLOCK_ROWS scan

# %%
scan = sorted(
    (x for x in (r.table("block_rows") if r.has_table("block_rows") else ()) if x["variant"] == "tiled_padded" and x["cache_mode"] == modes[0] and all(x[a] == str(v) for a, v in group.items())),
    key=lambda x: int(x["block_rows"]),
)
columns = {"threads_per_block": "Threads per block", "elements_per_thread": "Elements per thread", "mean_ms": "Mean, ms", "slower_than_8_pct": "Slower than at the published best, %"}


def scanned(row, column):
    key = "slower_than_published_best_pct" if column == "slower_than_8_pct" else column
    name = text("{q} at BLOCK_ROWS {n}", q=f"`{key}`", n=row["block_rows"])
    ends = [float(row[f"{key}{e}"]) if row.get(f"{key}{e}") else None for e in ("_low", "_high")]
    return Amount(float(row[key]), "", name, *ends, origin=f"tables/block_rows.csv: tiled_padded, {main}, BLOCK_ROWS {row['block_rows']}: {key}") if row.get(key) else missing(name, row["reason"] or "no value was recorded")


rows = []
for x in scan:
    theirs = [p("block_rows_scan", q, f"block_rows {x['block_rows']}") for q in columns]
    if any(a.known for a in theirs):
        rows.append([x["block_rows"], "*published*", *(a if a.known else "–" for a in theirs)])
    rows.append(["" if any(a.known for a in theirs) else x["block_rows"], "measured", *(scanned(x, q) for q in columns)])
page.table(
    text("The padded tile at each BLOCK_ROWS, {mode} L2.", mode=modes[0]), ["BLOCK_ROWS", "", *columns.values()], rows, source="`tables/block_rows.csv`, `tables/published.csv`", align="llrrrr", name="scan",
    notes=["The measured slow-down is the median of ratios taken within rounds; the published one compares means."],
)
page.figure("block_rows_scan")

ranked = sorted((x for x in scan if x["mean_ms"]), key=lambda x: float(x["median_ms"]))
if len(ranked) > 1:
    best_rows, worst_rows = ranked[0], ranked[-1]
    close = [x["block_rows"] for x in ranked[1:] if x["slower_than_best_pct_low"] and float(x["slower_than_best_pct_low"]) <= 100 * r.margin()]
    say(
        text(
            "Here BLOCK_ROWS {best} has the shortest median{close}; the longest, at {worst}, is {x} above it.", best=best_rows["block_rows"], worst=worst_rows["block_rows"],
            close=text(", though {others} cannot be told from it", others=Listing(close)) if close else text(", clear of the others"),
            x=derived(float(worst_rows["slower_than_best_pct"] or 0), "%", origin=f"tables/block_rows.csv: tiled_padded, {main}, BLOCK_ROWS {worst_rows['block_rows']}: slower_than_best_pct"),
        ),
        choose("block-rows-8-best", holds="So the study's choice is the best of its three here as well.", fails="So the study's choice is not the best of its three here.", unclear="Whether the study's choice is the best of its three cannot be told here."),
        "Fewer rows of threads mean more elements for each thread: that saves repeated instructions and costs registers, and more threads are not always faster.",
    )
else:
    say(text("Only BLOCK_ROWS {n} was timed.", n=ranked[0]["block_rows"]) if ranked else text("{x}", x=scanned(scan[0], "mean_ms") if scan else missing("BLOCK_ROWS", "`tiled_padded` is not configured at the main shape")))
V.line("block-rows-8-best")

# %% [markdown]
# ## 4 What the study left open
#
# ### 4.1 Where the residual conflict counts of the padded tile come from

# %%
tiles = [x for x in cells if x.variant.name in {"tiled", "tiled_padded", "tiled_xor", "tiled_padded_unchecked"}]
say(
    text("The profiler has two sources for shared memory. The unit's own counters see every wavefront that passes, arbitration with other traffic included; the counts by machine instruction see what each access needs by its addresses. {table} holds both.", table=page.table_ref("conflicts")),
)


def both_ways(cell):
    """The unit's conflict counter, loads and stores together."""
    ways = [answer("residual-conflicts", f"{way}_conflict_counter", cell) for way in ("load", "store")]
    return next((a for a in ways if not a.known), derived(sum(a.value or 0.0 for a in ways)))


names = {"unit_wavefronts": "Unit's wavefronts", "exact_wavefronts": "Exact wavefronts", "ideal_wavefronts": "Ideal wavefronts", "exact_conflicts": "True conflicts", "arbitration_wavefronts": "Arbitration", "shared_pipe_busy_pct": "Pipe busy, %"}
page.table(
    text("Wavefronts of shared memory at {main}, loads and stores together.", main=main), ["Kernel", "Conflict counter", *names.values()],
    [[r.label(x), both_ways(x), *(answer("residual-conflicts", q, x) for q in names)] for x in tiles],
    source="`tables/analysis.csv`", align="l" + "r" * (len(names) + 1), name="conflicts",
    notes=["Arbitration is what the unit counts beyond the exact wavefronts; true conflicts are exact wavefronts beyond the ideal ones."],
)
padded = [x for x in tiles if x.variant.name == "tiled_padded"]
true = [answer("residual-conflicts", "exact_conflicts", x) for x in padded]
left = [answer("residual-conflicts", "unexplained_conflicts", x) for x in padded]
counter = {x: answer("residual-conflicts", "conflict_counter_share", x) for x in padded}
noisy = max((x for x in padded if counter[x].known), key=lambda x: counter[x].number, default=None)
if noisy is None:
    say(text("{x}", x=true[0] if true else missing("residual-conflicts", "`tiled_padded` is not configured at the main shape")))
else:
    say(
        text("The conflict counter of the padded tile goes up to {x:n} of its wavefronts ({cell}).", x=counter[noisy], cell=r.label(noisy)),
        text("By its addresses, though, no access needs a second wavefront: the true conflicts are {x:n} at every BLOCK_ROWS.", x=true[0]) if all(a.known and not a.number for a in true)
        else text("By its addresses some accesses do need a second wavefront: the true conflicts go up to {x:n}.", x=highest(true)),
        "" if not all(a.known for a in left) else
        "The counter equals the wavefronts that the unit counts beyond the ideal ones: the residue is arbitration for the pipe, not the layout of the tile." if all(a.low is None or a.low <= 0 <= a.high or abs(a.number) < 1 for a in left)
        else text("The counter differs by up to {x:n} from the wavefronts that the unit counts beyond the ideal ones, so that arbitration and true conflicts do not explain it alone.", x=max(left, key=lambda a: abs(a.number))),
    )

# %% [markdown]
# ### 4.2 Which instructions the unchecked loop removes

# %%
opcodes = sorted({x["quantity"].partition("_")[2] for x in (r.table("analysis") if r.has_table("analysis") else ()) if x["question"] == "removed-instructions" and x["quantity"].startswith("removed_") and x["quantity"].partition("_")[2].isupper() and x["block_rows"] == str(of(LOOP).values["block_rows"])}) if LOOP in written else []


def removed(kind, opcode):
    return answer("removed-instructions", f"{kind}_{opcode}", of(LOOP))


def opcode_sum(kind):
    known = [a.number for n in opcodes if (a := removed(kind, n)).known]
    return derived(sum(known), origin=f"tables/analysis.csv: removed-instructions, sum of {kind}_*")


if opcodes:
    ordered = sorted(opcodes, key=lambda n: -removed("removed", n).number if removed("removed", n).known else 0)
    page.table(
        text("Instructions a warp executes in {a} and {b}, by opcode.", a=f"`{study.kernel_name(of(LOOP))}`", b=f"`{study.kernel_name(of(UNCHECKED))}`"), ["Opcode", "With checks", "Without", "Removed"],
        [*([f"`{n}`", *(removed(k, n) for k in ("checked", "unchecked", "removed"))] for n in ordered), ["all", *(opcode_sum(k) for k in ("checked", "unchecked", "removed"))]],
        source="`tables/analysis.csv`, `tables/opcodes.csv`", align="lrrr", name="opcodes",
    )
    gone = [n for n in ordered if removed("removed", n).known and removed("removed", n).number > 0]
    kept = [n for n in ordered if n in ("LDG", "STG", "LDS", "STS", "BAR") and removed("removed", n).known and removed("removed", n).number == 0]
    sums = [n for n in gone if n in ("IMAD", "IADD3", "VIADD", "LEA", "SHF", "LOP3")]
    arithmetic = derived(sum(removed("removed", n).number for n in sums), origin="tables/analysis.csv: removed-instructions, sum of integer opcodes")
    top = Listing([text("{x:n} of {n}", x=removed("removed", n), n=f"`{n}`") for n in gone[:6]])
    say(
        text("Of {a:n} instructions a warp executes, {b:n} disappear without the checks; most of them are {top}.", a=opcode_sum("checked"), b=opcode_sum("removed"), top=top) if gone else text("No opcode is executed less often without the checks."),
        text("Loads, stores and barriers stay as they are ({kept}).", kept=Listing([f"`{n}`" for n in kept])) if kept else "",
        text("So the checks cost more than their comparisons and branches: {x:n} of what disappears is integer arithmetic ({ops}), as where the address of each element is computed under a check of its own.", x=arithmetic, ops=Listing([f"`{n}`" for n in sums])) if sums and arithmetic.number > opcode_sum("removed").number / 2 else "",
    )
else:
    say(text("{x}", x=answer("removed-instructions", "removed_instructions", of(LOOP) if LOOP in written else None)))

# %% [markdown]
# ### 4.3 What explains the gap between the 32x32 tile and the loop

# %%
say(
    "By Little's law the bytes in flight are latency times bandwidth. The latency taken here is how long a warp of the scalar copy waits for its one load; half of the nominal peak are reads. What a kernel can have in flight follows from its resident threads and from how many bytes a thread has asked for before it uses the first, which the machine code tells."
)
flight = {
    "resident_threads_per_sm": "Resident threads", "load_bytes_in_flight_per_thread": "Bytes in flight a thread", "bytes_in_flight_resident": "At most in flight, bytes/SM", "resident_to_needed": "÷ needed",
    "bytes_in_flight_mean": "On average, bytes/SM", "mean_to_needed": "÷ needed", "barrier_warps_per_scheduler": "Warps at a barrier", "achieved_occupancy_pct": "Achieved occupancy, %", "dram_throughput_pct": "DRAM, %",
}
shown_cells = [x for x in cells if x.variant.name in {"copy", "copy_looped", "naive_write_coalesced", "tiled_padded", "tiled_padded_unchecked"}]
page.table(
    text("Bytes in flight at {main}.", main=main), ["Kernel", *flight.values()], [[r.label(x), *(answer("bytes-in-flight", q, x) for q in flight)] for x in shown_cells],
    source="`tables/analysis.csv`", align="l" + "r" * len(flight), name="flight",
    notes=["Warps at a barrier: of a scheduler, in a mean cycle. The average in flight takes every warp that waits for global memory with all of its loads, and so is an upper estimate."],
)
needed, latency = answer("bytes-in-flight", "bytes_needed"), answer("bytes-in-flight", "latency_ns")
tile_most, loop_most = (answer("bytes-in-flight", "resident_to_needed", of(k) if k in written else None) for k in TWO)
tile_mean, loop_mean = (answer("bytes-in-flight", "mean_to_needed", of(k) if k in written else None) for k in TWO)
tile_wait, loop_wait = (answer("bytes-in-flight", "barrier_warps_per_scheduler", of(k) if k in written else None) for k in TWO)
say(
    text("At a latency of {t} an SM needs {n} in flight to feed its share of the nominal peak.", t=latency, n=needed),
    text(
        {
            1: "Residency lets the loop have {a:n} times that in flight and the 32x32 tile {b:n} times, {c:n} times as much.",
            -1: "Residency lets the loop have {a:n} times that in flight and the 32x32 tile {b:n} times, only {c:n} times as much.",
            0: "Residency lets the loop have {a:n} times that in flight and the 32x32 tile {b:n} times, about the same ({c:n} times).",
        }[relation(quotient(loop_most, tile_most), SAME)], a=loop_most, b=tile_most, c=quotient(loop_most, tile_most),
    ),
    text("On average it is {a:n} and {b:n} times what is needed.", a=loop_mean, b=tile_mean),
    "" if not (tile_mean.known and loop_mean.known and loop_to_tile.known) else
    "So the 32x32 tile has too few bytes in flight on average to reach the peak and the loop has enough, which suffices to explain the gap." if tile_mean.number < 1 <= loop_mean.number and loop_to_tile.number > 1
    else "Both have enough in flight by this estimate, so bytes in flight do not explain the gap." if min(tile_mean.number, loop_mean.number) >= 1
    else "Neither has enough in flight on average to reach the peak; the one with more is the faster." if max(tile_mean.number, loop_mean.number) < 1 and (loop_mean.number > tile_mean.number) == (loop_to_tile.number > 1)
    else "The kernel with fewer bytes in flight is not the slower one here, so that they do not explain the difference.",
    text(
        {
            1: "At a barrier wait {b:n} warps of a scheduler in the 32x32 tile and {a:n} in the loop: the larger block has more warps that wait for the slowest.",
            -1: "At a barrier wait {b:n} warps of a scheduler in the 32x32 tile and {a:n} in the loop: the barrier is not what holds the tile back.",
            0: "At a barrier wait {b:n} warps of a scheduler in the 32x32 tile and {a:n} in the loop, about as many.",
        }[relation(quotient(tile_wait, loop_wait), SAME)], b=tile_wait, a=loop_wait,
    ),
)

# %% [markdown]
# ### 4.4 What limits the best loop

# %%
loops = [x for x in transposes if x.variant.name in {"tiled_padded", "tiled_xor", "tiled_padded_unchecked"}]
names = sections.by_size(page)
rows = []
for name in names:
    for mode in modes:
        best = r.best([r.at(x, name) for x in loops if r.at(x, name) in r.cells(name)], mode)
        if best is not None:
            rows.append([name, sections.regime(page, name), mode, r.label(best), *(r.timing(best, q, mode) for q in ("bandwidth_gb_s", "percent_of_peak", "ratio_to_copy", "ratio_to_copy_vectorized", "ratio_to_memcpy"))])
page.table(
    "The best loop at each size and state of the L2, and its distance to the copies.", ["Shape", "In L2", "L2", "Best loop", "GB/s", "% of peak", "÷ `copy`", "÷ `copy_vectorized`", "÷ `memcpy`"], rows,
    source="`tables/timings.csv`, `tables/analysis.csv`", align="llllrrrrr", name="best_loop",
)
best_loop = r.best(loops, modes[0])
if best_loop is not None:
    to_vector, to_memcpy = (r.timing(best_loop, f"ratio_to_{b}", modes[0]) for b in ("copy_vectorized", "memcpy"))
    twin = next((x for x in cells if x.variant.name == "copy_looped" and x.kernel_values == best_loop.kernel_values), None)
    to_twin = quotient(r.timing(twin, "median_us", modes[0]), r.timing(best_loop, "median_us", modes[0]), name=text("speed of {a} relative to {b}", a=r.label(best_loop), b=r.label(twin))) if twin else missing("copy_looped", "it is not configured")
    near = to_vector.known and to_vector.number >= 1 - CLOSE / 4
    say(
        text("At {main} the best loop, {cell}, runs at {a:i} times the speed of the vectorized copy and at {b:i} times that of the driver's copy.", main=main, cell=r.label(best_loop), a=to_vector, b=to_memcpy),
        text("A copy with the same geometry, {twin}, tells what the transpose itself costs: the loop runs at {x:i} times its speed.", twin=r.label(twin), x=to_twin) if twin else "",
        (text("What is left is therefore small: the loop works near what the copies get out of this memory, which is {x} of the nominal peak at most.", x=highest([r.timing(c, "percent_of_peak", modes[0]) for c in cells if c.variant.name in study.baselines.values()])) if near else "So a part of the memory's speed is left, which the access pattern does not explain: sectors and wavefronts are those of a copy.") if to_vector.known else "",
    )
    large, small = (r.best([r.at(x, n) for x in loops if r.at(x, n) in r.cells(n)], modes[0]) for n in (names[-1], names[0]))
    if large is not None and small is not None and len(names) > 1:
        say(
            text("From {a} to {b} its share of the peak goes from {x} to {y}.", a=names[0], b=names[-1], x=r.timing(small, "percent_of_peak", modes[0]), y=r.timing(large, "percent_of_peak", modes[0])),
            text("The best configuration is {list} over the sizes.", list=Listing(dict.fromkeys(row[3] for row in rows))),
            choose(
                "loop-dram-limited", holds="With its DRAM throughput near the peak, the memory is the limit that the counters show.",
                fails=text("No counter shows DRAM at its limit: its throughput is {x}{busier}. So DRAM throughput is not the only limit of the study's loop on this device.", x=c("dram_throughput_pct", LOOP), busier=EMPTY if busiest(LOOP)[0] == "DRAM" else text(", while {unit} is at {top}", unit=busiest(LOOP)[0], top=busiest(LOOP)[1])),
            ),
        )

# %% [markdown]
# ### 4.5 The DRAM write deficit by size

# %%
page.figure("dram_write_deficit")
rows = []
for name in names:
    row = [name, sections.regime(page, name)]
    for k in FIVE if written else ():
        here = r.at(of(k), name)
        row.append(quotient(r.counter(here, "dram_write_bytes"), derived(study.matrix_bytes(here.group)), scale=100) if here in r.cells(name) else "–")
    here = r.at(of(LOOP), name) if written else None
    wrote = r.counter(here, "dram_write_bytes") if here else missing("", "no published study is configured")
    size = study.matrix_bytes(experiment.groups[name].values)
    lacks = derived((size - wrote.number) / 2**20, "MiB", origin=f"tables/counters.csv: {study.kernel_name(here)}, {name}: matrix less dram_write_bytes") if wrote.known else missing(wrote.name, wrote.reason)
    rows.append([*row, lacks, quotient(lacks, mib(gpu["l2_bytes"]), scale=100)])
page.table(
    "Bytes written to DRAM as a share of the output matrix, and what lacks of it in the loop.", ["Shape", "In L2", *(text("{k}, %", k=FIVE[k]) for k in (FIVE if written else ())), "Loop lacks, MiB", "% of L2"], rows,
    source="`tables/counters.csv`", align="ll" + "r" * (len(FIVE if written else ()) + 2), name="deficit",
)
beyond = [row[-2] for n, row in zip(names, rows, strict=True) if study.matrix_bytes(experiment.groups[n].values) > gpu["l2_bytes"] and row[-2].known]
inside = [row[-2] for n, row in zip(names, rows, strict=True) if 2 * study.matrix_bytes(experiment.groups[n].values) <= gpu["l2_bytes"] and row[-2].known]
if beyond:
    steady = lowest(beyond).number > 0 and highest(beyond).number / lowest(beyond).number < 1 + 2 * CLOSE
    say(
        text("Where both matrices fit into L2, next to nothing is written while the kernel runs.") if inside and all(isinstance(row[3], Amount) and row[3].known and row[3].number < 100 * CLOSE for n, row in zip(names, rows, strict=True) if sections.regime(page, n) == "both fit") else "",
        text("Once a matrix is larger than L2, between {a} and {b} of the loop's output are not written when it ends.", a=lowest(beyond), b=highest(beyond)) if highest(beyond).number > 0 else "",
        text("That is about the same amount at every size, {x} of L2 at most, as lines would leave that wait in it: the deficit belongs to the cache and not to the kernel, and its share shrinks as the matrix grows.", x=quotient(highest(beyond), mib(gpu["l2_bytes"]), scale=100, unit="%")) if steady
        else "That amount is not the same at every size, so a fixed stock of dirty lines does not explain it alone." if highest(beyond).number > 0 else "Once a matrix is larger than L2, all of it is written while the kernel runs, so no deficit has to be explained.",
    )

# %% [markdown]
# ## 5 Beyond the study: the whole ladder
#
# ### 5.1 Every kernel at the main shape

# %%
page.figure("bandwidth_ladder")
sections.hot_and_cold(page)
sections.relative_speeds(page)
if len(modes) > 1:
    hot, cold = modes[0], modes[1]
    changes = [(cell, quotient(r.timing(cell, "median_us", cold), r.timing(cell, "median_us", hot))) for cell in transposes]
    known = [(cell, x) for cell, x in changes if x.known]
    if known:
        least, most = min(known, key=lambda k: k[1].number), max(known, key=lambda k: k[1].number)
        hot_best, cold_best = r.best(transposes, hot), r.best(transposes, cold)
        say(
            text("Cold medians of the transposes are between {a:n} ({x}) and {b:n} times ({y}) the hot ones.", a=least[1], x=r.label(least[0]), b=most[1], y=r.label(most[0])),
            text("The fastest transpose is the same in both, {x}.", x=r.label(hot_best)) if hot_best == cold_best else text("The fastest transpose differs: {x} hot, {y} cold.", x=r.label(hot_best), y=r.label(cold_best)),
        )
    else:
        say(text("{x}", x=changes[0][1]) if changes else "No transpose is configured.")
else:
    say(text("Only the cache mode {mode} is configured, so there is nothing to compare.", mode=modes[0]))

# %% [markdown]
# ### 5.2 Sizes, and the edge of L2

# %%
page.figure("bandwidth_by_size")
for mode in modes:
    sections.sizes(page, mode)
fits = {k: [n for n in names if sections.regime(page, n) == k] for k in ("both fit", "one fits", "neither fits")}
say(
    text("Both matrices fit into the L2 of {l2} at {where}.", l2=mib(gpu["l2_bytes"]), where=Listing(fits["both fit"])) if fits["both fit"] else text("At no configured shape do both matrices fit into the L2 of {l2}.", l2=mib(gpu["l2_bytes"])),
    text("One of them would at {where}.", where=Listing(fits["one fits"])) if fits["one fits"] else "",
    text("Neither does at {where}.", where=Listing(fits["neither fits"])) if fits["neither fits"] else "",
)
for mode in modes:
    above = [n for n in names if any((a := r.timing(x, "percent_of_peak", mode)).known and a.number > 100 for x in r.cells(n))]
    say(text("With a {mode} L2, figures above the nominal peak occur at {where}: they speak of the cache, not of the memory.", mode=mode, where=Listing(above)) if above else text("With a {mode} L2 no figure lies above the nominal peak.", mode=mode))

# %% [markdown]
# ### 5.3 Statistics: means, noise, clocks and drift

# %%
statistics.means_and_medians(page)
statistics.noise(page)
statistics.clocks(page)
page.figure("time_over_rounds")

# %%
if any(x["predicted"] for x in (r.table("predictions") if r.has_table("predictions") else ())):
    page.heading(2, "6 Predicted and measured")
    say("The predictions come from the compiled code, the launch geometry and the device's limits alone; an emulator executes the warps and counts what they do. No measured counter enters them but the shared configuration, which the driver chooses.")
    page.figure("predicted_and_measured")
    WORDS = {
        "global_load_requests": "Global load requests", "global_load_sectors": "Global load sectors", "global_store_requests": "Global store requests", "global_store_sectors": "Global store sectors",
        "shared_load_instructions": "Shared loads", "shared_store_instructions": "Shared stores", "shared_wavefronts_exact": "Shared wavefronts, exact", "shared_wavefronts_ideal": "Shared wavefronts, ideal", "shared_conflicts_exact": "True conflicts",
        "shared_load_wavefronts": "Load wavefronts, unit's counter", "shared_store_wavefronts": "Store wavefronts, unit's counter", "shared_load_bank_conflicts": "Load conflicts, unit's counter", "shared_store_bank_conflicts": "Store conflicts, unit's counter",
        "warp_instructions": "Warp instructions", "warps_launched": "Warps", "barriers": "Barriers", "registers_per_thread": "Registers per thread", "shared_allocated_bytes_per_block": "Shared bytes allocated per block",
        "limit_blocks": "Limit by blocks", "limit_registers": "Limit by registers", "limit_shared_memory": "Limit by shared memory", "limit_warps": "Limit by warps", "resident_blocks_per_sm": "Resident blocks per SM", "theoretical_occupancy_pct": "Theoretical occupancy",
        "compulsory_dram_read_bytes": "DRAM bytes read", "compulsory_dram_write_bytes": "DRAM bytes written", "global_load_sectors_per_request": "Sectors per load request", "global_store_sectors_per_request": "Sectors per store request", "check_failed": "Faults found by the check",
    }
    if sections.predictions(page, WORDS, sections.NOTES):
        say(
            sections.must_be_equal(page, WORDS),
            "Where arbitration or caches come in, the prediction is what the code asks for, and the difference is what the hardware adds.",
        )
    else:
        say("No prediction has a measured counterpart in this run.")

# %%
if V.claims:
    page.heading(2, "7 The claims, judged")
    say("Each statement of the study and of several tutorials is held against this device's tables. A verdict belongs to this device and says nothing about the one where the statement was made.")
    V.table(TOPICS, "Claims, verdicts and the figures that decided them.")

# %% [markdown]
# ## Sources

# %%
origins = (experiment.claims or {}).get("sources", {}) if hasattr(experiment, "claims") else {}
author = (experiment.published or {}).get("study", {})
page.items(
    *([text("{subject}, by {author}; the published study, on {gpu}.", subject=author["subject"], author=author["author"], gpu=(experiment.published or {}).get("environment", {}).get("gpu", "–"))] if author else []),
    *(text("{id}: {what}.", id=f"`{k}`", what=str(v)) for k, v in origins.items()),
    "Metrics: the profiler's own names, in the column `metric` of `tables/counters.csv`.",
)

# %% [markdown]
# ## Where the figures come from
#
# Each table and figure names the file it was made from; all of them lie in the folder of the run. `transpose-study aggregate`
# makes the tables from the raw data, `transpose-study judge` the verdicts and answers, `transpose-study draw` the figures, and
# `transpose-study write` this page from all of them.
