"""The embedded store: one SQLite file, no server. The tables are in `schema.sql`.

Imports `core`, `store.sql` and apsw; only `open_store` imports it. Start with `backend.py`: the
verbs that are done here (`pushing`, `exchange` and its `exchange_fast_path`, `waiting`). The others
are in `store/sql`, and the modules of the same names here have their SQL text. `connection.py` has
the transactions and the errors, `clock.py` the time, `lanes.py` which items are next.
"""
