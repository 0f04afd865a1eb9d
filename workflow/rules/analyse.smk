# Tables from raw data, figures and the write-up from tables, of each experiment.
from transpose_study.analysis.judge import TABLES as JUDGED
from transpose_study.report import figure_suffixes, report_suffixes, sources_of

TABLES, DRAWN, WRITTEN = {}, {}, {}  # what the rules of each experiment make, by results folder

for run, experiment in RUNS.items():
    study, paper, figures = experiment.config.study, experiment.config.paper, FIGURES[run]
    TABLES[run] = expand(f"{run}/tables/{{table}}.csv", table=experiment.tables())
    DRAWN[run] = expand(f"{run}/figures/{{name}}.{{suffix}}", name=figures, suffix=figure_suffixes(paper.language))
    WRITTEN[run] = expand(f"{run}/report/{study}.{{suffix}}", suffix=report_suffixes(experiment.config.report.formats, paper.language))

    rule:
        """Make the tidy tables from the raw data."""
        name:
            own_name("aggregate", experiment)
        input:
            config=f"{run}/run_config.yaml",
            environment=f"{run}/environment.json",
            raw=experiment.raw_files(),
            kernels=experiment.kernel_records(),
            predicted=PREDICTED[run],
        output:
            TABLES[run],
        log:
            f"{run}/logs/aggregate.log",
        params:
            run=run,
            declared=experiment.analysis_settings(),
        shell:
            "transpose-study aggregate --run {params.run:q} --log {log:q}"

    rule:
        """Judge the claims and answer the open questions."""
        name:
            own_name("judge", experiment)
        input:
            config=f"{run}/run_config.yaml",
            tables=TABLES[run],
        output:
            [report(f"{run}/tables/{t}.csv", caption="../report/judged.rst", category="Claims", labels={"Study": study, "Table": t}) for t in JUDGED],
        log:
            f"{run}/logs/judge.log",
        params:
            run=run,
            declared=experiment.analysis_settings(),
        shell:
            "transpose-study judge --run {params.run:q} --log {log:q}"

    rule:
        """Draw the figures."""
        name:
            own_name("draw", experiment)
        input:
            config=f"{run}/run_config.yaml",
            tables=TABLES[run],
            judged=expand(f"{run}/tables/{{table}}.csv", table=JUDGED),
            declared=f"paper/{study}.figures.yaml",
            texts=sources_of(study, paper.language)[1:],
        output:
            shown=[
                report(f"{run}/figures/{f}.svg", caption=f"../report/{f}.rst", category="Figures", labels={"Study": study, "Figure": f.replace("_", " ")})
                for f in figures
            ],
            others=[f for f in DRAWN[run] if f not in expand(f"{run}/figures/{{name}}.svg", name=figures)],
        log:
            f"{run}/logs/draw.log",
        params:
            run=run,
            declared=experiment.analysis_settings(),
        shell:
            "transpose-study draw --run {params.run:q} --log {log:q}"

    rule:
        """Write the report in every configured format."""
        name:
            own_name("write", experiment)
        input:
            config=f"{run}/run_config.yaml",
            environment=f"{run}/environment.json",
            paper=sources_of(study, paper.language),
            captions=[f"workflow/report/{f}.rst" for f in figures],
            tables=TABLES[run],
            judged=expand(f"{run}/tables/{{table}}.csv", table=JUDGED),
            figures=DRAWN[run],
        output:
            [
                report(f, caption="../report/write_up.rst", category="Write-up", labels={"Study": study, "Edition": f.split(".", 1)[1]})
                if f.endswith(("html", "pdf"))
                else f
                for f in WRITTEN[run]
            ],
        log:
            f"{run}/logs/write.log",
        params:
            run=run,
            declared=experiment.analysis_settings(),
        shell:
            "transpose-study write --run {params.run:q} --log {log:q}"
