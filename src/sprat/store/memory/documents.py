"""Documents by kind and name, and token buckets."""

from __future__ import annotations

from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.memory.state import StoreState


def get(state: StoreState, kind: str, name: str, now: float) -> model.Document | None:
    entry = state.documents.get((kind, name))
    return entry[0] if entry is not None and entry[1] > now else None


def page(
    state: StoreState, kind: str, limit: int, after: str | None, now: float
) -> list[model.Document]:
    """Compared as bytes, as the other stores do."""
    _forget_expired(state, now)
    documents = [document for document, _ in state.documents.values() if document.kind == kind]
    documents.sort(key=lambda document: document.name.encode())
    if after is not None:
        documents = [document for document in documents if document.name.encode() > after.encode()]
    return documents[:limit]


def put(
    state: StoreState,
    document: model.Document,
    *,
    gone: bool,
    version: int | None,
    expires_at: float,
    now: float,
) -> bool:
    _forget_expired(state, now)
    current = get(state, document.kind, document.name, now)
    number = 0 if current is None else current.version
    if version not in (None, number):
        return False
    where = (document.kind, document.name)
    if gone:
        state.documents.pop(where, None)
    else:
        state.documents[where] = (document.replace(version=number + 1), expires_at)
    return True


def take(
    state: StoreState, name: str, amount: float, now: float, *, rate: float, burst: float
) -> float:
    tokens, at = state.buckets.get(name, (burst, now))
    tokens = min(burst, tokens + (now - at) * rate)
    if tokens < amount:
        return (amount - tokens) / rate
    state.buckets[name] = (tokens - amount, now)
    return 0.0


def _forget_expired(state: StoreState, now: float) -> None:
    expired = [where for where, (_, until) in state.documents.items() if until <= now]
    for where in expired:
        del state.documents[where]
