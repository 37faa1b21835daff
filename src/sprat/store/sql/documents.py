"""Documents by kind and name, and token buckets."""

from __future__ import annotations

from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sql.transaction import SqlTransaction

NEVER = 9e99


def get(tx: SqlTransaction, kind: str, name: str) -> model.Document | None:
    row = tx.run(tx.sql.documents.GET, (kind, name, tx.known_now)).fetchone()
    return row and model.Document(kind=kind, name=name, body=row[0], version=row[1])


def page(tx: SqlTransaction, kind: str, limit: int, after: str | None) -> list[model.Document]:
    rows = tx.rows(tx.sql.documents.PAGE, (kind, after or "", tx.known_now, limit))
    return [model.Document(kind=kind, name=name, body=body, version=n) for name, body, n in rows]


def put(
    tx: SqlTransaction,
    kind: str,
    name: str,
    body: str | None,
    version: int | None,
    seconds: float | None,
) -> bool:
    tx.lock("document", f"{kind} {name}")  # a row that does not exist yet cannot be locked
    document = get(tx, kind, name)
    current = 0 if document is None else document.version
    if version not in (None, current):
        written = document.body if document else None
        return tx.again and written == body  # the try whose reply was lost did it
    tx.run(tx.sql.documents.FORGET, (tx.now,))
    if body is None:
        tx.run(tx.sql.documents.DELETE, (kind, name))
    else:
        until = NEVER if seconds is None else tx.now + seconds
        tx.run(tx.sql.documents.PUT, (kind, name, body, current + 1, until))
    return True


def take(tx: SqlTransaction, name: str, amount: float, rate: float, burst: float) -> float:
    bucket = tx.run(tx.sql.documents.BUCKET, (name,)).fetchone()
    if bucket is None:
        tx.run(tx.sql.documents.ADD_BUCKET, (name, burst, tx.now))
        bucket = tx.run(tx.sql.documents.BUCKET, (name,)).fetchone()
    tokens, at = bucket
    tokens = min(burst, tokens + max(0.0, tx.now - at) * rate)
    if tokens < amount:
        return float((amount - tokens) / rate)
    tx.run(tx.sql.documents.FILL, (name, tokens - amount, tx.now))
    return 0.0
