"""Documents by kind and name, and token buckets."""

from __future__ import annotations

from sprat.core import model
from sprat.store.redis.items import new_request
from sprat.store.redis.rows import micros, signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.client import RedisClient


def get(link: RedisClient, kind: str, name: str) -> model.Document | None:
    found = link.run("document", kind, name)
    if found is None:
        return None
    return model.Document(kind=kind, name=name, body=found[0], version=found[1])


def page(link: RedisClient, kind: str, limit: int, after: str | None) -> list[model.Document]:
    rows = link.run("documents_page", kind, limit, after or "")
    return [model.Document(kind=kind, name=name, body=body, version=n) for name, body, n in rows]


def put(
    link: RedisClient,
    kind: str,
    name: str,
    body: str | None,
    version: int | None,
    seconds: float | None,
) -> bool:
    return bool(
        link.run(
            *("put", kind, name, signed(body), "" if version is None else version),
            *("" if seconds is None else micros(seconds), new_request()),
        )
    )


def take(link: RedisClient, name: str, amount: float, rate: float, burst: float) -> float:
    return float(link.run("take", name, repr(amount), repr(rate), repr(burst), new_request()))
