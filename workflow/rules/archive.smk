# Packing a finished run.


rule archive:
    """Pack each run with its exact configuration into results/archive/. The files' names hold the measurement's day."""
    input:
        [finished(run) for run in RUNS],
    params:
        runs=list(RUNS),
    shell:
        "for run in {params.runs:q}; do transpose-study archive --run $run || exit 1; done"
