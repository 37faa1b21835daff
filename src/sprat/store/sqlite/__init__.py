"""The embedded store: one SQLite file, no server. The tables are in `schema.sql`.

Start with `backend.py`; `connection.py` has the transactions, `claims.py` the life of a claim, and
`exchange_fast_path.py` the shortest way for the commonest exchange.
"""
