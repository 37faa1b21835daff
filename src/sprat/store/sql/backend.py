"""The verbs of both SQL stores: each is one transaction over a function of its family.

A family is imported by the first verb that needs it: most workers claim, settle and send heartbeats
only. What a database does in its own way is in its subclass: push, exchange, wait.
"""

from __future__ import annotations

from sprat.store.backend import Backend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

    from sprat.core import model

    P = ParamSpec("P")
    T = TypeVar("T")

    class Runner(Protocol):
        """Runs a verb in a transaction."""

        def __call__(
            self, verb: Callable[Concatenate[Any, P], T], *args: P.args, **kwargs: P.kwargs
        ) -> T: ...


class SqlBackend(Backend):
    _read: Runner  # all statements of the verb see one moment
    _read_one: Runner  # for a verb of one statement
    _write: Runner  # whole or not at all
    _write_one: Runner  # for a verb of one statement
    _write_synced: Runner  # on disk when it returns

    def _write_notes(self) -> None:
        """Write the statistics that are held back, for a verb that reads them."""
        raise NotImplementedError

    # -- statistics -------------------------------------------------------------------------

    def stats(self, pool: str, seconds: float) -> model.Stats:
        from sprat.store.sql import statistics

        self._write_notes()
        return self._read(statistics.stats, pool, seconds)

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        from sprat.store.sql import statistics

        self._write_notes()
        return self._read(statistics.history, pool, seconds)

    def totals(self, pool: str) -> model.Totals:
        from sprat.store.sql import statistics

        self._write_notes()
        return self._read_one(statistics.totals, pool)

    # -- documents and rates ------------------------------------------------------------------

    def document(self, kind: str, name: str) -> model.Document | None:
        from sprat.store.sql import documents

        return self._read_one(documents.get, kind, name)

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        from sprat.store.sql import documents

        return self._read_one(documents.page, kind, limit, after)

    def put(
        self, kind: str, name: str, body: str | None, version: int | None, seconds: float | None
    ) -> bool:
        from sprat.store.sql import documents

        return self._write_synced(documents.put, kind, name, body, version, seconds)

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        from sprat.store.sql import documents

        return self._write(documents.take, name, amount, rate, burst)
