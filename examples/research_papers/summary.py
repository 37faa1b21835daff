"""A summary: by a language model if one is configured, else the sentences that say most."""

from __future__ import annotations

import math
from typing import Any

import language_model
import prose

MOST_CHARACTERS = 12_000  # of a paper that are sent to a model
TITLE_BONUS = 1.5  # for a sentence that begins the paper: it usually says what it is about


def summarize(given: dict[str, Any]) -> dict[str, str]:
    title, body = prose.title_and_body(given["path"])
    model = language_model.configured()
    if model is None:
        return {"summary": extract(body, given["terms"], given["sentences"]), "by": "extraction"}
    question = f"Summarize this paper in {given['sentences']} sentences.\n\n{title}\n\n{body}"
    return {"summary": model.answer(question[:MOST_CHARACTERS]), "by": model.name}


def extract(body: str, terms: list[str], most: int) -> str:
    """The sentences with most of the key terms, in their own order."""
    found = prose.sentences(body)
    weights = {term: len(terms) - place for place, term in enumerate(terms)}

    def score(place: int) -> float:
        words = prose.words(found[place])
        said = {*words, *map(prose.singular, words)}
        weight = sum(weights.get(word, 0) for word in said) / math.sqrt(len(words))
        return weight * TITLE_BONUS if place == 0 else weight

    best = sorted(range(len(found)), key=lambda place: (-score(place), place))[:most]
    return " ".join(found[place] for place in sorted(best))
