"""The orchestrator: one store served over HTTP, with keys, roles, tenants, limits and a dashboard.

Imports every lower layer. Start with `application.py` (the path of a request) and `routes/` (one
module per family of routes).
"""
