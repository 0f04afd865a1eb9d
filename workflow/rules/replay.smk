# In place of the measurements: the raw files of an archived run.


rule restore_raw:
    """Take the raw data out of the archive, each file compared with the archive's manifest."""
    input:
        archive=str(EXPERIMENT.target["archive"]),
        config=f"{RUN}/run_config.yaml",
    output:
        EXPERIMENT.raw_files(),
    log:
        f"{RUN}/logs/restore_raw.log",
    shell:
        "transpose-study restore --run {RUN:q} --archive {input.archive:q} --log {log:q}"
