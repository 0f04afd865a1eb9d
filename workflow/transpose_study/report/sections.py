"""Tables that the write-up of any study has: what was measured, times hot and cold, sizes, predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from transpose_study.registry import Cell
from transpose_study.report.page import Page
from transpose_study.report.texts import EMPTY, Listing, Message, Part, Text, text
from transpose_study.report.wording import Amount, derived, highest, lowest, missing, number, quotient

FLAGS = {
    "above_peak": "above the nominal peak of DRAM, hence served by a cache or by shared memory",
    "throttled": "clocks were held down in at least one sample",
    "off_ncu": "the profiler's duration of a launch is another",
    "unconverged": "the interval is wider than asked for",
    "skewed": "mean and median part: a heavy tail",
    "clock_drift": "the SM clock moved",
}


def modes_of(page: Page) -> list[str]:
    """The configured cache modes."""
    return list(page.results.experiment.config.timing.cache_modes)


def by_size(page: Page) -> list[str]:
    """The configured shapes in the order of their bytes."""
    groups = page.results.experiment.groups
    return sorted(groups, key=lambda n: page.results.study.matrix_bytes(groups[n].values))


def regime(page: Page, group: str) -> str:
    """Where a shape lies: both matrices fit into L2, one does, or neither."""
    size = page.results.study.matrix_bytes(page.results.experiment.groups[group].values)
    l2 = page.results.experiment.gpu["l2_bytes"]
    return "both fit" if 2 * size <= l2 else "one fits" if size <= l2 else "neither fits"


# What a note of tables/predictions.csv says of a prediction: the first that accepts it names it.
EXCUSES: list[tuple[str, Callable[[str], bool]]] = [
    ("a bound: caches add and hold back", lambda note: note.startswith("a bound")),
    ("the unit's counter adds arbitration", lambda note: "arbitration" in note),
    ("the hardware's own counter varies", lambda note: "varies" in note),
]
NOTES: list[tuple[str, Callable[[str], bool]]] = [
    *EXCUSES,
    ("not equal", lambda note: not note.startswith("exact")),
    ("exact, given the shared configuration", lambda note: "driver chose" in note),
    ("exact", bool),
]


def banner(page: Page) -> None:
    """Title, whether the run was measured or replayed, what was not timed, and which counters are missing and why."""
    r, env = page.results, page.results.environment
    gpu = r.experiment.gpu["name"]
    page.heading(1, text("{title} on {gpu}", title=r.study.title, gpu=gpu))
    day = str(env.get("start") or "")[: len("YYYY-MM-DD")] or "an unrecorded day"
    lines: list[Part] = [text("**Live run** on {gpu}, measured on {day}.", gpu=gpu, day=day)]
    if r.experiment.replay:
        archive = f"`{str(r.experiment.target['archive']).replace(chr(92), '/').split('/')[-1]}`"
        replayed = "**Replay** of the archive {archive}, recorded on {day} on {gpu}. Nothing was measured on the machine that made this page."
        lines = [text(replayed, archive=archive, day=day, gpu=gpu)]
    absent = r.absences()
    if not absent:
        lines.append("Every configured cell was timed.")
    for where, status, reason, names in absent:
        lines.append(text("At {where}, {status}: {names}: {reason}.", where=where, status=status, names=Listing(names), reason=Message(reason)))
    for reason, (count, total) in r.counter_absences().items():
        lines.append(text("Counters: {count} of {total} figures are missing: {reason}.", count=count, total=total, reason=Message(reason)))
    page.quote(*lines)


def axis_notes(page: Page) -> list[Text]:
    """What the letters in the names of configurations stand for."""
    axes = page.results.study.axes
    return [text("`{tag}` stands for {axis}.", tag=axes[a].tag, axis=a.upper()) for a in page.results.experiment.scan_axes()]


def measured_shapes(page: Page, called: str = "Shape") -> None:
    """What was measured at each group, with the launches really made under the profiler; sizes where groups have numbers.

    ``called`` is what a group is called at the head of the table.
    """
    r, modes = page.results, modes_of(page)
    first = modes[0]
    batches = r.experiment.batch_names()
    sized = all(isinstance(v, int) for g in r.experiment.groups.values() for v in g.values.values())
    rows: list[list[Part]] = []
    for name, shape in r.experiment.groups.items():
        cells = [x for x in r.cells(name) if x.variant.allocates is None]
        samples = [r.timing(x, "n", first) for x in cells]
        known = [a for a in samples if a.known]
        none = missing(text("number of samples"), "nothing was timed at this shape")
        made = r.launches(name)
        launched = [
            derived(made[b][0]) if b in made and made[b][0] == made[b][1] else text("{a} to {b}", a=made[b][0], b=made[b][1]) if b in made else "–"
            for b in batches
        ]
        size: list[Part] = []
        if sized:
            footprint = r.timing(r.cells(name)[0], "footprint_to_l2", first)
            size = [derived(2 * r.study.matrix_bytes(shape.values) / 2**20), footprint, regime(page, name)]
        rows.append([
            name, *size, text("{n} of {m}", n=len(known), m=len(samples)), lowest(known) if known else none, highest(known) if known else none,
            lowest([r.timing(x, "processes", first) for x in cells]) if cells else none,
            highest([r.timing(x, "interval_width_pct", m) for x in cells for m in modes]) if cells else none, *launched,
        ])  # fmt: skip
    page.table(
        "What was measured at each shape." if sized else "What was measured.",
        [
            called, *(("Both matrices, MiB", "÷ L2", "In L2") if sized else ()), "Kernels timed", "Samples, fewest", "most", "Processes",
            "Widest interval, %",
            *(text("Launches, {b}", b=f"`{b}`") for b in batches),
        ],
        rows, source="`tables/timings.csv`, `tables/counters.csv`", align=("lrrl" if sized else "l") + "rrrrr" + "r" * len(batches), name="shapes",
        notes=[
            "An interval is the 95 % interval of a kernel's median, relative to it.",
            *(["Launches are those really made for each kernel, by batch of metrics."] if batches else []),
        ],
    )  # fmt: skip
    timed = [x for x in r.table("timings") if x["median_us"]]
    flagged = Counter(flag.strip().split(" ")[0] for x in timed for flag in x["flags"].split(";") if flag)
    if flagged:
        counts = {f: derived(n, origin=f"tables/timings.csv: rows whose flags name {f}") for f, n in sorted(flagged.items())}
        shown = [text("{flag} at {n:n} medians ({meaning})", flag=f"`{f}`", meaning=FLAGS.get(f, f), n=n) for f, n in counts.items()]
        page.say(text("Flags in the tables of times: {flags}. Flagged samples are kept.", flags=Listing(shown)))
    else:
        page.say("No sample carries a flag: none above the nominal peak, none throttled, no interval wider than asked for.")


def interval(amount: Amount) -> Part:
    """The two ends of an interval as a table's field."""
    if not amount.has_interval:
        return "–"
    return text("{low} to {high}", low=number(amount.low or 0.0), high=number(amount.high or 0.0))


