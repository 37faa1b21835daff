"""Storms of cues from many processes: one run at a time, and one that began after every cue."""

from __future__ import annotations

import time
from itertools import pairwise

from processes import Together, at_once
from worlds import World

from sprat.store.open_store import open_store
from sprat.triggers import coalesce

CUES = 40


def test_runs_never_overlap_and_each_cue_is_followed_by_one(shared: World) -> None:
    answers = at_once(6, _storm, shared.url)
    cues = [cue for asked, _ in answers for cue in asked]
    runs = sorted(run for _, ran in answers for run in ran)
    assert len(cues) == 6 * CUES
    assert 1 <= len(runs) < len(cues)
    for (_, end), (begin, _) in pairwise(runs):
        assert end <= begin
    assert max(cues) < runs[-1][0]
    with open_store(shared.url) as store:
        assert store.backend.document(coalesce.ASKED, "it") is None
        assert store.backend.document(coalesce.RUNNING, "it") is None


def _storm(
    place: int, together: Together, url: str
) -> tuple[list[float], list[tuple[float, float]]]:
    asked: list[float] = []
    ran: list[tuple[float, float]] = []

    def run() -> None:
        begin = time.monotonic()
        time.sleep(0.002)
        ran.append((begin, time.monotonic()))

    with open_store(url) as store:
        together()
        for _ in range(CUES):
            asked.append(time.monotonic())
            if coalesce.ask(store, "it", limit=60.0):
                coalesce.answer(store, "it", run, limit=60.0, pause=0.005)
    return asked, ran
