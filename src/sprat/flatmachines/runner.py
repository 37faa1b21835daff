"""Running a flatmachine over a store: by command, from Python, or as the job of a sprat pool.

python -m sprat.flatmachines --config job_worker.yml --input '{"pool_id": "papers"}'
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flatmachines import FlatMachine, HooksRegistry

from sprat.config import project_file
from sprat.core import payload
from sprat.core.errors import InvalidInput, SpratError
from sprat.core.jsontext import printable
from sprat.flatmachines.hooks import registry
from sprat.flatmachines.invoker import SpratInvoker
from sprat.store.open_store import open_store
from sprat.store.store import Store


def run(
    store: Store,
    config_file: str,
    given: Mapping[str, Any] | None = None,
    *,
    hooks: str | None = None,
    execution_id: str | None = None,
    config_directory: str | None = None,
) -> Any:
    """Run a machine to its end and return its output. A worker's id is made up where its input
    has none. `hooks` is `module:function`: called with the store, it returns a HooksRegistry."""
    machine = FlatMachine(
        config_file=config_file,
        hooks_registry=_registry(store, hooks),
        invoker=SpratInvoker(store, hooks=hooks),
        _execution_id=execution_id,
        _config_dir=config_directory,
    )
    worker_id = f"worker-{payload.new_id()}"
    return asyncio.run(machine.execute(input={"worker_id": worker_id, **(given or {})}))


def processor(
    config_file: str, hooks_registry: HooksRegistry | None = None, *, input_key: str = "job"
) -> Callable[[Any], Any]:
    """A handler for a sprat pool that runs a machine on each item: workers of sprat claim, beat
    and settle; the machine gets the payload as `input.job` and its output is the result."""

    async def process(data: Any) -> Any:
        machine = FlatMachine(config_file=config_file, hooks_registry=hooks_registry)
        return await machine.execute(input={input_key: data})

    return process


def _registry(store: Store, hooks: str | None) -> HooksRegistry:
    if hooks is None:
        return registry(store)
    module, colon, name = hooks.partition(":")
    if not colon:
        raise InvalidInput(f"hooks must be module:function, not {hooks!r}")
    try:
        made = getattr(__import__(module, fromlist=[name]), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"the hooks {hooks} cannot be imported: {error}") from error
    return made(store)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sprat.flatmachines", allow_abbrev=False)
    parser.add_argument("--config", required=True, help="the machine, YAML or JSON")
    parser.add_argument("--input", default="{}", help="a JSON object; -: on standard input")
    parser.add_argument("--url", help="the store; else SPRAT_URL, else that of ./sprat.yml")
    parser.add_argument("--hooks", help="module:function that makes a HooksRegistry for a store")
    parser.add_argument("--execution-id", help="of this run")
    parser.add_argument("--directory", help="where to run, and to import from")
    parser.add_argument("--config-directory", help="what the machine names is beside this")
    parser.add_argument("--delete-config", action="store_true", help="once it has been read")
    asked = parser.parse_args(arguments)
    try:
        print(json.dumps(_run(asked), default=str))  # noqa: T201  (a command)
    except SpratError as error:
        sys.stderr.write(f"sprat: {printable(str(error))}\n")
        return 2
    return 0


def _run(asked: argparse.Namespace) -> Any:
    try:
        given = json.loads(sys.stdin.buffer.read() if asked.input == "-" else asked.input)
    except ValueError as error:
        raise InvalidInput(f"--input is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InvalidInput("--input must be a JSON object")
    path = os.path.abspath(asked.config)
    if not os.path.exists(path):
        raise InvalidInput(f"there is no machine {asked.config}")
    url = project_file.store_url(asked.url, os.environ)
    if asked.directory:
        os.chdir(asked.directory)
    sys.path.insert(0, os.getcwd())
    try:
        with open_store(url) as store:
            return run(
                store,
                path,
                given,
                hooks=asked.hooks,
                execution_id=asked.execution_id,
                config_directory=asked.config_directory,
            )
    finally:
        if asked.delete_config:
            os.unlink(path)
