"""How a worker reports the end of a job: every accepted form, and what the store makes of it.

A report that says nothing about its outcome is a success. Any sign of a failure (an error, a false
`success`, an exit code) makes it a failure, and a report that claims both is refused: a failure is
never stored as a success.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sprat.core import jsontext, model, payload
from sprat.core.errors import InvalidInput
from sprat.store.backend import Backend

OUTCOMES = {
    **dict.fromkeys(("completed", "complete", "done", "success"), model.COMPLETE),
    **dict.fromkeys(("failed", "fail", "error"), model.FAIL),
    **dict.fromkeys(("cancelled", "canceled"), model.CANCELLED),
    "transient": model.TRANSIENT,
    **dict.fromkeys(("poisoned", "poison"), model.POISON),
}
ACCEPTED = "completed, failed, cancelled, transient or poisoned"
NO_ERROR = "the worker reported a failure without an error"


class OutcomeReport(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The end of a job. `status` is completed, failed, cancelled, transient (the attempt is not
    charged) or poisoned (no further attempt), in upper or lower case. Without a `status`,
    `success: false`, an `error` or an `error_message` mean failed. `completed_at` is not used."""

    status: str | None = None
    success: bool | None = None
    result: Any = None
    error: str | None = None
    error_message: str | None = None
    exit_code: int | None = None
    completed_at: str | float | None = None


def settlement(report: OutcomeReport, item_id: str, token: str | None) -> model.Settlement:
    """The report as the store takes it; its outcome may be `cancelled` too, see `settle`."""
    outcome = _outcome(report)
    is_complete = outcome == model.COMPLETE
    result = report.result if is_complete else None
    return model.Settlement(
        item_id=item_id,
        token=token,
        outcome=outcome,
        result=None if result is None else payload.encode(result, "result"),
        error=None if is_complete else payload.error_text(_error(report)),
    )


def settle(backend: Backend, item: model.WorkItem, ended: model.Settlement) -> bool:
    """Store how a claim ended; False when the token is not that of the claim. A job that its
    worker reports as cancelled is cancelled in the store: it is over, and is not tried again."""
    if ended.outcome != model.CANCELLED:
        return backend.exchange(item.pool, settlements=(ended,)).settled[0]
    if item.status == model.CANCELLED:
        return True
    is_held = item.status == model.CLAIMED and item.token == ended.token
    return is_held and backend.cancel(item.pool, (item.id,)) == 1


def _outcome(report: OutcomeReport) -> str:
    has_error = bool(report.error or report.error_message or report.exit_code)
    stated = _stated(report)
    if stated == model.COMPLETE and has_error:
        raise InvalidInput("the report contradicts itself: send a success or an error, not both")
    if stated is not None:
        return stated
    # An error without text is an error: the text of some exceptions is empty.
    is_empty = report.error is None and report.error_message is None
    return model.FAIL if has_error or not is_empty else model.COMPLETE


def _stated(report: OutcomeReport) -> str | None:
    """What `status` and `success` say; None when there is neither."""
    if report.status is None:
        return {None: None, True: model.COMPLETE, False: model.FAIL}[report.success]
    outcome = OUTCOMES.get(report.status.lower())
    if outcome is None:
        raise InvalidInput(f"the status {report.status[:40]!r} is no end of a job: use {ACCEPTED}")
    if report.success not in (None, outcome == model.COMPLETE):
        raise InvalidInput(
            f"the report contradicts itself: its status is {report.status}, and success is "
            f"{jsontext.dumps(report.success)}"
        )
    return outcome


def _error(report: OutcomeReport) -> str:
    exit_code = f"exit code {report.exit_code}" if report.exit_code else NO_ERROR
    return report.error or report.error_message or exit_code
