"""Who may do what. A key has one or more roles; each route names those that may call it."""

from __future__ import annotations

from sprat.core.record import Record

WORKER = "worker"  # registers, claims, settles: for its own worker only
PUSHER = "pusher"  # brings work in, asks for its results, cancels it
CONTROLLER = "controller"  # scales: observes, decides, reaps, drains
VIEWER = "viewer"  # reads everything but secrets
ADMIN = "admin"  # everything, and for any worker
ROLES = (WORKER, PUSHER, CONTROLLER, VIEWER, ADMIN)


class Caller(Record):
    """Who is asking: the key, what it may do, and whose part of the store it sees (None: all)."""

    key_id: str
    roles: frozenset[str]
    tenant: str | None = None

    @property
    def is_admin(self) -> bool:
        return ADMIN in self.roles

    def may(self, roles: tuple[str, ...]) -> bool:
        return self.is_admin or not self.roles.isdisjoint(roles)


NOBODY = Caller(key_id="-", roles=frozenset())
EVERYBODY = Caller(key_id="-", roles=frozenset({ADMIN}))  # where keys are switched off
