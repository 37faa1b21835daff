"""`python -m sprat` is the `sprat` command, and ends without taking the interpreter apart.

A worker may be started for one job: freeing every object one by one, only to end the process, is a
tenth of what it costs. What was registered for the end is run, and what was printed is written.
"""

import atexit
import os
import sys

from sprat.cli.main import main


def leave(code: int) -> None:
    threading = sys.modules.get("threading")
    if threading is not None and threading.active_count() > 1:
        sys.exit(code)  # somebody still works here: let Python wait for them
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())
