"""The memory store: everything in this process, gone with it. The model for the other stores."""

from __future__ import annotations

from sprat.stores.memory.backend import MemoryBackend

__all__ = ["MemoryBackend"]
