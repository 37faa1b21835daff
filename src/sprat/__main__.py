"""`python -m sprat` is the `sprat` command."""

import sys

from sprat.cli import main

if __name__ == "__main__":
    sys.exit(main())
