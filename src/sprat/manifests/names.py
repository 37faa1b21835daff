"""Names that Kubernetes accepts: checking those that people chose, and deriving others."""

from __future__ import annotations

import hashlib
import re

from sprat.core.errors import InvalidInput

MAX_LABEL_CHARS = 63
MAX_SUBDOMAIN_CHARS = 253
MAX_IMAGE_CHARS = 500

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# HOST:PORT/PATH:TAG@DIGEST, all but the path optional
IMAGE = re.compile(
    r"((localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?)/)?"
    r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(@sha256:[0-9a-f]{64})?"
)


def namespace(value: str) -> str:
    if not LABEL.fullmatch(value) or len(value) > MAX_LABEL_CHARS:
        raise InvalidInput(
            f"a namespace has up to {MAX_LABEL_CHARS} lower case letters, digits and dashes "
            f"between them, unlike {value!r}"
        )
    return value


def secret(value: str) -> str:
    if not SUBDOMAIN.fullmatch(value) or len(value) > MAX_SUBDOMAIN_CHARS:
        raise InvalidInput(
            f"a Secret's name has lower case letters, digits, dashes and dots, unlike {value!r}"
        )
    return value


def image(value: str) -> str:
    if not IMAGE.fullmatch(value) or len(value) > MAX_IMAGE_CHARS:
        raise InvalidInput(f"{value!r} cannot be an image: write it as registry.example/app:1")
    return value


def derived(front: str, name: str, most: int = MAX_LABEL_CHARS) -> str:
    """A name of ours that also Kubernetes accepts: lower case, digits and dashes. What had to be
    changed is told apart by a hash."""
    plain = "".join(c if c.isalnum() and c.isascii() else "-" for c in name.lower())
    made = f"{front}-{plain}"
    if plain == name and len(made) <= most and not made.endswith("-"):
        return made
    digest = hashlib.sha256(name.encode()).hexdigest()[:6]
    return f"{made[: most - 7].rstrip('-')}-{digest}"