def hot_and_cold(page: Page) -> None:
    """Times and bandwidths of every kernel at the main shape, the cache modes side by side."""
    r, modes = page.results, modes_of(page)
    rows: list[list[Part]] = []
    for cell in r.cells():
        times = [r.timing(cell, "median_us", m) for m in modes]
        row: list[Part] = [r.label(cell)]
        for t in times:
            row += [t, interval(t)]
        row += [quotient(times[1], times[0])] if len(modes) > 1 else []
        row += [r.timing(cell, "bandwidth_gb_s", m) for m in modes] + [r.timing(cell, "percent_of_peak", m) for m in modes]
        rows.append(row)
    header: list[Part] = ["Kernel"]
    for m in modes:
        header += [text("{mode}, µs", mode=m), "interval"]
    header += ["cold ÷ hot"] if len(modes) > 1 else []
    header += [*(text("{mode}, GB/s", mode=m) for m in modes), *(text("{mode}, % of peak", mode=m) for m in modes)]
    page.table(
        text("Times and effective bandwidth of every kernel at {main}, by state of the L2.", main=r.experiment.main_group), header, rows,
        source="`tables/timings.csv`", notes=["Medians with their 95 % intervals; bandwidth is from the median.", *axis_notes(page)], name="ladder",
        align="l" + "r" * (len(header) - 1),
    )  # fmt: skip


