# What is known before anything is measured: counters, instructions and occupancy of every cell, from its compiled code.


rule predict:
    """Predict every counter of every cell, and check every kernel without a GPU."""
    input:
        kernels=EXPERIMENT.kernel_records(),
    output:
        quantities=f"{RUN}/predicted.csv",
        banks=f"{RUN}/predicted_banks.csv",
        check=f"{RUN}/predicted_check.csv",
    log:
        f"{RUN}/logs/predict.log",
    params:
        settings=EXPERIMENT.predict_settings(),
    shell:
        "transpose-study predict --run {RUN:q} --settings {params.settings:q} --log {log:q}"
