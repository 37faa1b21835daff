"""One item as the memory store holds it: a plain, changeable object."""

from __future__ import annotations

import json

from sprat.core import model, retry_rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Item:
    """One item. It enters a pool as `Pool.place` says and changes status only there."""

    def __init__(self, new: model.NewItem, *, pool: str, number: int, now: float) -> None:
        self.id = new.id
        self.pool = pool
        self.number = number  # order of arrival: the item's place, wherever it comes back from
        self.data = new.data
        self.max_retries = new.max_retries
        self.priority = new.priority
        self.tenant = new.tenant
        self.group = new.group
        self.key = new.key
        self.task = new.task
        self.created_at = now

        self.status = ""  # in no state before it is placed
        self.ready_at = now  # since when it could be claimed, or from when on
        self.delayed = False
        self.queued = False  # has an entry in the ready queue, perhaps one that is no longer true

        self.attempts = 0
        self.ahead = 0  # 0, retry.ANNOUNCED or retry.UNANNOUNCED
        self.suspect = False
        self.given_back = 0
        self.transients = 0
        self.hold: str | None = None  # set by a PARK, cleared by whatever happens next

        self.claimed_by: str | None = None
        self.claimed_at: float | None = None
        self.epoch = 0
        self.token: str | None = None
        self.settled_token: str | None = None  # of the last claim that its holder settled
        self.settled_outcome: str | None = None

        self.checkpoint: str | None = None
        self.progress: float | None = None
        self.progress_note: str | None = None
        self.result: str | None = None
        self.error: str | None = None
        self.finished_at: float | None = None

    @property
    def ready(self) -> bool:
        return self.status == model.PENDING and not self.delayed

    def is_held_with(self, token: str | None) -> bool:
        return token is not None and token == self.token

    def may_run_ahead(self) -> bool:
        return retry_rules.may_run_ahead(
            suspect=self.suspect, attempts=self.attempts, max_retries=self.max_retries
        )

    def tally(self) -> retry_rules.AttemptCounts:
        return retry_rules.AttemptCounts(
            attempts=self.attempts,
            max_retries=self.max_retries,
            ahead=self.ahead,
            suspect=self.suspect,
            given_back=self.given_back,
            transients=self.transients,
        )

    def as_record(self) -> model.WorkItem:
        return model.WorkItem(
            id=self.id,
            pool=self.pool,
            data=json.loads(self.data),
            status=self.status,
            attempts=self.attempts,
            max_retries=self.max_retries,
            priority=self.priority,
            tenant=self.tenant,
            group=self.group,
            key=self.key,
            claimed_by=self.claimed_by,
            epoch=self.epoch,
            token=self.token,
            checkpoint=_decoded(self.checkpoint),
            progress=self.progress,
            progress_note=self.progress_note,
            result=_decoded(self.result),
            error=self.error,
            created_at=self.created_at,
            run_at=self.ready_at if self.delayed else None,
            claimed_at=self.claimed_at,
            finished_at=self.finished_at,
            given_back=self.given_back,
            task=self.task,
            transients=self.transients,
            hold=self.hold,
        )


def _decoded(text: str | None) -> Any:
    return None if text is None else json.loads(text)
