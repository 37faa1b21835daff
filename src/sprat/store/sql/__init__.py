"""The verbs of the stores in SQL, once for SQLite and PostgreSQL.

`backend.py` has the verbs, one module per family their Python, and `transaction.py` all that a
verb may ask of its database. The SQL text is in the modules of the same names in `store.sqlite` and
`store.postgres`, as constants: `tx.sql.pools.STATE`. Only these two packages import this one.

Imports `core` and `store.backend`. Every worker imports it, so nothing heavy at import time. Start
with `transaction.py`, then `documents.py` as the simplest family. What is faster in one
database's own way stays there: pushing, claiming, waiting.
"""
