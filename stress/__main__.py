"""``python -m stress [SHARE]``: everything, or a share of the numbers."""

import sys

from stress.run import main

sys.exit(main(*map(float, sys.argv[1:])))
