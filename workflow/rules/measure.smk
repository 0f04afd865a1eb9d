# What needs the GPU. Each rule depends on its slice of the configuration alone, never on the whole of it, and takes the
# one GPU that the profile grants (`resources: gpu=1`).


rule build_harness:
    """Compile the measuring program's own kernels."""
    output:
        EXPERIMENT.paths.kernel(EXPERIMENT.architecture, "harness", "cubin"),
    log:
        f"{RUN}/logs/build_harness.log",
    params:
        settings=EXPERIMENT.harness_settings(),
    shell:
        "transpose-study build harness --run {RUN:q} --settings {params.settings:q} --log {log:q}"


rule check_group:
    """Compare every kernel's output bit for bit, at this shape and at the edge shapes."""
    input:
        kernels=lambda w: EXPERIMENT.kernel_records(w.group),
        harness=rules.build_harness.output,
    output:
        f"{RUN}/raw/check/{{group}}.csv",
    log:
        f"{RUN}/logs/check/{{group}}.log",
    params:
        settings=lambda w: EXPERIMENT.check_settings(w.group),
    resources:
        gpu=1,
    shell:
        "transpose-study check --run {RUN:q} --settings {params.settings:q} --log {log:q}"


rule time_group:
    """Sample every checked kernel of one shape, hot and cold, over several fresh processes."""
    input:
        kernels=lambda w: EXPERIMENT.kernel_records(w.group),
        harness=rules.build_harness.output,
        check=f"{RUN}/raw/check/{{group}}.csv",
    output:
        f"{RUN}/raw/timing/{{group}}.csv",
    log:
        f"{RUN}/logs/time/{{group}}.log",
    params:
        settings=lambda w: EXPERIMENT.time_settings(w.group),
    resources:
        gpu=1,
    shell:
        "transpose-study time --run {RUN:q} --settings {params.settings:q} --log {log:q}"


rule profile_group:
    """Read one batch of hardware counters of one shape with ncu."""
    input:
        kernels=lambda w: EXPERIMENT.kernel_records(w.group),
        harness=rules.build_harness.output,
        check=f"{RUN}/raw/check/{{group}}.csv",
    output:
        f"{RUN}/raw/counters/parts/{{group}}.{{batch}}.csv",
    log:
        f"{RUN}/logs/profile/{{group}}.{{batch}}.log",
    params:
        settings=lambda w: EXPERIMENT.profile_settings(w.group, w.batch),
    resources:
        gpu=1,
    shell:
        "transpose-study profile --run {RUN:q} --settings {params.settings:q} --log {log:q}"


rule merge_checks:
    """Join the shapes' verdicts."""
    input:
        expand(f"{RUN}/raw/check/{{group}}.csv", group=EXPERIMENT.groups),
    output:
        f"{RUN}/raw/check.csv",
    log:
        f"{RUN}/logs/merge_checks.log",
    params:
        study=EXPERIMENT.config.study,
        groups=list(EXPERIMENT.groups),
    shell:
        "transpose-study merge-checks --run {RUN:q} --study {params.study:q} --groups {params.groups:q} --log {log:q}"


rule merge_counters:
    """Join the metric batches of one shape."""
    input:
        expand(f"{RUN}/raw/counters/parts/{{{{group}}}}.{{batch}}.csv", batch=EXPERIMENT.batch_names()),
    output:
        f"{RUN}/raw/counters/{{group}}.csv",
    log:
        f"{RUN}/logs/merge_counters/{{group}}.log",
    params:
        study=EXPERIMENT.config.study,
        batches=EXPERIMENT.batch_names(),
    shell:
        "transpose-study merge-counters --run {RUN:q} --study {params.study:q} --groups {wildcards.group:q}"
        " --batches {params.batches:q} --log {log:q}"
