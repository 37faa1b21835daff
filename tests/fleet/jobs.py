"""The jobs that the fleet under test runs. Each writes what happens to the log in its payload."""

from __future__ import annotations

import asyncio
import ctypes
import datetime
import decimal
import os
import signal
import subprocess
import sys
import time
from typing import Any

from sprat.core.errors import Poison, Throttled, Transient
from sprat.worker.job import current_job

Data = dict[str, Any]
seen: list[str] = []  # by this process


def note(data: Data, what: str, *rest: object) -> None:
    """One line, in one write, so that lines of many processes do not mix."""
    line = " ".join(map(str, (what, current_job().item.id, *rest))) + "\n"
    log = os.open(data["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line.encode())
    os.close(log)


def started(data: Data) -> None:
    note(data, "start", current_job().attempt, os.getpid(), time.time())


def echo(data: Data) -> Any:
    """Echoes its input after a delay: the processor of the document."""
    started(data)
    time.sleep(data.get("seconds", 0))
    note(data, "end", current_job().attempt)
    return data.get("say")


def compute(data: Data) -> None:
    """Keeps a processor busy for this many seconds of its time."""
    end = time.process_time() + data["seconds"]
    while time.process_time() < end:
        pass


async def echo_async(data: Data) -> Any:
    await asyncio.sleep(0.01)
    return echo(data)


async def cancel_itself(data: Data) -> None:
    started(data)
    raise asyncio.CancelledError


def fail(data: Data) -> None:
    started(data)
    raise ValueError("it never works")


def fail_until(data: Data) -> int:
    """Fails before the attempt that the payload names."""
    started(data)
    if current_job().attempt < data["attempt"]:
        raise ValueError("not yet")
    return current_job().attempt


def wait_for_file(data: Data) -> str:
    """Runs until somebody makes the file."""
    started(data)
    while not os.path.exists(data["file"]):
        time.sleep(0.01)
    note(data, "end", current_job().attempt)
    return "seen"


def slow_at_first(data: Data) -> int:
    """Its first attempt takes for ever, the next none at all."""
    started(data)
    if current_job().attempt == 1:
        time.sleep(600)
    return current_job().attempt


def slow_when_first_claimed(data: Data) -> int:
    """Its first claim takes for ever, the next none at all, whether or not that was charged."""
    started(data)
    if current_job().fence == 1 and not data.get("quick"):
        time.sleep(600)
    return current_job().fence


def hold_the_interpreter(data: Data) -> str:
    """One call into C that keeps the lock of the interpreter."""
    started(data)
    libc = ctypes.PyDLL(None)
    libc.usleep(int(data["seconds"] * 1e6))
    note(data, "end", current_job().attempt)
    return "held"


def kill_the_worker(data: Data) -> None:
    started(data)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


def kill_itself(data: Data) -> None:
    started(data)
    os.kill(os.getpid(), signal.SIGKILL)


def exit_at_once(data: Data) -> None:
    started(data)
    os._exit(7)


def exit_politely(data: Data) -> None:
    started(data)
    sys.exit("enough of this")


def segfault(data: Data) -> None:
    started(data)
    ctypes.string_at(0)


def start_others_and_sleep(data: Data) -> None:
    """Two processes that it does not wait for: one in C, one forked from it."""
    other = subprocess.Popen(["sleep", "600"])
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
        os._exit(0)
    note(data, "others", other.pid, forked)
    started(data)
    time.sleep(600)


def start_others_at_first(data: Data) -> int:
    if current_job().fence == 1:
        start_others_and_sleep(data)
    return current_job().fence


def leave_another_behind(data: Data) -> str:
    """Done at once, but a process that it forked holds on to all it inherited."""
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
        os._exit(0)
    note(data, "others", forked)
    return "done"


def remember(data: Data) -> int:
    """How many jobs ran in this process."""
    seen.append(current_job().item.id)
    return len(seen)


def checkpoints(data: Data) -> dict[str, Any]:
    job = current_job()
    if job.attempt == 1:
        job.save_checkpoint({"page": 7})
        raise ValueError("after page 7")
    return {
        "attempt": job.attempt,
        "fence": job.fence,
        "checkpoint": job.checkpoint,
        "cancelled": job.cancelled,
        "id": job.item.id,
    }


def show_progress(data: Data) -> None:
    current_job().progress(0.25, "a quarter")
    wait_for_file(data)


def throttled(data: Data) -> None:
    started(data)
    raise Transient("slow down", delay_seconds=data.get("delay"))


def throttled_at_first(data: Data) -> None:
    """The first of all is told to stay away; whoever starts before that is over is noted."""
    with open(data["log"], "a+") as log:
        is_first = not log.tell()
    started(data)
    if is_first:
        raise Throttled("too many requests", delay_seconds=data["delay"])


def hopeless(data: Data) -> None:
    started(data)
    raise Poison("no such paper")


class HttpError(Exception):
    def __init__(self, status_code: int, **headers: str) -> None:
        super().__init__(f"HTTP {status_code}")
        self.status_code = status_code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def rate_limited(data: Data) -> int:
    """The service answers this many of its claims with 429, and when to come again."""
    started(data)
    if current_job().fence <= data.get("refused", 0):
        raise HttpError(429, retry_after=str(data["retry_after"]))
    return os.getppid()


def time_out(data: Data) -> None:
    started(data)
    raise TimeoutError("the service does not answer")


def refused_at_first(data: Data) -> int:
    """Twice an error of the kind that the payload names, then the number of starts."""
    started(data)
    with open(data["log"]) as log:
        starts = sum(line.startswith(f"start {current_job().item.id}") for line in log)
    if starts < 3:
        raise {
            "timeout": TimeoutError("too slow"),
            "connection": ConnectionResetError("went away"),
            "429": HttpError(429),
            "503": HttpError(503),
        }[data["how"]]
    return starts


def not_found(data: Data) -> None:
    raise HttpError(404)


def not_json(data: Data) -> object:
    started(data)
    return {"chart": b"\x89PNG", "sharpe": 1.25}


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__

    def __getattr__(self, name: str) -> object:
        raise RuntimeError("no attributes")


def raise_unusual(data: Data) -> None:
    """Raises what `except Exception` does not catch, or what cannot be printed."""
    started(data)
    raise {
        "KeyboardInterrupt": KeyboardInterrupt,
        "GeneratorExit": GeneratorExit,
        "CancelledError": asyncio.CancelledError,
        "Mute": Mute,
    }[data["kind"]]()


def rich(data: Data) -> object:
    """Answers with values that JSON does not have, one of them as its checkpoint."""
    import numpy as np  # here: most jobs do without, and it is slow to import

    started(data)
    job = current_job()
    if job.attempt == 1:
        job.save_checkpoint({"day": datetime.date(2026, 7, 1), "n": np.int64(1)})
        raise ValueError("once more")
    return {
        "checkpoint": job.checkpoint,
        "argument": data["when"],
        "sharpe": np.float64(1.25),
        "curve": np.array([1, 2]),
        "by year": {2026: decimal.Decimal("0.10")},
    }


def environment(data: Data) -> list[str | None]:
    """The values of the variables that the payload names."""
    started(data)
    time.sleep(data.get("seconds", 0))
    return [os.environ.get(name) for name in data["names"]]


def unspeakable(data: Data) -> None:
    raise ValueError("half a character: \ud800, and nothing: \0")


def echo_or_fail(data: Data) -> Any:
    return fail(data) if data.get("fail") else echo(data)


def kill_at_first(data: Data) -> None:
    started(data)
    if current_job().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def refused_now_and_then(data: Data) -> None:
    """Every 20th call is answered with 429 at first, but no worker is refused twice in a row."""
    mark = f"{data['log']}.refused.{os.getppid()}"
    time.sleep(data["seconds"])
    if os.path.exists(mark):
        os.unlink(mark)
    elif data["n"] % 20 == 0 and not current_job().item.transients:
        open(mark, "w").close()
        raise HttpError(429, retry_after="1")
