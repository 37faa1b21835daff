"""Functions of the user may be async: what one returned, awaited where it has to be."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def outcome(returned: Any) -> Any:
    """The value itself, or that of the coroutine, run to its end in a loop of its own."""
    if not hasattr(returned, "__await__"):
        return returned
    import asyncio

    return asyncio.run(_awaited(returned))


async def _awaited(returned: Any) -> Any:
    return await returned
