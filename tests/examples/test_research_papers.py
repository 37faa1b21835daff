"""The papers: analyzed offline from end to end, and with a model that is often busy."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from example import Example, eventually
from language_server import LanguageServer

import sprat

NAME = "research_papers"
PAPERS = ["aether", "atom", "cholera", "eclipse", "eratosthenes", "peas"]


@pytest.fixture
def store(example: Example) -> Iterator[sprat.Store]:
    """The example's store, as `sprat apply` leaves it."""
    example.run("sprat", "apply")
    with sprat.open_store(f"sqlite:///{example.place}/papers.db") as store:
        yield store


def use(example: Example, server: LanguageServer, key: str = "secret") -> None:
    """Tell the example about a model; before `sprat apply` or after it, workers see it."""
    about = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": key, "OPENAI_MODEL": "tiny"}
    example.environment.update(about)


def report(example: Example, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((example.place / "out" / f"{name}.json").read_text())
    return found


def refusals(example: Example) -> list[int]:
    """What the catalogue is written to refuse, in the order of the papers."""
    entries = json.loads((example.place / "papers" / "catalogue.json").read_text())
    return [entries[name]["refusals"] for name in PAPERS]


def only(example: Example, *names: str) -> None:
    """Leave only these papers in the directory."""
    for path in (example.place / "papers").glob("*.txt"):
        if path.stem not in names:
            path.unlink()


def write(example: Example, name: str, text: str) -> Path:
    path = example.place / "papers" / f"{name}.txt"
    path.write_text(text)
    return path


def test_every_paper_is_analyzed_offline(example: Example, store: sprat.Store) -> None:
    said = example.run("queue_papers.py", "--wait")
    assert said.startswith("queued 6 papers\n")
    items = store.pool("papers").items()
    assert [item.status for item in items] == ["done"] * 6
    # The catalogue refused one of them five times, and three attempts were allowed.
    assert [item.given_back for item in items] == refusals(example) == [0, 2, 5, 0, 1, 0]
    assert [(item.attempts, item.max_retries) for item in items] == [(1, 3)] * 6
    for name in PAPERS:
        found = report(example, name)
        text = (example.place / "papers" / f"{name}.txt").read_text()
        assert found["summarized_by"] == "extraction"
        assert 0 < len(found["summary"]) < len(text) / 3
        assert all(part in text for part in found["summary"].split(". "))
        assert (example.place / "out" / f"{name}.md").read_text().startswith(f"# {found['title']}")
    index = (example.place / "out" / "index.md").read_text()
    assert "[Measuring the Earth with a Shadow](eratosthenes.md) | 7.2 | distance, angle" in index
    assert report(example, "cholera")["terms"][:2] == ["water", "pump"]
    assert report(example, "cholera")["catalogue"] == {"subject": "medicine", "year": 1855}

    # Queued again, nothing is done twice.
    assert example.run("queue_papers.py", "--wait") == said
    assert len(store.pool("papers").items()) == 6


def test_what_is_wrong_with_a_paper_is_told_about_that_paper(
    example: Example, store: sprat.Store
) -> None:
    only(example, "peas")
    write(example, "blank", "Only a title\n")
    write(example, "broken", "").write_bytes(b"A title\n\xff\xfe")
    write(example, "unlisted", "New\n\nA result that no catalogue has. It is new.")
    rows = example.run("queue_papers.py", "--wait").splitlines()[1:]
    assert rows[0] == "| blank | nothing in it | | |"
    assert rows[1].startswith("| papers/broken.txt | failed: papers/broken.txt cannot be read: ")
    assert "(peas.md)" in rows[2]
    assert "- Catalogue: not listed" in (example.place / "out" / "unlisted.md").read_text()
    (poisoned,) = store.pool("papers").items("poisoned")
    assert poisoned.attempts == 1


@pytest.mark.alone
def test_a_model_that_is_often_busy_poisons_nothing(example: Example, store: sprat.Store) -> None:
    with LanguageServer(refusals=4) as server:
        use(example, server)
        example.run("queue_papers.py", "--wait")
        items = store.pool("papers").items()
        assert [item.status for item in items] == ["done"] * 6
        assert {item.attempts for item in items} == {1}
        # Each attempt goes on where the last one was refused: four refusals, and one answer.
        assert sorted(server.asked.values()) == [5] * 6
        assert [item.given_back - 4 for item in items] == refusals(example)
        assert server.models == {"tiny"}
    found = report(example, "peas")
    assert found["summary"] == "It is about Counting Peas: Regular Numbers in the Garden."
    assert found["summarized_by"] == "tiny"


def test_a_wrong_key_is_told_after_three_attempts(example: Example, store: sprat.Store) -> None:
    only(example, "peas")
    with LanguageServer() as server:
        use(example, server, key="wrong")
        said = example.run("queue_papers.py", "--wait")
        assert set(server.asked.values()) == {3}
    assert "failed: RuntimeError: the model refuses: HTTP Error 401: Unauthorized" in said
    (poisoned,) = store.pool("papers").items("poisoned")
    assert "no such key" in str(poisoned.error)


def test_a_worker_that_is_killed_while_it_waits_for_the_model_costs_one_attempt(
    example: Example, store: sprat.Store
) -> None:
    only(example, "cholera")
    with LanguageServer() as server:
        server.may_answer.clear()
        use(example, server)
        example.run("queue_papers.py")
        eventually(lambda: sum(server.asked.values()))
        (item,) = store.pool("papers").items("claimed")
        worker = store.workers.get(str(item.claimed_by))
        assert worker is not None
        os.kill(int(worker.pid or 0), signal.SIGKILL)
        eventually(lambda: store.workers.get(worker.worker_id).status == "lost")
        server.may_answer.set()
        example.run("queue_papers.py", "--wait")
        assert sum(server.asked.values()) == 2
    done = store.pool("papers").get(item.id)
    assert (done.status, done.attempts, done.given_back) == ("done", 2, 5)


def test_what_cannot_be_queued_is_said_in_one_sentence(example: Example) -> None:
    assert complaint(example) == "nobody would work on them: run `sprat apply` first\n"
    example.run("sprat", "apply")
    assert complaint(example, "nowhere") == "there is no *.txt in nowhere\n"


def complaint(example: Example, *arguments: str) -> str:
    process = example.start("queue_papers.py", *arguments)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    return said
