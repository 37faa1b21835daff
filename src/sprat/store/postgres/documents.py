"""Documents by kind and name, and token buckets."""

from __future__ import annotations

from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.transaction import PostgresTransaction

NEVER = 9e99

GET = """
SELECT body, version FROM sprat.document
WHERE kind = $1 AND name = $2 AND expires_at > sprat.clock()
"""
PAGE = """
SELECT name, body, version FROM sprat.document
WHERE kind = $1 AND name > $2 AND expires_at > sprat.clock() ORDER BY name LIMIT $3
"""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('sprat.document ' || $1 || ' ' || $2, 0))"
PUT = """
INSERT INTO sprat.document VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body, version = excluded.version,
    expires_at = excluded.expires_at
"""
DELETE = "DELETE FROM sprat.document WHERE kind = $1 AND name = $2"
FORGET = """
DELETE FROM sprat.document WHERE (kind, name) IN (
    SELECT kind, name FROM sprat.document WHERE expires_at <= $1 AND expires_at < 9e99
    LIMIT 100 FOR UPDATE SKIP LOCKED)
"""
ADD_BUCKET = """
INSERT INTO sprat.bucket VALUES ($1, $2, sprat.clock()) ON CONFLICT (name) DO NOTHING
"""
BUCKET = "SELECT tokens, at FROM sprat.bucket WHERE name = $1 FOR NO KEY UPDATE"
FILL = "UPDATE sprat.bucket SET tokens = $2, at = $3 WHERE name = $1"


def get(tx: PostgresTransaction, kind: str, name: str) -> model.Document | None:
    row = tx.run(GET, (kind, name)).fetchone()
    if row is None:
        return None
    return model.Document(kind=kind, name=name, body=row[0], version=row[1])


def page(tx: PostgresTransaction, kind: str, limit: int, after: str | None) -> list[model.Document]:
    rows = tx.run(PAGE, (kind, after or "", limit)).fetchall()
    return [model.Document(kind=kind, name=name, body=body, version=n) for name, body, n in rows]


def put(
    tx: PostgresTransaction,
    kind: str,
    name: str,
    body: str | None,
    version: int | None,
    seconds: float | None,
) -> bool:
    tx.run(LOCK, (kind, name))  # a row that does not exist yet cannot be locked
    found = get(tx, kind, name)
    current = 0 if found is None else found.version
    if version not in (None, current):
        written = found.body if found else None
        return tx.again and written == body  # the try whose reply was lost did it
    tx.run(FORGET, (tx.now,))
    if body is None:
        tx.run(DELETE, (kind, name))
    else:
        until = NEVER if seconds is None else tx.now + seconds
        tx.run(PUT, (kind, name, body, current + 1, until))
    return True


def take(tx: PostgresTransaction, name: str, amount: float, rate: float, burst: float) -> float:
    found = tx.run(BUCKET, (name,)).fetchone()
    if found is None:
        tx.run(ADD_BUCKET, (name, burst))
        found = tx.run(BUCKET, (name,)).fetchall()[0]
    tokens, at = found
    tokens = min(burst, tokens + max(0.0, tx.now - at) * rate)
    if tokens < amount:
        return float((amount - tokens) / rate)
    tx.run(FILL, (name, tokens - amount, tx.now))
    return 0.0
