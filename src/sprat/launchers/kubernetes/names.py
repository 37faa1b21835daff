"""Names and labels of what we make in a cluster. Pure.

They are made of the reservation, so that the same launch twice is one pod.
"""

from __future__ import annotations

import hashlib
import re

from sprat.launchers.kubernetes.options import LABEL_VALUE

POOL = "sprat/pool"
WORKER = "sprat/worker"
STORE = "sprat/store"

LONGEST_NAME = 52  # a Job's pods get eleven letters more
LONGEST_LABEL = 63
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def name_of(worker_id: str) -> str:
    """A worker's pod or Job, and its label."""
    plain = f"sprat-{worker_id}"
    if len(plain) <= LONGEST_NAME and NAME.fullmatch(plain):
        return plain
    rest = re.sub(r"[^a-z0-9]+", "-", worker_id.lower()).strip("-")[:24].strip("-")
    return "-".join(part for part in ("sprat", rest, _digest(worker_id)) if part)


def label_of(text: str) -> str:
    """A pool's name as a label's value."""
    if len(text) <= LONGEST_LABEL and LABEL_VALUE.fullmatch(text):
        return text
    return f"{text[:40].strip('-._')}.{_digest(text)}".strip(".")


def store_mark(url: str) -> str:
    """Letters that tell stores apart; nothing of a password goes into them."""
    before, _, query = url.partition("?")
    scheme, _, rest = before.partition("://")
    parts = [part for part in query.split("&") if part and "password" not in part.partition("=")[0]]
    return _digest(f"{scheme}://{rest.rpartition('@')[2]}?{'&'.join(parts)}")


def has_password(url: str) -> bool:
    before, _, query = url.partition("?")
    login, at, _ = before.partition("://")[2].rpartition("@")
    in_query = any("password" in part.partition("=")[0] for part in query.split("&"))
    return bool(at and ":" in login) or in_query


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
