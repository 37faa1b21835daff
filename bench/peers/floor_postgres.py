"""The bare statements on PostgreSQL, no library: 100 settles, 100 claims, one commit."""

import time

import psycopg
from side import URL, mark

TABLE = """
CREATE TABLE bare (id bigserial PRIMARY KEY, status text NOT NULL DEFAULT 'pending', data text);
CREATE INDEX bare_ready ON bare (id) WHERE status = 'pending'
"""
SETTLE = "UPDATE bare SET status = 'done' WHERE id = ANY(%s)"
CLAIM = """
UPDATE bare SET status = 'claimed' WHERE id IN (
    SELECT id FROM bare WHERE status = 'pending' ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED)
RETURNING id
"""
db = psycopg.connect(URL, autocommit=True)


def setup() -> None:
    db.execute(TABLE)


def push(sent: float) -> None:
    db.execute("INSERT INTO bare (data) VALUES (%s)", (str(sent),))


def bulk(n: int) -> None:
    with db.cursor() as cursor, cursor.copy("COPY bare (data) FROM STDIN") as copy:
        for _ in range(n):
            copy.write_row(("0.0",))


def work(*_: str) -> None:
    done: list[int] = []
    while True:
        with db.transaction():
            if done:
                db.execute(SETTLE, (done,))
            done = [row[0] for row in db.execute(CLAIM).fetchall()]
        for _ in done:
            mark(0.0)
        if not done:
            time.sleep(0.01)
