"""The lease on a scale set: of all controllers that want it, one has it.

It is a document of the store, written by compare-and-set, that expires by the store's clock. Nobody
relies on it for safety: a leader that was stopped for a while and goes on as if nothing had
happened loses the race when it records (see checker.py). It is there so that one acts and the
others watch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from sprat.core import jsontext
from sprat.core.model import Document
from sprat.fleet.controller_lease import KIND
from sprat.store.backend import Backend

PARTS = 3  # a leader renews so often in the time that its lease lasts


class ControllerLease:
    def __init__(
        self,
        backend: Backend,
        name: str,
        *,
        holder: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend = backend
        self._name = name
        self._holder = holder
        self._seconds = seconds
        self._clock = clock
        self._until = -1.0  # by our own clock, counted from before we asked: never too long

    @property
    def is_held(self) -> bool:
        return self._clock() < self._until

    @property
    def pause(self) -> float:
        """Seconds until it has to be renewed, or asked for again."""
        return self._seconds / PARTS

    def hold(self, tell: Callable[[], Mapping[str, Any]]) -> bool:
        """Take it, or renew it. `tell` says what others may read in it, and is asked only if
        nobody else has it."""
        asked_at = self._clock()
        found = self._backend.document(KIND, self._name)
        if found is not None and not self._is_ours(found):
            self._until = -1.0
            return False
        body = jsontext.dumps({"holder": self._holder, **tell()})
        version = 0 if found is None else found.version
        if not self._put(body, version):
            self._until = -1.0
            return False
        self._until = asked_at + self._seconds
        return True

    def give_up(self) -> None:
        """Let another have it at once."""
        self._until = -1.0
        found = self._backend.document(KIND, self._name)
        if found is not None and self._is_ours(found):
            self._backend.put(KIND, self._name, None, found.version, None)

    def _put(self, body: str, version: int) -> bool:
        """Whether it is ours now; also when the answer to the first try was lost."""
        if self._backend.put(KIND, self._name, body, version, self._seconds):
            return True
        found = self._backend.document(KIND, self._name)
        return found is not None and found.body == body

    def _is_ours(self, found: Document) -> bool:
        return bool(jsontext.loads(found.body)["holder"] == self._holder)
