"""An answer of an orchestrator: read from a connection, and what it means.

What comes may be a proxy's or another program's: whatever it is, it becomes a `SpratError`.
"""

from __future__ import annotations

from sprat.core import errors, jsontext
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_HEADER_BYTES = 64 * 1024
_HEX = frozenset(b"0123456789abcdefABCDEF")

KINDS: dict[str, type[errors.SpratError]] = {
    "key_conflict": errors.KeyConflict,
    "pool_in_use": errors.PoolInUse,
    "unknown_item": errors.UnknownItem,
    "unknown_worker": errors.UnknownWorker,
    "store_mismatch": errors.StoreMismatch,
    "store_unavailable": errors.StoreUnavailable,
}


class Reader:
    """Reads one answer from a connection; OSError when it is not HTTP."""

    def __init__(self, connection: Any) -> None:
        self._recv = connection.recv
        self._rest = b""

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        while True:
            status, headers = self.head()
            if status >= 200:
                break
        if status == 204:
            return status, headers, b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return status, headers, self._chunks()
        length = headers.get("content-length")
        if length is None or not (length.isascii() and length.isdecimal()):
            raise OSError("an answer without a length")
        return status, headers, self._exactly(int(length))

    def head(self) -> tuple[int, dict[str, str]]:
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        status = words[1] if len(words) > 1 else ""
        if not words[0].startswith("HTTP/1.") or len(status) != 3 or not status.isdecimal():
            raise OSError("the answer is not HTTP")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(status), headers

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while True:
            size = self._until(b"\r\n").partition(b";")[0].strip()
            if not 0 < len(size) <= 8 or not _HEX.issuperset(size):
                raise OSError("a chunk of the answer has no size")
            if not int(size, 16):
                while self._until(b"\r\n"):
                    pass
                return b"".join(parts)
            parts.append(self._exactly(int(size, 16)))
            self._exactly(2)

    def _until(self, end: bytes) -> bytes:
        while (place := self._rest.find(end)) < 0:
            if len(self._rest) > MAX_HEADER_BYTES:
                raise OSError("the answer is not HTTP")
            self._rest += self._more()
        found, self._rest = self._rest[:place], self._rest[place + len(end) :]
        return found

    def _exactly(self, size: int) -> bytes:
        parts = [self._rest]
        have = len(self._rest)
        while have < size:
            parts.append(self._more())
            have += len(parts[-1])
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size]

    def _more(self) -> bytes:
        part: bytes = self._recv(65536)
        if not part:
            raise OSError("the connection was closed")
        return part


# -- what it means ------------------------------------------------------------------------------


def is_for_later(status: int, body: bytes) -> bool:
    """Whether nothing was done, and the same request will be welcome in a moment."""
    if status in (429, 502, 504):
        return True
    return status == 503 and b'"store_' not in body


def retry_after(headers: dict[str, str]) -> float:
    """The seconds that an answer asks to wait: given as a number, or as the date of their end."""
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdecimal():
        return float(text[:9])
    if not text:
        return 0.5
    from email.utils import mktime_tz, parsedate_tz  # rare: it costs 40 ms

    until, now = parsedate_tz(text), parsedate_tz(headers.get("date", ""))
    if until is None:
        return 0.5
    return max(0.0, mktime_tz(until) - (runtime.time() if now is None else mktime_tz(now)))


def loaded(body: bytes) -> Any:
    """The JSON in an answer; None: there is none that can be used."""
    try:
        return jsontext.loads(body.decode())
    except (ValueError, RecursionError):
        return None


def error(where: str, status: int, headers: dict[str, str], body: bytes) -> errors.SpratError:
    """What an answer that is no success stands for."""
    reply = loaded(body)
    if not isinstance(reply, dict) or "message" not in reply:
        return not_ours(where, status, headers)
    message = str(reply["message"])
    if status in (401, 403):
        return errors.InvalidInput(f"{message} (SPRAT_API_KEY)")
    usual = errors.StoreUnavailable if status == 429 or status >= 500 else errors.InvalidInput
    return KINDS.get(str(reply.get("error")), usual)(message)


def not_ours(where: str, status: int, headers: dict[str, str]) -> errors.SpratError:
    """Another program answers at this address; it may know a better one."""
    if status == 407:
        return errors.InvalidInput(f"no way to {where}: the proxy asks for a user and a password")
    if 300 <= status < 400 and headers.get("location"):
        there = headers["location"].partition("/api/v1/")[0][:200]
        return errors.StoreMismatch(
            f"{where} sends clients to another address: use {there} if that is right"
        )
    return errors.StoreMismatch(f"{where} is no orchestrator: it answers with status {status}")
