"""Triggers: what starts a pass, a machine or a command: cron, webhooks, events, functions.

Imports every lower layer. Start with `events.py` (what a push fires) and `firing.py`.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def handler(event: object, context: object = None) -> dict[str, Any]:
    """For AWS Lambda and its like: see function.py."""
    from sprat.triggers import function

    return function.handler(event, context)
