"""What the public routes show of items, pools and workers, and how their pages go on."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from sprat.core import model, payload

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
NAME = r"^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$"  # dots alone would be places in a path
PoolName = Annotated[str, msgspec.Meta(pattern=NAME, max_length=128)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=315_360_000)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
PAGE = 100
FEW = msgspec.Meta(max_length=payload.MAX_IDS)  # of a list whose entries each cost a look


class Page(msgspec.Struct, kw_only=True):
    """Which part of a list: `after` is `next` of the page before."""

    limit: Limit = PAGE
    after: Annotated[str, msgspec.Meta(max_length=200)] | None = None


class JobView(msgspec.Struct, kw_only=True):
    """An item as anybody with the right role may read it."""

    id: str
    pool: str
    status: str
    data: Any
    attempts: int
    max_retries: int
    priority: int
    tenant: str | None
    group: str | None
    key: str | None
    claimed_by: str | None
    checkpoint: Any
    progress: float | None
    progress_note: str | None
    result: Any
    error: str | None
    created_at: float
    run_at: float | None
    claimed_at: float | None
    finished_at: float | None


class ClaimedJob(msgspec.Struct, kw_only=True):
    """An item for the worker that claimed it. The token proves the claim: settling needs it."""

    id: str
    token: str | None
    data: Any
    attempts: int
    max_retries: int
    tenant: str | None
    group: str | None
    checkpoint: Any


class Jobs(msgspec.Struct, kw_only=True):
    jobs: list[JobView]
    next: str | None


JOB_FIELDS = JobView.__struct_fields__
CLAIMED_FIELDS = ClaimedJob.__struct_fields__


def job(item: model.WorkItem) -> dict[str, Any]:
    return {name: getattr(item, name) for name in JOB_FIELDS}


def claimed(item: model.WorkItem) -> dict[str, Any]:
    return {name: getattr(item, name) for name in CLAIMED_FIELDS}


def cut(found: list[Any], limit: int) -> tuple[list[Any], bool]:
    """A page out of one entry more than a page, and whether there is another."""
    return found[:limit], len(found) > limit


def after(names: list[str], page: Page) -> tuple[list[str], str | None]:
    """A page of sorted names."""
    rest = [name for name in names if page.after is None or name > page.after]
    shown, more = cut(rest, page.limit)
    return shown, shown[-1] if more else None
