"""The orchestrator: one store served over HTTP, with keys, roles, tenants and limits.

`application.py` builds the ASGI application out of the tables in `routes/`, `serving.py` runs it.
Nothing here keeps state that matters: any number of processes may serve the same store.
"""
