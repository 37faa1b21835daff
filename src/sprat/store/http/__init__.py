"""The store behind an orchestrator: each verb is one HTTP request.

Start with `backend.py`; `connection.py` keeps the connections.
"""
