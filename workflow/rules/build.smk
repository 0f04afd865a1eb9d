# Kernels to cubin, PTX and SASS. One rule a variant, since each makes as many kernels as its axes have values.
# A source counts by its digest (comments and white space taken out), so a touched or reformatted file builds nothing.

for variant in EXPERIMENT.variants():
    if variant.no_kernel:
        continue

    rule:
        """Compile one variant for all its axis values."""
        name:
            f"build_{variant.name}"
        input:
            source=ancient(str(variant.source)),
        output:
            [EXPERIMENT.paths.kernel(EXPERIMENT.architecture, EXPERIMENT.study.kernel_name(k), "json") for k in EXPERIMENT.kernels(variant)],
        log:
            f"{RUN}/logs/build_{variant.name}.log",
        params:
            variant=variant.name,
            settings=EXPERIMENT.build_settings(variant),
        shell:
            "transpose-study build {params.variant} --run {RUN:q} --settings {params.settings:q} --log {log:q}"
