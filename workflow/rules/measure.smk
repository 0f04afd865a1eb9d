# What needs the GPU. Each rule depends on its slice of the configuration alone, never on the whole of it, and takes the
# one GPU that the profile grants (`resources: gpu=1`).

try:
    ALL_CORES = workflow.cores
except WorkflowError:  # no --cores, so nothing will run: --unlock, --summary, --report
    ALL_CORES = 1


def harness(experiment):
    """The cubin of the measuring program's own kernels, for the experiment's architecture."""
    return str(experiment.paths.kernel(experiment.architecture, "harness", "cubin"))


rule build_harness:
    """Compile the measuring program's own kernels."""
    output:
        "{run}/build/sm_{architecture}/harness.cubin",
    log:
        "{run}/logs/build_harness_{architecture}.log",
    params:
        settings=lambda w: RUNS[w.run].harness_settings(),
    shell:
        "transpose-study build harness --run {wildcards.run:q} --settings {params.settings:q} --log {log:q}"


rule check_group:
    """Compare every kernel's output bit for bit, at this shape and at the edge shapes."""
    input:
        kernels=lambda w: RUNS[w.run].kernel_records(w.group),
        harness=lambda w: harness(RUNS[w.run]),
    output:
        "{run}/raw/check/{group}.csv",
    log:
        "{run}/logs/check/{group}.log",
    params:
        settings=lambda w: RUNS[w.run].check_settings(w.group),
    resources:
        gpu=1,
    shell:
        "transpose-study check --run {wildcards.run:q} --settings {params.settings:q} --log {log:q}"


rule time_group:
    """Sample every checked kernel of one shape, hot and cold, over several fresh processes."""
    input:
        kernels=lambda w: RUNS[w.run].kernel_records(w.group),
        harness=lambda w: harness(RUNS[w.run]),
        check="{run}/raw/check/{group}.csv",
    output:
        "{run}/raw/timing/{group}.csv",
    log:
        "{run}/logs/time/{group}.log",
    params:
        settings=lambda w: RUNS[w.run].time_settings(w.group),
    threads: ALL_CORES  # the machine to itself: nothing else of this workflow runs beside a timing
    resources:
        gpu=1,
    shell:
        "transpose-study time --run {wildcards.run:q} --settings {params.settings:q} --log {log:q}"


rule profile_group:
    """Read one batch of hardware counters of one shape with ncu."""
    input:
        kernels=lambda w: RUNS[w.run].kernel_records(w.group),
        harness=lambda w: harness(RUNS[w.run]),
        check="{run}/raw/check/{group}.csv",
    output:
        "{run}/raw/counters/parts/{group}.{batch}.csv",
    log:
        "{run}/logs/profile/{group}.{batch}.log",
    params:
        settings=lambda w: RUNS[w.run].profile_settings(w.group, w.batch),
    resources:
        gpu=1,
    shell:
        "transpose-study profile --run {wildcards.run:q} --settings {params.settings:q} --log {log:q}"


rule merge_checks:
    """Join the shapes' verdicts."""
    input:
        lambda w: [RUNS[w.run].paths.check_part(g) for g in RUNS[w.run].groups],
    output:
        "{run}/raw/check.csv",
    log:
        "{run}/logs/merge_checks.log",
    params:
        study=lambda w: RUNS[w.run].config.study,
        groups=lambda w: list(RUNS[w.run].groups),
    shell:
        "transpose-study merge-checks --run {wildcards.run:q} --study {params.study:q} --groups {params.groups:q} --log {log:q}"


rule merge_counters:
    """Join the metric batches of one shape."""
    input:
        lambda w: [RUNS[w.run].paths.counters_part(w.group, b) for b in RUNS[w.run].batch_names(w.group)],
    output:
        "{run}/raw/counters/{group}.csv",
    log:
        "{run}/logs/merge_counters/{group}.log",
    params:
        study=lambda w: RUNS[w.run].config.study,
        batches=lambda w: RUNS[w.run].batch_names(w.group),
    shell:
        "transpose-study merge-counters --run {wildcards.run:q} --study {params.study:q} --groups {wildcards.group:q}"
        " --batches {params.batches:q} --log {log:q}"
