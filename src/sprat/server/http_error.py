"""Why a request is refused: a status, a word for programs and a sentence for people."""

from __future__ import annotations

from sprat.core import errors

MEANINGS = {
    400: "the request cannot be understood",
    401: "no key, or one that is not valid",
    403: "the key's roles do not allow this",
    404: "there is no such thing, or not for this key",
    405: "this path has no such method",
    408: "the request took too long to arrive",
    409: "it contradicts what is stored",
    413: "the request is too large",
    415: "the body is in a form that is not understood",
    422: "the body or a parameter cannot be used",
    429: "too many requests: come back after Retry-After seconds",
    503: "not now: come back after Retry-After seconds",
}

# The first kind that fits: (error, status, word). The HTTP store turns the word into the error.
KINDS: tuple[tuple[type[errors.SpratError], int, str], ...] = (
    (errors.KeyConflict, 409, "key_conflict"),
    (errors.PoolInUse, 409, "pool_in_use"),
    (errors.UnknownItem, 404, "unknown_item"),
    (errors.UnknownWorker, 404, "unknown_worker"),
    (errors.InvalidInput, 422, "invalid_input"),
    (errors.StoreMismatch, 503, "store_mismatch"),
    (errors.StoreError, 503, "store_unavailable"),
)


class HttpError(Exception):
    """Ends a request with an answer that says why."""

    def __init__(
        self, status: int, word: str, message: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.word = word
        self.retry_after = retry_after


def not_found() -> HttpError:
    return HttpError(404, "not_found", "there is nothing here, or not for this key")


def of_error(error: errors.SpratError) -> HttpError:
    """What an error of the core is over HTTP."""
    for kind, status, word in KINDS:
        if isinstance(error, kind):
            return HttpError(status, word, str(error), retry_after=1.0 if status == 503 else None)
    return HttpError(422, "invalid_input", str(error))
