# Tables from raw data, figures and the write-up from tables.
from transpose_study.analysis.judge import TABLES as JUDGED


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
        expand(f"{RUN}/tables/{{table}}.csv", table=JUDGED),
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
    output:
        svg=[report(f"{RUN}/figures/{name}.svg", caption=f"../report/{name}.rst", category="Figures") for name in FIGURES],
        png=expand(f"{RUN}/figures/{{name}}.png", name=FIGURES),
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
        paper=f"paper/{EXPERIMENT.config.study}.py",
        captions=EXPERIMENT.captions(),
        tables=rules.aggregate.output,
        judged=rules.judge.output,
        figures=rules.draw.output.svg,
    output:
        expand(f"{RUN}/report/{EXPERIMENT.config.study}.{{format}}", format=EXPERIMENT.config.report.formats),
    log:
        f"{RUN}/logs/write.log",
    params:
        declared=EXPERIMENT.analysis_settings(),
    shell:
        "transpose-study write --run {RUN:q} --log {log:q}"
