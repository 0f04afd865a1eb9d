# Packing a finished run.


rule archive:
    """Pack the run with its exact configuration into results/archive/."""
    input:
        f"{RUN}/environment.json", rules.aggregate.output, rules.draw.output, rules.write.output,
    shell:
        "transpose-study archive --run {RUN:q}"
