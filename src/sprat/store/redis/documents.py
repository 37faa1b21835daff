"""Documents by kind and name, and token buckets."""

from __future__ import annotations

from sprat.core import model
from sprat.store.redis.items import new_request
from sprat.store.redis.rows import micros, signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.client import RedisClient


def get(client: RedisClient, kind: str, name: str) -> model.Document | None:
    row = client.run("document", kind, name)
    if row is None:
        return None
    return model.Document(kind=kind, name=name, body=row[0], version=row[1])


def page(client: RedisClient, kind: str, limit: int, after: str | None) -> list[model.Document]:
    rows = client.run("documents_page", kind, limit, after or "")
    return [model.Document(kind=kind, name=name, body=body, version=n) for name, body, n in rows]


def put(
    client: RedisClient,
    kind: str,
    name: str,
    body: str | None,
    version: int | None,
    seconds: float | None,
) -> bool:
    return bool(
        client.run(
            *("put", kind, name, signed(body), "" if version is None else version),
            *("" if seconds is None else micros(seconds), new_request()),
        )
    )


def take(client: RedisClient, name: str, amount: float, rate: float, burst: float) -> float:
    return float(client.run("take", name, repr(amount), repr(rate), repr(burst), new_request()))
