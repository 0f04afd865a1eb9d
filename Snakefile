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
    from transpose_study.config import check_files
    from transpose_study.errors import StudyError
    from transpose_study.experiment import Experiment
    from transpose_study.report.figures import figure_names
except ImportError as error:
    raise WorkflowError(f"{error}: install the project first, as README.md says (pip install -e .)") from None

try:
    check_files(["config/config.yaml", *workflow.configfiles])
except StudyError as error:
    raise WorkflowError(str(error)) from None


configfile: "config/config.yaml"

# The rules call `transpose-study`, which pip put beside this Python whether or not its environment is activated.
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]

# For environment.json; not a parameter, or another word on the command line would look like another experiment.
os.environ["TRANSPOSE_STUDY_ARGV"] = json.dumps([Path(sys.argv[0]).name, *sys.argv[1:]])

try:
    EXPERIMENT = Experiment.from_snakemake(config)
    FIGURES = figure_names(EXPERIMENT.config.study)
except StudyError as error:
    raise WorkflowError(str(error)) from None

RUN = str(EXPERIMENT.paths.folder)


wildcard_constraints:
    group="|".join(map(re.escape, EXPERIMENT.groups)),
    batch="|".join(map(re.escape, EXPERIMENT.batches)),


include: "workflow/rules/prepare.smk"
include: "workflow/rules/build.smk"
include: "workflow/rules/predict.smk"


if EXPERIMENT.replay:

    include: "workflow/rules/replay.smk"

else:

    include: "workflow/rules/measure.smk"


include: "workflow/rules/analyse.smk"
include: "workflow/rules/archive.smk"
include: "workflow/rules/compare.smk"


rule all:
    """Everything: raw data, tables, figures and the write-up."""
    default_target: True
    input:
        f"{RUN}/environment.json",
        EXPERIMENT.raw_files(),  # a file that is gone is made again, though what was made from it is there
        EXPERIMENT.kernel_records(),
        rules.predict.output,
        rules.aggregate.output,
        rules.judge.output,
        rules.draw.output,
        rules.write.output,
