"""A worker's own secret: whoever registered an incarnation can prove it, and nobody else.

The secret is a keyed hash of the worker and its incarnation, so no server has to remember it, and
any other server of the same store can check it. The hash's key is made once and kept in the store.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from sprat.core import jsontext
from sprat.core.errors import StoreUnavailable
from sprat.store.backend import Backend

KIND = "server_key"
NAME = "worker_secret"
HEADER = b"sprat-worker-secret"


class Secrets:
    """Makes and checks them."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._key: bytes | None = None

    def of(self, worker_id: str, incarnation: int) -> str:
        """`INCARNATION.PROOF`."""
        message = f"{incarnation}.{worker_id}".encode()
        proof = hmac.new(self._secret_key(), message, hashlib.sha256).digest()
        return f"{incarnation}.{base64.urlsafe_b64encode(proof).decode().rstrip('=')}"

    def proven(self, worker_id: str, secret: str) -> int | None:
        """The incarnation that this secret speaks for, or None if it is no secret of it."""
        number = secret.partition(".")[0]
        if not (number.isascii() and number.isdecimal() and len(number) < 16):
            return None
        expected = self.of(worker_id, int(number))
        is_same = hmac.compare_digest(expected.encode(), secret.encode("utf-8", "replace"))
        return int(number) if is_same else None

    def prepare(self) -> None:
        """Read or make the key now; blocks."""
        self._secret_key()

    def _secret_key(self) -> bytes:
        if self._key is None:
            fresh = jsontext.dumps({"key": os.urandom(32).hex()})
            self._backend.put(KIND, NAME, fresh, 0, None)  # one of all servers wins
            document = self._backend.document(KIND, NAME)
            if document is None:
                raise StoreUnavailable("the store does not keep what was put into it")
            self._key = bytes.fromhex(jsontext.loads(document.body)["key"])
        return self._key