def relative_speeds(page: Page) -> None:
    """Each kernel's speed relative to the baselines of the same rounds."""
    r, mode = page.results, modes_of(page)[0]
    rows: list[list[Part]] = []
    for cell in r.cells():
        row: list[Part] = [r.label(cell)]
        for baseline in r.study.baselines:
            x = r.timing(cell, f"ratio_to_{baseline}", mode)
            row += [x, interval(x)]
        rows.append(row)
    header: list[Part] = ["Kernel"]
    for b in r.study.baselines:
        header += [f"÷ `{b}`", "interval"]
    page.table(
        text("Speed relative to the copies of the same rounds at {main}, {mode} L2.", main=r.experiment.main_group, mode=mode), header, rows,
        source="`tables/timings.csv`", align="l" + "r" * 2 * len(r.study.baselines), name="relative",
        notes=["A ratio is the copy's time divided by the kernel's, taken within a round: above one the kernel is faster."],
    )  # fmt: skip


def sizes(page: Page, mode: str) -> None:
    """Bandwidth by shape, the fastest configuration of each variant, with where the footprint lies."""
    r, names = page.results, by_size(page)
    rows: list[list[Part]] = [
        ["*footprint ÷ L2*", *(r.timing(r.cells(n)[0], "footprint_to_l2", mode) for n in names)],
        ["*in L2*", *(regime(page, n) for n in names)],
    ]
    for variant in r.experiment.variants():
        row: list[Part] = [f"`{variant.name}`"]
        for name in names:
            mine = [x for x in r.cells(name) if x.variant is variant]
            best = r.best(mine, mode)
            if best is None:
                why = r.status(mine[0], mode)[1] if mine else f"{variant.name} is not part of this run's configuration"
                row.append(missing(text("bandwidth of {cell}", cell=f"`{variant.name}`"), why))
                continue
            suffix = "".join(f" {r.study.axes[a].tag}{v}" for a, v in best.kernel_values.items())
            above = r.timing(best, "percent_of_peak", mode)
            row.append(
                text(
                    "{x:n}{suffix}{mark}",
                    x=r.timing(best, "bandwidth_gb_s", mode),
                    suffix=suffix,
                    mark="†" if above.known and above.number > 100 else "",
                )
            )
        rows.append(row)
    page.table(
        text("Effective bandwidth (GB/s) by shape, the fastest configuration of each variant, {mode} L2.", mode=mode), ["Variant", *names], rows,
        source="`tables/timings.csv`", align="l" + "r" * len(names), name=f"sizes_{mode}",
        notes=[
            "After each figure the configuration that gave it. Shapes are in the order of their bytes.",
            *axis_notes(page),
            "† lies above the nominal peak: it speaks of the cache.",
        ],
    )  # fmt: skip


