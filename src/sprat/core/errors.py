"""Everything sprat raises on purpose; each message says what happened and what to do next."""


class SpratError(Exception):
    """The root of every error that sprat raises on purpose."""


class InvalidInput(SpratError, ValueError):
    """The caller's input cannot be used; nothing was changed."""


class KeyConflict(SpratError):
    """The idempotency key already names an item with another payload."""


class PoolInUse(SpratError):
    """The pool has unfinished jobs or live workers, and cannot be deleted."""


class Unknown(SpratError, KeyError):
    """The store does not know this id."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""  # KeyError would print the repr


class UnknownItem(Unknown):
    """No item has this id."""


class UnknownWorker(Unknown):
    """No worker has this id."""


class NotClaimedHere(SpratError):
    """The item exists, but this process did not claim it and so has no token to settle it with."""


class StoreError(SpratError):
    """The store itself is in the way."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, is full, or stayed busy: nothing was changed, try again."""


class StoreMismatch(StoreError):
    """What is at this address is not a store that this version of sprat can use."""


class StoreWarning(UserWarning):
    """The store may lose what it acknowledged."""


class MissingExtra(SpratError, ImportError):
    """The feature needs a package that is not installed."""


class LaunchFailed(SpratError):
    """Some of the workers that were to be started could not be: those of these ids."""

    def __init__(self, message: str, worker_ids: tuple[str, ...]) -> None:
        super().__init__(message)
        self.worker_ids = worker_ids


class JobError(SpratError):
    """What a job raises to say how it failed; any other exception costs an attempt."""


class Transient(JobError):
    """Not the job's fault (throttled, timed out): try again later, the attempt is not charged."""

    def __init__(self, message: str = "", *, delay_seconds: float | None = None) -> None:
        super().__init__(message)
        self.delay_seconds = delay_seconds


class Throttled(Transient):
    """The service that the job called asks for a pause: no item of the pool is handed out until it
    is over."""

    def __init__(self, message: str = "throttled", *, delay_seconds: float = 10.0) -> None:
        super().__init__(message, delay_seconds=delay_seconds)


class Poison(JobError):
    """Failed for good: do not try again."""


class Unfinished(SpratError):
    """An item whose result was asked for has none and will have none."""

    def __init__(self, message: str = "", *, item_id: str = "", error: str | None = None) -> None:
        super().__init__(message)
        self.item_id = item_id
        self.error = error  # as the store keeps it: what was raised, and where


class JobFailed(Unfinished):
    """The item is poisoned: out of attempts, or failed for good."""


class JobCancelled(Unfinished):
    """The item was cancelled before it was done."""
