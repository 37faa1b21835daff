"""`sprat init`: a sprat.yml and a function to begin with."""

from __future__ import annotations

import os

from sprat.cli.arguments import CommandParser
from sprat.cli.main import DONE
from sprat.cli.output import document
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SPRAT_YML = """\
# sprat.yml: your pools. `sprat apply` checks this file and writes it to the store.

store: sqlite:///sprat.db          # one file beside this one; SPRAT_URL and --url override it

pools:
  numbers:
    handler: jobs:square           # the function `square` in jobs.py, called with each payload
    max_workers: 4                 # at most this many at once; they leave when work is done
    # timeout_seconds: 5m          # a job that runs longer is stopped and has failed
    # environment: [OPENAI_API_KEY]  # variables that workers may see, besides PATH and the like
    # retry_base_seconds: 0.4      # pause before the second attempt, doubled for each one after it

  # A pool can also run a program: the payload as JSON on stdin, its result as JSON on stdout.
  # thumbnails:
  #   command: [./thumbnail.sh, --size, "200"]
"""

JOBS_PY = """\
# jobs.py: a job is a plain function. Its argument is the payload, its return value the result.


def square(payload):
    return payload["n"] ** 2
"""
NEXT = """\
  sprat apply                       # write the pools to the store
  sprat push numbers '{"n": 4}'     # workers start by themselves
  sprat watch numbers               # until all is done"""
FILES = {"sprat.yml": SPRAT_YML, "jobs.py": JOBS_PY}


def parser() -> CommandParser:
    made = CommandParser(prog="sprat init", has_url=False)
    made.add_argument("directory", metavar="DIR", nargs="?", default=".", help="default: here")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    written = [name for name, text in FILES.items() if _write(asked.directory, name, text)]
    kept = [name for name in FILES if name not in written]
    if asked.json:
        document({"directory": asked.directory, "written": written, "kept": kept})
        return DONE
    for name in FILES:
        path = os.path.normpath(os.path.join(asked.directory, name))
        print(f"wrote {path}" if name in written else f"{path} is there already: left as it is")
    print("\nNext:")
    if os.path.normpath(asked.directory) != ".":
        print(f"  cd {asked.directory}")
    print(NEXT)
    return DONE


def _write(directory: str, name: str, text: str) -> bool:
    """Write a new file; False when there is one already."""
    try:
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, name), "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if not os.path.isdir(directory):
            raise InvalidInput(f"{directory} is not a directory") from None
        return False
    except OSError as error:
        raise InvalidInput(f"{directory} cannot be written: {error.strerror}") from None
    return True
