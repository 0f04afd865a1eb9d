# The resolved configuration and the record of the environment, of each experiment.
import json


rule resolve_config:
    """Write the configuration with every default, so that later steps and readers see the exact one."""
    output:
        "{run}/run_config.yaml",
    log:
        "{run}/logs/resolve_config.log",
    params:
        config=lambda w: json.dumps(RUNS[w.run].given, sort_keys=True),
        resolved=lambda w: json.dumps(RUNS[w.run].resolved(), sort_keys=True),
    shell:
        "transpose-study resolve --run {wildcards.run:q} --config {params.config:q} --log {log:q}"


rule describe_environment:
    """Record GPU, driver, compiler, ncu, packages and commit of the measurement."""
    input:
        raw=lambda w: RUNS[w.run].raw_files(),
        kernels=lambda w: RUNS[w.run].kernel_records(),
    output:
        "{run}/environment.json",
    log:
        "{run}/logs/describe_environment.log",
    params:
        settings=lambda w: RUNS[w.run].environment_settings(),
    shell:
        "transpose-study describe --run {wildcards.run:q} --settings {params.settings:q} --log {log:q}"
