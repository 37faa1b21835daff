"""The store in a Redis or Valkey server. Each verb is one Lua script (`lua/*.lua`).

Start with `backend.py` (the keys) and `items.py` (the verbs about items); `scripts.py` loads the
scripts, `client.py` connects and reconnects. Needs hiredis.
"""
