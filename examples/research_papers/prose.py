"""English prose as data: title, sentences, words, syllables."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
VOWELS = re.compile(r"[aeiouy]+")
# Words that say little about what a text is about.
COMMON = frozenset(
    """
    about after again almost also although always another back because been before being
    between both came come could does each even every find first found from gave give given
    gives going have held into itself just know known less like made make many more most much
    must nearly never next none only other others over same says several should show shows
    since some somebody such taken tell than that their them then there therefore these they
    this those though through together took very well were what when where whether which while
    whoever will with within without would yet your
    """.split()  # noqa: SIM905  (a list of so many words is harder to read)
)


def title_and_body(path: str) -> tuple[str, str]:
    """The first line, and the rest. A relative path is beside this file."""
    title, _, body = (HERE / path).read_text(encoding="utf-8").partition("\n")
    return title.strip(), body.strip()


def sentences(text: str) -> list[str]:
    return [" ".join(found.split()) for found in SENTENCE_END.split(text) if found.strip()]


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def telling_words(text: str) -> list[str]:
    """Those that may say what the text is about; a plural counts as its singular if that occurs."""
    found = [word for word in words(text) if len(word) > 3 and word not in COMMON]
    known = set(found)
    return [singular(word) if singular(word) in known else word for word in found]


def singular(word: str) -> str:
    return word.removesuffix("s")


def syllables(word: str) -> int:
    """About: groups of vowels, without an e at the end."""
    groups = len(VOWELS.findall(word))
    is_silent = word.endswith("e") and not word.endswith("le")
    return max(1, groups - 1 if is_silent else groups)
