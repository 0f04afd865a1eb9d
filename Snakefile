# The transpose study. `snakemake --cores 1 all` measures it on the GPU that is here; without one it rebuilds everything
# after the raw data from an archived run. Rules are included in the order in which they run.
import json
import os
import re
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.19")

try:
    from transpose_study.config import check_files, study_of
    from transpose_study.errors import StudyError
    from transpose_study.experiment import Experiment
    from transpose_study.report.figures import figure_names
except ImportError as error:
    raise WorkflowError(f"{error}: install the project first, as README.md says (pip install -e .)") from None

try:
    check_files(["config/config.yaml", *workflow.configfiles])
except StudyError as error:
    raise WorkflowError(str(error)) from None


if config.get("study") in (None, study_of("config/config.yaml")):  # a file of another study (--configfile) stands by itself

    configfile: "config/config.yaml"


# The rules call `transpose-study`, which pip put beside this Python whether or not its environment is activated.
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]

# For environment.json; not a parameter, or another word on the command line would look like another experiment.
os.environ["TRANSPOSE_STUDY_ARGV"] = json.dumps([Path(sys.argv[0]).name, *sys.argv[1:]])

try:
    EXPERIMENTS = Experiment.all_from_snakemake(config)
    RUNS = {str(e.paths.folder): e for e in EXPERIMENTS}  # each experiment by its results folder, the main one first
    FIGURES = {run: figure_names(e.config.study) for run, e in RUNS.items()}
except StudyError as error:
    raise WorkflowError(str(error)) from None

MAIN, MAIN_RUN = EXPERIMENTS[0], str(EXPERIMENTS[0].paths.folder)
PREDICTED = {run: [str(p) for p in (e.paths.predicted, e.paths.predicted_banks, e.paths.predicted_check)] for run, e in RUNS.items()}


def own_name(rule_name, experiment):
    """A rule's name, with the study behind it for all experiments but the main one."""
    return rule_name if experiment is MAIN else f"{rule_name}_{experiment.config.study}"


def finished(run):
    """Everything that `all` makes of one experiment."""
    experiment = RUNS[run]
    return [
        f"{run}/environment.json",
        *experiment.raw_files(),  # a file that is gone is made again, though what was made from it is there
        *experiment.kernel_records(),
        *PREDICTED[run],
        *TABLES[run],
        *expand(f"{run}/tables/{{table}}.csv", table=JUDGED),
        *DRAWN[run],
        *WRITTEN[run],
    ]


wildcard_constraints:
    architecture="|".join({e.architecture: None for e in EXPERIMENTS}),
    run="|".join(map(re.escape, RUNS)),
    group="|".join(re.escape(g) for e in EXPERIMENTS for g in e.groups),
    batch="|".join({re.escape(b): None for e in EXPERIMENTS for b in e.batches}),


include: "workflow/rules/prepare.smk"
include: "workflow/rules/build.smk"
include: "workflow/rules/predict.smk"


if MAIN.replay:

    include: "workflow/rules/replay.smk"

else:

    include: "workflow/rules/measure.smk"


include: "workflow/rules/analyse.smk"
include: "workflow/rules/archive.smk"
include: "workflow/rules/compare.smk"


for run, experiment in RUNS.items():

    rule:
        """One study alone: snakemake --cores 1 STUDY."""
        name:
            experiment.config.study
        input:
            finished(run),


rule all:
    """Everything: raw data, tables, figures and the write-up of each study."""
    default_target: True
    input:
        [finished(run) for run in RUNS],


for each in workflow.rules:  # on the console a job is one short line, not the lists of its files
    values = [f"{{wildcards.{name}}}" for name in sorted(each.wildcard_names - {"run"}, reverse=True)]
    where = ["({wildcards.run})"] if "run" in each.wildcard_names else []
    each.message = " ".join([each.name, *values, *where])
