"""API keys: made, looked up, rotated and revoked. The store keeps only what cannot be used.

A key is `sprat_ID_SECRET`: the id finds its record, the secret is 256 random bits of which only
the SHA-256 is stored. (So many random bits need no slow hash: there is nothing to guess.)
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import time

from sprat.core import jsontext, payload
from sprat.core.errors import InvalidInput, Unknown
from sprat.core.record import Record
from sprat.server import roles
from sprat.server.roles import Caller
from sprat.store.backend import Backend

KIND = "api_key"
PREFIX = "sprat"
ID_CHARS = 10
SECRET_BYTES = 32
REMEMBER_SECONDS = 5.0  # a revoked key may be good for so long where it was used just now
REMEMBERED = 10_000
ROTATION_SECONDS = 86400.0  # that the old key stays good beside the new one
MAX_TENANT_CHARS = 64
RESERVED_TENANTS = ("sprat",)  # for names of our own beside those of tenants
_PLAIN = payload.NAME_CHARS - {"."}


class Key(Record):
    """What the store knows about a key."""

    id: str
    digest: str
    roles: tuple[str, ...]
    tenant: str | None = None
    label: str | None = None
    created_at: float = 0.0
    expires_at: float | None = None

    def caller(self) -> Caller:
        return Caller(key_id=self.id, roles=frozenset(self.roles), tenant=self.tenant)


# -- making and ending them ---------------------------------------------------------------------


def create(
    backend: Backend,
    wanted: tuple[str, ...],
    *,
    tenant: str | None = None,
    label: str | None = None,
    now: float | None = None,
) -> tuple[Key, str]:
    """A new key and its text, which is told once and kept nowhere."""
    if not wanted or set(wanted) - set(roles.ROLES):
        raise InvalidInput(f"a key needs roles out of {', '.join(roles.ROLES)}")
    key_id = base64.b32encode(os.urandom(10)).decode().lower()[:ID_CHARS]
    secret = base64.urlsafe_b64encode(os.urandom(SECRET_BYTES)).decode().rstrip("=")
    key = Key(
        id=key_id,
        digest=_digest(secret),
        roles=tuple(sorted(set(wanted))),
        tenant=check_tenant(tenant),
        label=payload.label(label, "label"),
        created_at=time.time() if now is None else now,
    )
    _keep(backend, key, None)
    return key, f"{PREFIX}_{key_id}_{secret}"


def listed(backend: Backend) -> list[Key]:
    """Every key, oldest first."""
    found: list[Key] = []
    page = backend.documents(KIND, 500, None)
    while page:
        found += [_key(document.name, document.body) for document in page]
        page = backend.documents(KIND, 500, page[-1].name)
    return sorted(found, key=lambda key: key.created_at)


def revoke(backend: Backend, key_id: str) -> None:
    """End a key now."""
    get(backend, key_id)
    backend.put(KIND, key_id, None, None, None)


def rotate(backend: Backend, key_id: str, *, seconds: float = ROTATION_SECONDS) -> tuple[Key, str]:
    """A new key like this one; the old one stays good for `seconds`, for those who use it."""
    old = get(backend, key_id)
    made = create(backend, old.roles, tenant=old.tenant, label=old.label)
    if seconds <= 0:
        revoke(backend, key_id)
    else:
        _keep(backend, old.replace(expires_at=time.time() + seconds), seconds)
    return made


def get(backend: Backend, key_id: str) -> Key:
    document = backend.document(KIND, key_id)
    if document is None:
        raise Unknown(f"there is no key {key_id!r}: `sprat keys list` shows those there are")
    return _key(key_id, document.body)


def check_tenant(tenant: str | None) -> str | None:
    """A tenant of a key is part of the names of its pools, so it is a short plain word."""
    if tenant is None:
        return None
    if not _PLAIN.issuperset(tenant) or not 1 <= len(tenant) <= MAX_TENANT_CHARS:
        raise InvalidInput(
            f"a key's tenant is 1 to {MAX_TENANT_CHARS} letters, digits, _ or -, not {tenant!r}"
        )
    if tenant.lower() in RESERVED_TENANTS:
        raise InvalidInput(f"{tenant!r} is a name of sprat's own: call the tenant otherwise")
    return tenant


def _keep(backend: Backend, key: Key, seconds: float | None) -> None:
    body = {name: value for name, value in key.as_dict().items() if name != "id"}
    backend.put(KIND, key.id, jsontext.dumps(body), None, seconds)


def _key(key_id: str, body: str) -> Key:
    known = {name: value for name, value in jsontext.loads(body).items() if name in Key._names}
    return Key(id=key_id, **{**known, "roles": tuple(known["roles"])})


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


# -- recognising them ---------------------------------------------------------------------------


class Keyring:
    """Recognises the keys of requests, and remembers their records for a moment."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: dict[str, tuple[float, Key | None]] = {}

    def remembered(self, text: str) -> Caller | None:
        """Whose key this is, if that is known without asking the store."""
        parts = _parts(text)
        if parts is None:
            return None
        until, key = self._known.get(parts[0], (0.0, None))
        return _proven(key, parts[1]) if time.monotonic() < until else None

    def look_up(self, text: str) -> Caller | None:
        """Whose key this is, by the store."""
        parts = _parts(text)
        if parts is None:
            return None
        document = self._backend.document(KIND, parts[0])
        key = None if document is None else _key(parts[0], document.body)
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        if key is not None:
            self._known[parts[0]] = (time.monotonic() + REMEMBER_SECONDS, key)
        return _proven(key, parts[1])


def _parts(text: str) -> tuple[str, str] | None:
    prefix, _, rest = text.partition("_")
    key_id, _, secret = rest.partition("_")
    is_one = prefix == PREFIX and len(key_id) == ID_CHARS and key_id.isalnum() and secret
    return (key_id, secret) if is_one and len(secret) < 200 and text.isascii() else None


def _proven(key: Key | None, secret: str) -> Caller | None:
    """The caller, after a comparison that takes as long for every wrong secret."""
    digest = _digest(secret)
    if key is None or not hmac.compare_digest(digest, key.digest):
        return None
    return key.caller()
