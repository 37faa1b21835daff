"""Answers of an orchestrator become the records that the verbs promise."""

from __future__ import annotations

from sprat.core import model
from sprat.core.record import plain
from sprat.store.http import records

COUNTS = model.Counts(pending=3)
WORKER = model.WorkerRecord(worker_id="w", status=model.ACTIVE, capabilities=("gpu",))
SNAPSHOT = model.Snapshot(
    pool="p",
    group=None,
    version=1,
    now=2.0,
    counts=COUNTS,
    stats=model.Stats(seconds=60.0),
    workers=(WORKER,),
    history=(model.StatsBucket(at=1.0, seconds=10.0, waits=((1, 2),)),),
    saturated=model.Saturation(cause="memory", may_run=1),
)


def test_records_inside_records_come_back_the_same() -> None:
    assert records.answer("observe", plain(SNAPSHOT)) == SNAPSHOT
    assert records.answer("workers", plain([WORKER])) == [WORKER]
    assert records.answer("worker", None) is None


def test_lists_of_a_payload_stay_lists() -> None:
    item = model.WorkItem(id="1", pool="p", data=[[1], {"a": [2]}], result=[3])
    answer = model.Exchange(settled=(True,), items=(item,))
    assert records.answer("exchange", plain(answer)) == answer


def test_fields_of_a_newer_server_are_left_out_and_those_of_an_older_one_are_defaults() -> None:
    assert records.answer("counts", {"pending": 3, "asleep": 1}) == COUNTS
