# The resolved configuration and the record of the environment.
import json


rule resolve_config:
    """Write the configuration with every default, so that later steps and readers see the exact one."""
    output:
        f"{RUN}/run_config.yaml",
    log:
        f"{RUN}/logs/resolve_config.log",
    params:
        config=json.dumps(config, sort_keys=True),
        resolved=json.dumps(EXPERIMENT.resolved(), sort_keys=True),
    shell:
        "transpose-study resolve --run {RUN:q} --config {params.config:q} --log {log:q}"


rule describe_environment:
    """Record GPU, driver, compiler, ncu, packages and commit of the measurement."""
    input:
        raw=EXPERIMENT.raw_files(),
        kernels=EXPERIMENT.kernel_records(),
    output:
        f"{RUN}/environment.json",
    log:
        f"{RUN}/logs/describe_environment.log",
    params:
        settings=EXPERIMENT.environment_settings(),
    shell:
        "transpose-study describe --run {RUN:q} --settings {params.settings:q} --log {log:q}"
