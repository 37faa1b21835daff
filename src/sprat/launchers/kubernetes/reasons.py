"""What a pod's status says about its worker, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sprat.core.record import Record

WAITING = "waiting"  # may still come, if there is time
STUCK = "stuck"  # will not come, however long one waits
RUNNING = "running"
FINISHED = "finished"

# Why a container does not start: a person has to change something, or the next try may do better.
STUCK_BECAUSE = {
    *("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"),
    *("ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"),
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
}
LONGEST = 600  # characters of one reason
LAST_LINES = 5  # of what a container printed
KILLED = 128  # exit codes above this are a signal's


class Fate(Record):
    """What became of a pod, and why."""

    state: str
    reason: str


def fate(pod: Mapping[str, Any]) -> Fate:
    status = pod.get("status", {})
    phase = status.get("phase", "Pending")
    if phase in ("Succeeded", "Failed"):
        return Fate(state=FINISHED, reason=_short(_end(status, phase)))
    if phase == "Pending":
        return _pending(status)
    return _running(status)


def _running(status: Mapping[str, Any]) -> Fate:
    for container in _containers(status):
        if container.get("state", {}).get("waiting", {}).get("reason") == "CrashLoopBackOff":
            why = _exit(container.get("lastState", {}).get("terminated", {}))
            return Fate(state=STUCK, reason=_short(f"started again and again: {why}"))
    return Fate(state=RUNNING, reason="its pod runs")


def _pending(status: Mapping[str, Any]) -> Fate:
    for container in _containers(status):
        waiting = container.get("state", {}).get("waiting", {})
        why = str(waiting.get("reason", ""))
        if why in STUCK_BECAUSE:
            return Fate(state=STUCK, reason=_short(_told(why, waiting.get("message"))))
    for condition in status.get("conditions", []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            why = _told(str(condition.get("reason", "Unschedulable")), condition.get("message"))
            return Fate(state=WAITING, reason=_short(f"no node takes its pod: {why}"))
    for container in _containers(status):
        why = str(container.get("state", {}).get("waiting", {}).get("reason", ""))
        if why:
            return Fate(state=WAITING, reason=f"its pod did not start: {why}")
    return Fate(state=WAITING, reason="its pod did not start")


def _end(status: Mapping[str, Any], phase: str) -> str:
    """The worst that a container of it met, or what was done to the pod as a whole."""
    for condition in status.get("conditions", []):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return _told(str(condition.get("reason", "disrupted")), condition.get("message"))
    if status.get("reason"):  # Evicted, OutOfcpu, NodeShutdown, ...
        return _told(str(status["reason"]), status.get("message"))
    for container in _containers(status):
        ended = container.get("state", {}).get("terminated", {})
        if ended.get("exitCode"):
            return _exit(ended)
    if phase == "Failed":
        return _told("its pod failed", status.get("message"))
    return "its pod ended (exit code 0)"


def _exit(ended: Mapping[str, Any]) -> str:
    code, why = int(ended.get("exitCode", 0)), str(ended.get("reason", "Error"))
    how = f"signal {code - KILLED}" if code > KILLED else f"exit code {code}"
    what = f"its pod ended with {how}" if why == "Error" else f"{why} ({how})"
    return _told(what, _last_lines(ended.get("message")))


def _containers(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from status.get("initContainerStatuses", [])
    yield from status.get("containerStatuses", [])


def _last_lines(printed: object) -> str:
    lines = [line.strip() for line in str(printed or "").splitlines() if line.strip()]
    return " | ".join(lines[-LAST_LINES:])


def _told(why: str, message: object) -> str:
    text = " ".join(str(message or "").split())
    return f"{why}: {text}" if text else why


def _short(reason: str) -> str:
    """The end of what was printed matters, and the beginning of what happened."""
    if len(reason) <= LONGEST:
        return reason
    return f"{reason[: LONGEST // 2]} ... {reason[-LONGEST // 2 :]}"
