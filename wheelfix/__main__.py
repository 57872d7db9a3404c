"""``python -m wheelfix``."""

import sys

from wheelfix.cli import main

sys.exit(main())
