"""What can be said about a paper without asking anybody: its size, readability and key terms."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import prose

import sprat


def read(given: dict[str, Any]) -> dict[str, Any]:
    """Name, title and length. A paper that is not there will not be there next time either."""
    path = given["path"]
    try:
        title, body = prose.title_and_body(path)
    except (OSError, UnicodeDecodeError) as error:
        raise sprat.Poison(f"{path} cannot be read: {error}") from error
    return {"name": Path(path).stem, "title": title, "words": len(prose.words(body))}


def measure(given: dict[str, Any]) -> dict[str, Any]:
    """Flesch's two formulas: ease from 0 (hard) to 100, and the school grade that it takes."""
    _, body = prose.title_and_body(given["path"])
    words, sentences = prose.words(body), prose.sentences(body)
    length = len(words) / len(sentences)
    weight = sum(map(prose.syllables, words)) / len(words)
    return {
        "sentences": len(sentences),
        "words_per_sentence": round(length, 1),
        "ease": round(206.835 - 1.015 * length - 84.6 * weight, 1),
        "grade": round(0.39 * length + 11.8 * weight - 15.59, 1),
    }


def find_terms(given: dict[str, Any]) -> list[str]:
    """The words that are frequent here and rare in the other papers of the directory."""
    mine = prose.HERE / given["path"]
    texts = {path: prose.telling_words(legible(path)) for path in mine.parent.glob("*.txt")}
    spread = Counter(word for found in texts.values() for word in set(found))
    counts = Counter(texts[mine])
    weights = {word: n * math.log(1 + len(texts) / spread[word]) for word, n in counts.items()}
    return sorted(weights, key=lambda word: (-weights[word], word))[: given["most"]]


def legible(path: Path) -> str:
    """Whatever can be read of it: a broken neighbour is no reason to fail."""
    return path.read_text(encoding="utf-8", errors="replace")
