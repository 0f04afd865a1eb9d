# Setting runs side by side: snakemake --cores 1 compare --config 'compare=[ARCHIVE, FOLDER, PUBLISHED STUDY]'
from transpose_study.comparison.compare import outputs, reads


rule compare:
    """Compare archives, results folders and published studies cell by cell, into results/compare/<sides>/."""
    input:
        reads(MAIN.config.compare or []),
    output:
        outputs(MAIN.config.compare or []),
    params:
        sides=MAIN.config.compare or [],
    shell:
        "transpose-study compare {params.sides:q}"
