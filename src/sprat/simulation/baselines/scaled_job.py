"""KEDA's ScaledJob: a Kubernetes job for each message, by one of three strategies.

A pod takes one message and ends. The queue's length is that of the scaler: with running messages in
it for `default`, which takes the running jobs off, and without them for the other two.
"""

from __future__ import annotations

import math

from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.simulation.fleet import SimulatedFleet

STRATEGIES = ("default", "accurate", "eager")


class Options(Record):
    strategy: str = "default"
    polling_seconds: float = 30.0
    max_replicas: int = 100
    one_message: bool = True  # else a pod goes on until the queue is empty


class ScaledJob:
    quiet_seconds = math.inf

    def __init__(self, options: Options) -> None:
        if options.strategy not in STRATEGIES:
            raise InvalidInput(f"no strategy {options.strategy!r}: one of {', '.join(STRATEGIES)}")
        self._options = options
        self.poll_seconds = options.polling_seconds
        self.settle_seconds = 2 * options.polling_seconds

    def poll(self, fleet: SimulatedFleet) -> None:
        length = fleet.waiting
        if self._options.strategy == "default":
            length += fleet.busy
        unfinished = len(fleet.starting) + len(fleet.idle) + fleet.busy
        fleet.launch(launches(self._options, length, unfinished, len(fleet.starting)))


def launches(options: Options, length: int, unfinished: int, pending: int) -> int:
    """How many jobs to create; `pending` are those of the unfinished whose pods do not run yet."""
    most = options.max_replicas
    wanted = min(length, most)
    if options.strategy == "default":
        return max(0, wanted - unfinished)
    if options.strategy == "eager":
        return max(0, min(most - unfinished - pending, wanted))
    if wanted + unfinished - pending > most:
        return max(0, most - unfinished)
    return max(0, wanted - pending)
