# Setting runs side by side: snakemake --cores 1 compare --config 'compare=[ARCHIVE, FOLDER, PUBLISHED STUDY]'
from transpose_study.comparison.compare import outputs, reads


rule compare:
    """Compare archives, results folders and published studies cell by cell, into results/compare/<sides>/."""
    input:
        reads(EXPERIMENT.config.compare or []),
    output:
        outputs(EXPERIMENT.config.compare or []),
    params:
        sides=EXPERIMENT.config.compare or [],
    shell:
        "transpose-study compare {params.sides:q}"
