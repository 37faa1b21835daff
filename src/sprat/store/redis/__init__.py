"""The store in a Redis or Valkey server. Each verb is one Lua script (`lua/*.lua`).

Start with `backend.py` and `scripts.py`; `client.py` connects and reconnects. Needs hiredis.
"""
