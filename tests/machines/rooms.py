"""Runs machines that tests write as texts, in a store of theirs."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from sprat.machines.definition import Machine
from sprat.machines.library import Library, parse
from sprat.machines.runtime.host import Given
from sprat.machines.runtime.running import Execution
from sprat.store.store import Store


def machine(text: str, place: Path | None = None) -> Machine:
    """A machine from what stands under `data:`."""
    path = "" if place is None else str(place / "main.yml")
    return parse("data:\n" + textwrap.indent(textwrap.dedent(text), "  "), path)


def write(place: Path, name: str, text: str) -> None:
    (place / f"{name}.yml").write_text("data:\n" + textwrap.indent(textwrap.dedent(text), "  "))


def run(
    store: Store,
    text: str,
    given: dict[str, Any] | None = None,
    *,
    place: Path | None = None,
    execution_id: str | None = None,
    resume: bool = False,
    **more: Any,
) -> Any:
    made = machine(text, place)
    execution = Execution(store, Library(), made, execution_id=execution_id, given=Given(**more))
    return execution.run(given or {}, resume=resume)
