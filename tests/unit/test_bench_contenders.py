"""Who runs in `make bench-peers`, and what is said of one that cannot."""

from __future__ import annotations

import sys

from bench import environment
from bench.peers.__main__ import gather
from bench.peers.cases import CASES, Case
from bench.peers.servers import Postgres
from bench.peers.trial import Contender

FROM_THE_FUTURE = Case(
    Contender(name="Late 1.0", python="", script="late", one=(), best=(), settings=""),
    pinned=("late==1.0",),
    needs=(3, 900),
)


def test_our_own_python_is_taken_where_it_is_new_enough() -> None:
    assert environment.newer_python((3, 0)) == sys.executable


def test_one_that_needs_a_newer_python_is_left_out_and_named() -> None:
    contenders, absent = gather([FROM_THE_FUTURE], [])
    assert contenders == []
    assert absent == [
        "Late 1.0 was not run: it needs Python 3.900 or newer, and none is on the path."
    ]


def test_only_the_named_contenders_run() -> None:
    contenders, absent = gather(CASES[Postgres], ["sprat"])
    assert [one.name for one in contenders] == ["sprat", "sprat, one at a time"]
    assert absent == []
