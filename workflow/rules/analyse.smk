# Tables from raw data, figures and the write-up from tables.
from transpose_study.analysis.judge import TABLES as JUDGED
from transpose_study.report import figure_suffixes, report_suffixes, sources_of

PAPER = EXPERIMENT.config.paper
PAGES = report_suffixes(EXPERIMENT.config.report.formats, PAPER.language)


rule aggregate:
    """Make the tidy tables from the raw data."""
    input:
        config=f"{RUN}/run_config.yaml",
        environment=f"{RUN}/environment.json",
        raw=EXPERIMENT.raw_files(),
        kernels=EXPERIMENT.kernel_records(),
        predicted=rules.predict.output,
    output:
        expand(f"{RUN}/tables/{{table}}.csv", table=EXPERIMENT.tables()),
    log:
        f"{RUN}/logs/aggregate.log",
    params:
        declared=EXPERIMENT.analysis_settings(),
    shell:
        "transpose-study aggregate --run {RUN:q} --log {log:q}"


rule judge:
    """Judge the claims and answer the open questions."""
    input:
        config=f"{RUN}/run_config.yaml",
        tables=rules.aggregate.output,
    output:
        [report(f"{RUN}/tables/{table}.csv", caption="../report/judged.rst", category="Claims", labels={"Table": table}) for table in JUDGED],
    log:
        f"{RUN}/logs/judge.log",
    params:
        declared=EXPERIMENT.analysis_settings(),
    shell:
        "transpose-study judge --run {RUN:q} --log {log:q}"


rule draw:
    """Draw the figures."""
    input:
        config=f"{RUN}/run_config.yaml",
        tables=rules.aggregate.output,
        judged=rules.judge.output,
        declared=f"paper/{EXPERIMENT.config.study}.figures.yaml",
        texts=sources_of(EXPERIMENT.config.study, PAPER.language)[1:],
    output:
        shown=[
            report(f"{RUN}/figures/{name}.svg", caption=f"../report/{name}.rst", category="Figures", labels={"Figure": name.replace("_", " ")})
            for name in FIGURES
        ],
        others=[f"{RUN}/figures/{name}.{s}" for name in FIGURES for s in figure_suffixes(PAPER.language) if s != "svg"],
    log:
        f"{RUN}/logs/draw.log",
    params:
        declared=EXPERIMENT.analysis_settings(),
    shell:
        "transpose-study draw --run {RUN:q} --log {log:q}"


rule write:
    """Write the report in every configured format."""
    input:
        config=f"{RUN}/run_config.yaml",
        environment=f"{RUN}/environment.json",
        paper=sources_of(EXPERIMENT.config.study, PAPER.language),
        captions=EXPERIMENT.captions(),
        tables=rules.aggregate.output,
        judged=rules.judge.output,
        figures=rules.draw.output,
    output:
        [
            report(f"{RUN}/report/{EXPERIMENT.config.study}.{s}", caption="../report/write_up.rst", category="Write-up", labels={"Edition": s})
            if s.endswith(("html", "pdf"))
            else f"{RUN}/report/{EXPERIMENT.config.study}.{s}"
            for s in PAGES
        ],
    log:
        f"{RUN}/logs/write.log",
    params:
        declared=EXPERIMENT.analysis_settings(),
    shell:
        "transpose-study write --run {RUN:q} --log {log:q}"
