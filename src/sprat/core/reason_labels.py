"""A scaling decision's reason as one of a few words, to be counted by: sentences make no labels."""

from __future__ import annotations

# Stores count by the place of a word in this list: add words at the end only.
REASONS = ("minimum", "maximum", "latency", "idle", "queue", "other")
SIGNS = {
    "minimum": ("minimum", "min_workers"),
    "maximum": ("maximum reached", "above"),
    "latency": ("p95", "latency"),
    "idle": ("idle", "delay has passed", "surplus"),
    "queue": ("waiting", "pending", "queue", "ready"),
}


def number(sentence: str) -> int:
    """The place in REASONS of the word that stands for a decision's reason."""
    lowered = sentence.lower()
    for word, signs in SIGNS.items():
        if any(sign in lowered for sign in signs):
            return REASONS.index(word)
    return REASONS.index("other")
