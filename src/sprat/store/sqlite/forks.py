"""No connection crosses a fork: each is closed for that moment, and opened again on its next use.

SQLite keeps one record of its locks a process. A child that inherits an open connection inherits
that record too, and then believes to hold locks that only its parent holds, even through a
connection of its own: when the parent leaves it deletes the log into which the child still writes,
and acknowledged items are gone. (Never to touch the inherited connection is not enough.)
"""

from __future__ import annotations

import _thread
import _weakref
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Forkable(Protocol):
        def before_fork(self) -> bool: ...
        def after_fork_in_parent(self) -> None: ...
        def after_fork_in_child(self) -> None: ...


_connections: set[_weakref.ReferenceType[Forkable]] = set()
_put_away: list[Forkable] = []
_forking = _thread.allocate_lock()  # two threads may fork at once


def watch(connection: Forkable) -> None:
    """From now on tell the connection of every fork."""
    _connections.add(_weakref.ref(connection, _connections.discard))


def _living() -> list[Forkable]:
    found = [connection() for connection in _connections.copy()]
    return [connection for connection in found if connection is not None]


def _before() -> None:
    _forking.acquire()
    _put_away.extend([connection for connection in _living() if connection.before_fork()])


def _in_parent() -> None:
    while _put_away:
        _put_away.pop().after_fork_in_parent()
    _forking.release()


def _in_child() -> None:
    _put_away.clear()
    _forking.release()
    for connection in _living():
        connection.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
