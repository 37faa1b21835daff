"""The `sprat` command: finds the subcommand, and turns errors into one sentence and a code.

Each subcommand is a module with `main(arguments) -> exit code`, imported only when it is called.
Exit codes: 0 done, 1 failed, 2 usage or bad input, 130 interrupted, 141 the reader went away.
"""

from __future__ import annotations

import gc
import os
import sys

from sprat import __version__
from sprat.core.errors import InvalidInput, SpratError, StoreUnavailable
from sprat.core.jsontext import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DONE, FAILED, USAGE, INTERRUPTED, NO_READER = 0, 1, 2, 130, 141

# name: (module, what it is for), in the order of the help
COMMANDS = {
    "demo": ("sprat.cli.demo", "watch a small fleet lose a worker and no work"),
    "init": ("sprat.cli.init", "write a sprat.yml and an example to begin with"),
    "apply": ("sprat.cli.apply", "write the pools and triggers of sprat.yml to the store"),
    "push": ("sprat.cli.push", "add jobs to a pool"),
    "watch": ("sprat.cli.watch", "wait until a pool's work is done"),
    "status": ("sprat.cli.status", "show the pools: what waits, runs and is done"),
    "jobs": ("sprat.cli.jobs", "list, show, requeue, cancel or purge jobs"),
    "pools": ("sprat.cli.pools", "list pools, or delete one"),
    "workers": ("sprat.cli.workers", "list, show or drain workers"),
    "explain": ("sprat.cli.explain", "tell why the fleet has the size it has"),
    "doctor": ("sprat.cli.doctor", "check the store, the handlers and the fleet"),
    "simulate": ("sprat.cli.simulate", "replay a trace through policies and compare them"),
    "pause": ("sprat.cli.pause", "hand out no more jobs of a pool"),
    "resume": ("sprat.cli.resume", "hand them out again"),
    "check": ("sprat.cli.check", "run one scaling pass: start the workers that are needed"),
    "reap": ("sprat.cli.reap", "mark dead workers lost and free their jobs"),
    "scale": ("sprat.cli.scale", "set the number of workers by hand, once"),
    "move": ("sprat.cli.move", "run a pool's tasks from another directory"),
    "triggers": ("sprat.cli.triggers", "list, fire, install or serve what starts a pass"),
    "work": ("sprat.cli.work", "be a worker, here in the foreground"),
    "serve": ("sprat.cli.serve", "serve the store over HTTP: the orchestrator"),
    "keys": ("sprat.cli.keys", "make, list, rotate or revoke API keys"),
    "controller": ("sprat.cli.controller", "scale pools in a loop, near their workers"),
    "manifests": ("sprat.cli.manifests", "print Kubernetes manifests for sprat in a cluster"),
    "completion": ("sprat.cli.completion", "print a completion script for your shell"),
    "run": ("sprat.cli.run", "run a YAML machine from beginning to end"),
    "machine": ("sprat.cli.machine", "check machines, or draw one"),
}
# The first command of each group of the help, and the group's heading.
GROUPS = {
    "demo": "Use",
    "status": "Look",
    "pause": "Operate",
    "work": "Deploy",
    "run": "Machines",
}
# Words that are tried as commands, and the command that is meant.
INNER = {
    **{name: f"jobs {name}" for name in ("cancel", "list", "purge", "requeue", "retry", "show")},
    **{name: f"triggers {name}" for name in ("fire", "install", "tick")},
    "drain": "workers drain",
    "delete": "pools delete",
}


class UsageError(InvalidInput):
    """The command line cannot be understood."""


class Answered(Exception):
    """`--help` was asked for and has been printed: there is nothing else to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    _make_every_text_printable()
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments))
        if sys.stdout is not None:  # None when started with standard output closed
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return NO_READER
    except SpratError as error:
        return _complain(error, FAILED if isinstance(error, StoreUnavailable) else USAGE)
    except OSError as error:  # a full disk, a missing right: the machine's trouble, not a bug
        _forget_output()
        where = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return _complain(f"{where}{error.strerror or error}", FAILED)


def _run(arguments: list[str]) -> int:
    if not arguments:
        print(_help(), file=sys.stderr)
        return USAGE
    name, *rest = _command_first(arguments)
    if name in ("--help", "-h", "help"):
        print(_help())
        return DONE
    if name in ("--version", "-V"):
        print(f"sprat {__version__}")
        return DONE
    if name not in COMMANDS:
        raise UsageError(_unknown(name))
    gc.disable()  # importing makes no garbage, only work for who looks for it
    module = __import__(COMMANDS[name][0], fromlist=["main"])
    gc.enable()
    try:
        code: int = module.main(rest)
    except Answered:
        return DONE
    return code


def _command_first(arguments: list[str]) -> list[str]:
    """`--url X` and `--json` may stand before the command: moved behind what follows it."""
    n = 0
    while n < len(arguments) and arguments[n].partition("=")[0] in ("--url", "--json"):
        n += 2 if arguments[n] == "--url" else 1
    if n >= len(arguments):
        raise UsageError(f"no command behind {arguments[0]}: `sprat --help` lists them")
    rest = arguments[n:]
    end = rest.index("--") if "--" in rest else len(rest)
    return rest[:end] + arguments[:n] + rest[end:]


def _help() -> str:
    commands = "\n".join(
        f"{_heading(name)}  {name:<10} {what}" for name, (_, what) in COMMANDS.items()
    )
    return f"""\
usage: sprat COMMAND [OPTIONS]

Durable work pools that scale themselves, with no daemon and no master.
{commands}

Options
  --url URL  the store; else SPRAT_URL, else `store` in ./sprat.yml
  --json     print data as one JSON document
  --help     show this text; `sprat COMMAND --help` tells more about one command
  --version  show the version

Exit codes: 0 done, 1 failed, 2 usage or bad input, 130 interrupted."""


def _heading(name: str) -> str:
    return f"\n{GROUPS[name]}\n" if name in GROUPS else ""


def _unknown(name: str) -> str:
    from sprat.core.did_you_mean import nearest

    kind = "option" if name.startswith("-") else "command"
    known = [*COMMANDS, *INNER, "--help", "--json", "--url", "--version"]
    advice = "`sprat --help` lists what there is"
    if meant := nearest(name, known):
        advice = f"did you mean {f'`sprat {INNER[meant]}`' if meant in INNER else meant}?"
    return f"unknown {kind} {name!r}: {advice}"


def _complain(error: object, code: int) -> int:
    sentence = " ".join(str(error).split()) or type(error).__name__
    try:
        print(f"sprat: {printable(sentence)}", file=sys.stderr)
    except OSError:
        return code  # standard error is closed too
    return code


def _make_every_text_printable() -> None:
    """Jobs and paths hold any text; a letter that cannot be shown is shown as its number."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a real one


def _forget_output() -> None:
    """Send what is still buffered nowhere, or Python would complain about it while it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
