# What is known before anything is measured: counters, instructions and occupancy of every cell, from its compiled code.


rule predict:
    """Predict every counter of every cell, and check every kernel without a GPU."""
    input:
        kernels=lambda w: RUNS[w.run].kernel_records(),
    output:
        quantities="{run}/predicted.csv",
        banks="{run}/predicted_banks.csv",
        check="{run}/predicted_check.csv",
    log:
        "{run}/logs/predict.log",
    params:
        settings=lambda w: RUNS[w.run].predict_settings(),
    shell:
        "transpose-study predict --run {wildcards.run:q} --settings {params.settings:q} --log {log:q}"
