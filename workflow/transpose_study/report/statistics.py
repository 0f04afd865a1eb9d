"""Tables about how far the times can be trusted: means beside medians, the noise floor, clocks and throttling."""

from __future__ import annotations

from transpose_study.report.page import Page
from transpose_study.report.sections import modes_of
from transpose_study.report.texts import Listing, Message, Part, text
from transpose_study.report.wording import derived, missing, number, quotient

APART = 0.01  # share by which mean and median may part before the table remarks on it


def means_and_medians(page: Page) -> None:
    """The published study's statistic beside the median, with a remark where they part."""
    r, modes = page.results, modes_of(page)
    rows: list[list[Part]] = []
    parted: list[Part] = []
    for cell in r.cells():
        row: list[Part] = [r.label(cell)]
        flags: dict[tuple[str, str], None] = {}
        for m in modes:
            median, mean = r.timing(cell, "median_us", m), r.timing(cell, "mean_us", m)
            apart = quotient(mean, median)
            row += [median, mean, missing(mean.name, mean.reason) if not apart.known else derived(100 * (apart.number - 1))]
            flags |= dict.fromkeys((m, f.replace("_", " ")) for f in r.flags(cell, m))
            if apart.known and abs(apart.number - 1) > APART and r.label(cell) not in parted:
                parted.append(r.label(cell))
        rows.append(
            [
                *row,
                r.timing(cell, "n", modes[0]),
                Listing([text("{mode}: {flag}", mode=m, flag=Message(f)) for m, f in flags], last=";") if flags else "",
            ]
        )
    header: list[Part] = ["Kernel"]
    for m in modes:
        header += [text("{mode}: median, µs", mode=m), "mean, µs", "mean beyond median, %"]
    page.table(
        text("Medians and means at {main}.", main=r.experiment.main_group), [*header, "Samples", "Flags"], rows, source="`tables/timings.csv`",
        align="l" + "r" * (3 * len(modes) + 1) + "l", name="means",
    )  # fmt: skip
    if parted:
        page.say(
            text(
                "Mean and median part by more than {share} % for {cells}: there a mean is led by a few long samples, "
                "and the median is the figure to quote.",
                share=number(100 * APART),
                cells=Listing(parted),
            )
        )
    else:
        page.say(
            text(
                "Mean and median differ by at most {share} % for every kernel: no heavy tail, so that means may be held against the published ones.",
                share=number(100 * APART),
            )
        )


def noise(page: Page, called: str = "Shape") -> None:
    """The noise floor of each group and cache mode; ``called`` is what a group is called."""
    r, modes = page.results, modes_of(page)
    rows: list[list[Part]] = [[name, *(r.noise_floor(m, name) for m in modes)] for name in r.experiment.groups]
    page.table(
        "Noise floor, %: how far two entries of the same kernel are apart.", [called, *(text("{mode} L2", mode=m) for m in modes)], rows,
        source="`tables/noise.csv`", align="l" + "r" * len(modes), name="noise",
        notes=["The far end of the interval of the ratio of the two entries (A/A). A smaller difference between two kernels counts as none."],
    )  # fmt: skip


def clocks(page: Page, called: str = "Shape") -> None:
    """Clocks, temperature, power and throttling of each group's rounds; ``called`` is what a group is called."""
    r = page.results
    if not r.has_table("rounds"):
        return
    rows: list[list[Part]] = []
    throttled: dict[str, None] = {}
    for name, shape in r.experiment.groups.items():
        mine = [x for x in r.table("rounds") if all(x[a] == str(v) for a, v in shape.values.items())]
        row: list[Part] = [name]
        for column in ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w"):
            values = [float(x[column]) for x in mine if x[column]]
            row.append(
                "–"
                if not values
                else number(values[0])
                if min(values) == max(values)
                else text("{a} to {b}", a=number(min(values)), b=number(max(values)))
            )
        reasons = sorted({x["throttle_reasons"] for x in mine if x["throttle_reasons"]})
        throttled |= dict.fromkeys(f"`{x}`" for x in reasons if int(x, 16))
        rows.append([*row, Listing([f"`{x}`" for x in reasons], last=";") if reasons else "–"])
    page.table(
        "Clocks and throttling while the rounds ran.",
        [called, "SM clock, MHz", "Memory clock, MHz", "Temperature, °C", "Power, W", "Throttle reasons"], rows,
        source="`tables/rounds.csv`", align="lrrrrl", notes=["Throttle reasons are the driver's bits; `0x0` is none."], name="clocks",
    )  # fmt: skip
    if throttled:
        page.say(text("The driver held clocks back in some rounds ({bits}); those samples are flagged, not dropped.", bits=Listing(throttled)))
    else:
        page.say("The driver named no reason for holding clocks back in any round.")
