"""The store in PostgreSQL 13 or newer, in a schema of its own. The tables are in `schema.sql`.

Imports `core`, `store.sql` and psycopg; only `open_store` imports it. Start with `backend.py`: the
verbs that are done here (`pushing`, `exchange`, `waiting`), most by a function of the server
(`functions.sql`, `pushing.sql`, `lanes.sql`). The others are in `store/sql`, and the modules of the
same names here have their SQL text. `connections.py` has the sessions and what happens when they
end, `libpq.py` a short call over one, `errors.py` the errors, `marks.py` leases after an outage.
"""
