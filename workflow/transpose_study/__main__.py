"""``python -m transpose_study`` is the command ``transpose-study``."""

import sys

from transpose_study.cli import main

sys.exit(main())