def predictions(page: Page, words: Mapping[str, str], kinds: Sequence[tuple[str, Callable[[str], bool]]]) -> bool:
    """Predicted figures beside measured ones, one row a quantity; False where nothing can be compared.

    ``kinds`` sorts the notes of the table: the first whose function accepts a note names it.
    """
    compared: dict[str, list[tuple[float, float, str]]] = {}
    for x in page.results.table("predictions") if page.results.has_table("predictions") else ():
        if x["predicted"] and x["measured"]:
            compared.setdefault(x["quantity"], []).append((float(x["predicted"]), float(x["measured"]), x["note"]))
    rows: list[list[Part]] = []
    for quantity, label in [*words.items(), *((q, q.replace("_", " ")) for q in compared if q not in words)]:
        pairs = compared.get(quantity)
        if not pairs:
            continue
        worst = max((abs(b - a) / abs(a) * 100 if a else 0.0 if a == b else float("inf")) for a, b, _ in pairs)
        kind = next((k for k, accepts in kinds if any(accepts(n) for *_, n in pairs)), "–")
        rows.append(
            [
                label,
                derived(len(pairs)),
                derived(sum(a == b for a, b, _ in pairs)),
                derived(worst) if worst != float("inf") else "zero predicted",
                kind,
            ]
        )
    if rows:
        page.table(
            "Predicted figures beside measured ones, every kernel and shape.",
            ["Quantity", "Compared", "Equal", "Largest difference, %", "What it is"], rows,
            source="`tables/predictions.csv`", align="lrrrl", name="predictions",
        )  # fmt: skip
    return bool(rows)


def equality(page: Page, words: Mapping[str, str]) -> tuple[Amount, Amount, list[str]]:
    """Figures that must be equal to the prediction, those of them that are, and the names of the quantities that are not.

    All that were compared count, but for quantities that the table of predictions excuses: bounds, arbitration, the hardware's own variation.
    """
    rows = [x for x in (page.results.table("predictions") if page.results.has_table("predictions") else ()) if x["predicted"] and x["measured"]]
    excused = {x["quantity"] for x in rows if any(accepts(x["note"]) for _, accepts in EXCUSES)}
    held = [x for x in rows if x["quantity"] not in excused]
    off = [x for x in held if float(x["predicted"]) != float(x["measured"])]
    origin = "tables/predictions.csv: rows with predicted and measured" + (f", but {', '.join(sorted(excused))}" if excused else "")
    names = dict.fromkeys(words.get(x["quantity"], x["quantity"].replace("_", " ")) for x in off)
    return derived(len(held), origin=origin), derived(len(held) - len(off), origin=f"{origin}; predicted = measured"), list(names)


def must_be_equal(page: Page, words: Mapping[str, str]) -> Text:
    """How many figures had to be equal to the prediction, and which are not; ``words`` name the quantities."""
    compared, equal, off = equality(page, words)
    if not off:
        return text("Of {n:n} figures that must be equal, all are.", n=compared)
    said = "Of {n:n} figures that must be equal, {k:n} are not: {which}. Either the prediction or the counter is wrong there."
    return text(said, n=compared, k=derived(compared.number - equal.number, origin=equal.origin), which=Listing(off))


def best_sentences(page: Page, cells: Sequence[Cell]) -> list[Text]:
    """For each cache mode: the fastest of the cells and how close it comes to each limit."""
    r, out = page.results, []
    for mode in modes_of(page):
        best = r.best(cells, mode)
        if best is None:
            out.append(text("{x}", x=missing(text("fastest kernel with a {mode} L2", mode=mode), "no kernel was timed in this cache mode")))
            continue
        share = r.timing(best, "percent_of_peak", mode)
        beyond: Part = (
            text(", more than the memory can deliver, so part of the data came out of a cache") if share.known and share.number > 100 else EMPTY
        )
        limits = [
            text("{x:n} times the speed of {cell}", x=a, cell=f"`{b}`")
            for b in r.study.baselines
            if (a := r.timing(best, f"ratio_to_{b}", mode)).known
        ]
        tail: Part = text("; in the same rounds {limits}", limits=Listing(limits)) if limits else EMPTY
        out.append(
            text(
                "With a {mode} L2 the fastest transpose is {cell} at {b:i}: {share} of the nominal peak{beyond}{tail}.",
                mode=mode,
                cell=r.label(best),
                b=r.timing(best, "bandwidth_gb_s", mode),
                share=share,
                beyond=beyond,
                tail=tail,
            )
        )
    return out
