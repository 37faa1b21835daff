"""Documents by kind and name, and token buckets."""

from __future__ import annotations

from sprat.core import model
from sprat.store.backend import Backend
from sprat.store.redis.items import new_request
from sprat.store.redis.rows import micros, signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.client import RedisClient


class RedisDocuments(Backend):
    """Documents and token buckets."""

    _client: RedisClient

    def document(self, kind: str, name: str) -> model.Document | None:
        row = self._client.run("document", kind, name)
        if row is None:
            return None
        return model.Document(kind=kind, name=name, body=row[0], version=row[1])

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        rows = self._client.run("documents_page", kind, limit, after or "")
        return [
            model.Document(kind=kind, name=name, body=body, version=version)
            for name, body, version in rows
        ]

    def put(
        self,
        kind: str,
        name: str,
        body: str | None,
        version: int | None,
        seconds: float | None,
    ) -> bool:
        return bool(
            self._client.run(
                *("put", kind, name, signed(body), "" if version is None else version),
                *("" if seconds is None else micros(seconds), new_request()),
            )
        )

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        numbers = (repr(amount), repr(rate), repr(burst))
        return float(self._client.run("take", name, *numbers, new_request()))
