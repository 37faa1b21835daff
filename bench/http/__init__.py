"""The orchestrator under load."""
