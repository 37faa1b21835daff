"""Documents by kind and name, and token buckets."""

from __future__ import annotations

from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.sqlite.connection import SqliteTransaction, WriteTransaction

NEVER = 9e99

GET = "SELECT body, version FROM document WHERE kind = ? AND name = ? AND expires_at > ?"
PAGE = """
SELECT name, body, version FROM document
WHERE kind = ?1 AND name > ?2 AND expires_at > ?3 ORDER BY name LIMIT ?4
"""
PUT = "INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?, ?)"
DELETE = "DELETE FROM document WHERE kind = ? AND name = ?"
FORGET = "DELETE FROM document WHERE expires_at <= ? AND expires_at < 9e99"
BUCKET = "SELECT tokens, at FROM bucket WHERE name = ?"
FILL = "INSERT OR REPLACE INTO bucket VALUES (?, ?, ?)"


def get(tx: SqliteTransaction, kind: str, name: str) -> model.Document | None:
    row = tx.run(GET, (kind, name, tx.now)).fetchone()
    return row and model.Document(kind=kind, name=name, body=row[0], version=row[1])


def page(tx: SqliteTransaction, kind: str, limit: int, after: str | None) -> list[model.Document]:
    rows = tx.run(PAGE, (kind, after or "", tx.now, limit)).fetchall()
    return [model.Document(kind=kind, name=name, body=body, version=n) for name, body, n in rows]


def put(
    tx: WriteTransaction,
    kind: str,
    name: str,
    body: str | None,
    version: int | None,
    seconds: float | None,
) -> bool:
    found = get(tx, kind, name)
    current = 0 if found is None else found.version
    if version not in (None, current):
        return False
    tx.run(FORGET, (tx.now,))
    if body is None:
        tx.run(DELETE, (kind, name))
    else:
        until = NEVER if seconds is None else tx.now + seconds
        tx.run(PUT, (kind, name, body, current + 1, until))
    return True


def take(tx: WriteTransaction, name: str, amount: float, rate: float, burst: float) -> float:
    tokens, at = tx.run(BUCKET, (name,)).fetchone() or (burst, tx.now)
    tokens = min(burst, tokens + (tx.now - at) * rate)
    if tokens < amount:
        return float((amount - tokens) / rate)
    tx.run(FILL, (name, tokens - amount, tx.now))
    return 0.0
