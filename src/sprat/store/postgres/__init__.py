"""The store in PostgreSQL 13 or newer, in a schema of its own. The tables are in `schema.sql`.

Start with `backend.py`; `functions.sql` has the claims, `connections.py` the sessions. Needs
psycopg.
"""
