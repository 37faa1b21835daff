"""sprat: one at a time (settle and next claim in one step, or apart), and a hundred at a time."""

from __future__ import annotations

import os

from child import Queue, main

import sprat
from sprat.core.model import Settlement, WorkerRegistration

BATCH = 100


class Sprat(Queue):
    def __init__(self, place: str, synced: bool | None) -> None:
        self.path = f"{place}/queue.db"
        self.url = f"sqlite:///{self.path}" + ("?sync=all" if synced else "")
        self.store = sprat.open_store(self.url)
        self.pool = self.store.pool("bench")
        self.worker = self.store.workers.register(
            WorkerRegistration(worker_id=f"bench-{os.getpid()}", lease_seconds=3600.0)
        )
        self.ways = {
            "one": self.exchange_one,
            "one with a result": self.exchange_result,
            "claim, then complete": self.claim_complete,
            "batched": self.exchange_many,
        }

    def settings(self) -> str:
        return "WAL, every commit synced" if "sync=all" in self.url else "WAL, pushes synced"

    def push_bulk(self, n: int, how: str) -> None:
        self.pool.push_many({"n": number} for number in range(n))

    def push(self, number: int) -> None:
        self.pool.push({"n": number})

    def exchange_one(self, n: int, result: object = None) -> None:
        pool = self.pool
        settlements: list[Settlement] = []
        for _ in range(n):
            answer = pool.exchange(self.worker, settlements=settlements, claim=1)
            settlements = [pool.completion(answer.items[0], result)]
        pool.settle_many(settlements)

    def exchange_result(self, n: int) -> None:
        self.exchange_one(n, {"n": 1})

    def claim_complete(self, n: int) -> None:
        for _ in range(n):
            item = self.pool.claim(self.worker)
            assert item is not None
            self.pool.complete(item)

    def exchange_many(self, n: int) -> None:
        pool = self.pool
        settlements: list[Settlement] = []
        for _ in range(n // BATCH):
            answer = pool.exchange(self.worker, settlements=settlements, claim=BATCH)
            settlements = [pool.completion(item) for item in answer.items]
        pool.settle_many(settlements)

    def take(self, seconds: float) -> int | None:
        if not self.pool.wait(self.worker, seconds=seconds):
            return None
        item = self.pool.claim(self.worker)
        if item is None:
            return None
        self.pool.complete(item)
        return item.data["n"]

    def remaining(self) -> int:
        counts = self.pool.counts()
        return counts.pending + counts.claimed


if __name__ == "__main__":
    main(Sprat)
