# In place of the measurements: the raw files of an archived run.

for run, experiment in RUNS.items():

    rule:
        """Take the raw data out of the archive, each file compared with the archive's manifest."""
        name:
            own_name("restore_raw", experiment)
        input:
            archive=str(experiment.target["archive"]),
            config=f"{run}/run_config.yaml",
        output:
            experiment.raw_files(),
        log:
            f"{run}/logs/restore_raw.log",
        params:
            run=run,
        shell:
            "transpose-study restore --run {params.run:q} --archive {input.archive:q} --log {log:q}"
