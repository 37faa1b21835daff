"""What an action is asked for: a value of the state's input, else of the context, else of the
machine's own input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.core import payload
from sprat.core.errors import InvalidInput
from sprat.machines.stepping import Run


class Arguments:
    def __init__(self, run: Run, given: Any, context: Mapping[str, Any], pool: str | None) -> None:
        self.machine = run.machine
        self.context = context
        self.input = run.input
        self._places = (given if isinstance(given, dict) else {}, context, run.input)
        self._pool = pool

    def get(self, name: str, default: Any = None) -> Any:
        for place in self._places:
            if place.get(name) is not None:
                return place[name]
        return default

    def number(self, name: str, default: float | None = None) -> float | None:
        value = self.get(name, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise InvalidInput(f"{name} must be a number, not {value!r}")
        return value

    def whole(self, name: str, default: int | None = None) -> int | None:
        value = self.get(name, default)
        return None if value is None else payload.whole(value, name, 0, 100_000)

    def pool(self, *, or_else: str | None = None) -> str:
        """The pool that is meant."""
        settings = self.machine.settings
        for found in (self.get("pool_id"), settings.worker_pool, self._pool, or_else):
            if isinstance(found, str):
                return payload.pool_name(found)
        raise InvalidInput("which pool? Give it pool_id in the input, or settings.worker_pool")
