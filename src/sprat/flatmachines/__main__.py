"""`python -m sprat.flatmachines`: see runner.py."""

from __future__ import annotations

import sys

from sprat.flatmachines.runner import main

if __name__ == "__main__":
    sys.exit(main())
