"""The end of a sentence about an unknown word: the word that may have been meant."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_NAMED = 30  # of the words that would have been right, in one sentence


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`: did you mean max_workers?`, or, when no known word is like it, `: use fixed, step`."""
    words = list(known)
    near = nearest(name, words)
    if near is not None:
        return f": did you mean {near}?"
    return f": use {', '.join(words[:MOST_NAMED])}{', ...' if len(words) > MOST_NAMED else ''}"


def nearest(name: object, known: Iterable[str]) -> str | None:
    """The known word that is most like this one; None when none is."""
    import difflib

    return next(iter(difflib.get_close_matches(str(name), list(known), n=1)), None)
