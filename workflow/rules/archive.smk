# Packing a finished run.


rule archive:
    """Pack the run with its exact configuration into results/archive/. The file's name holds the measurement's day."""
    input:
        environment=f"{RUN}/environment.json",
        predicted=rules.predict.output,
        tables=rules.aggregate.output,
        judged=rules.judge.output,
        figures=rules.draw.output,
        report=rules.write.output,
    shell:
        "transpose-study archive --run {RUN:q}"
