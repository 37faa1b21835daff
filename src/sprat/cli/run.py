"""`sprat run`: one machine, from beginning to end."""

from __future__ import annotations

import os

from sprat.cli.arguments import CommandParser
from sprat.cli.lines import standard_input
from sprat.cli.main import DONE, FAILED, INTERRUPTED, UsageError
from sprat.cli.output import document, talk
from sprat.config import project_file
from sprat.core import jsontext, model
from sprat.core.errors import InvalidInput, SpratError
from sprat.machines.library import Library
from sprat.machines.runtime.backends import url_of
from sprat.machines.runtime.host import Interrupted
from sprat.machines.runtime.running import Execution
from sprat.machines.runtime.worker import Fenced
from sprat.store.open_store import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.cli.arguments import Namespace
    from sprat.machines.definition import Machine
    from sprat.store.store import Store


def parser() -> CommandParser:
    made = CommandParser(prog="sprat run")
    made.add_argument("machine", metavar="MACHINE", help="a file, or the name of one of ours")
    made.add_argument(
        "--input",
        metavar="JSON",
        default="{}",
        help="a JSON object; `-` reads it from standard input",
    )
    made.add_argument("--execution-id", metavar="ID", help="names this run; else a random one")
    made.add_argument(
        "--resume", action="store_true", help="go on where the run of this id was interrupted"
    )
    made.add_argument(
        "--bind",
        metavar="NAME=FILE",
        action="append",
        default=[],
        help="the file of a machine that others call by this name",
    )
    made.add_argument("--check", action="store_true", help="only look whether it is in order")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    if asked.resume and asked.execution_id is None:
        raise UsageError("--resume needs the --execution-id of the run that was interrupted")
    given = _input(asked.input)
    library = Library(dict(_binding(text) for text in asked.bind))
    machine = library.get(asked.machine, directory=os.getcwd())
    library.read_all(machine)
    if asked.check:
        talk(f"sprat: {asked.machine} is in order: {len(machine.states)} states")
        return DONE
    with open_store(_url(asked, machine)) as store:
        os.environ["SPRAT_URL"] = store.url  # for jobs that push
        _bind_more(library, store, given)
        return _run(store, library, machine, given, asked)


def _run(
    store: Store, library: Library, machine: Machine, given: dict[str, Any], asked: Namespace
) -> int:
    execution = Execution(
        store,
        library,
        machine,
        execution_id=asked.execution_id,
        reserved=_is_reserved(store, asked.execution_id),
    )
    try:
        document(execution.run(given, resume=asked.resume))
        done = execution.room.launched
        if len(done.ids) < done.asked:
            talk(f"sprat: launched {len(done.ids)} of {done.asked} workers: {done.reason}")
        return DONE
    except Interrupted:
        talk(f"sprat: {machine.name} was stopped; --execution-id {execution.id} --resume goes on")
        return INTERRUPTED
    except Fenced as why:
        talk(f"sprat: {machine.name} stopped: its worker counts no more ({why})")
        return FAILED
    except InvalidInput:
        raise
    except Exception as error:  # noqa: BLE001  (the user's code)
        kind = "" if isinstance(error, SpratError) else f"{type(error).__name__}: "
        talk(f"sprat: {machine.name} failed: {kind}{' '.join(str(error).split())}")
        return FAILED


def _input(text: str) -> dict[str, Any]:
    try:
        value = jsontext.loads(standard_input().read().decode() if text == "-" else text)
    except ValueError as error:
        raise UsageError(f"--input is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError('--input must be a JSON object such as \'{"pool_id": "papers"}\'')
    return value


def _binding(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    if not sign or not name or not path:
        raise UsageError(f"--bind takes NAME=FILE, not {text!r}")
    if not os.path.isfile(os.path.expanduser(path)):
        raise UsageError(f"--bind {text}: there is no file {path}")
    return name, path


def _url(asked: Namespace, machine: Machine) -> str:
    """The flag, SPRAT_URL, the machine's own backends, or what sprat.yml says."""
    if asked.url is None and not os.environ.get("SPRAT_URL"):
        own = url_of(machine)
        if own is not None:
            return own
    return project_file.store_url(asked.url, os.environ)


def _bind_more(library: Library, store: Store, given: dict[str, Any]) -> None:
    """The names that the pool's settings bind, where nothing else does."""
    pool = given.get("pool_id")
    if isinstance(pool, str):
        library.bind(store.pool(pool).state().settings)


def _is_reserved(store: Store, execution_id: str | None) -> bool:
    """Whether somebody launched this: the id is that of a worker who has not come yet."""
    found = None if execution_id is None else store.workers.get(execution_id)
    return found is not None and found.status == model.STARTING
