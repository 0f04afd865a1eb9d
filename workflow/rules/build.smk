# Kernels to cubin, PTX and SASS. One rule a variant, since each makes as many kernels as its axes have values.
# A source counts by its digest (comments and white space taken out), so a touched or reformatted file builds nothing.

for run, experiment in RUNS.items():
    for variant in experiment.variants():
        if variant.no_kernel:
            continue

        rule:
            """Compile one variant for all values of the axes that select its code."""
            name:
                own_name(f"build_{variant.name}", experiment)
            input:
                source=ancient(str(variant.source)),
            output:
                [experiment.paths.kernel(experiment.architecture, experiment.study.kernel_name(k), "json") for k in experiment.kernels(variant)],
            log:
                f"{run}/logs/build_{variant.name}.log",
            params:
                run=run,
                variant=variant.name,
                settings=experiment.build_settings(variant),
            shell:
                "transpose-study build {params.variant} --run {params.run:q} --settings {params.settings:q} --log {log:q}"
