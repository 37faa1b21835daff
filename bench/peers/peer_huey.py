"""Huey on Redis or SQLite: a job is forgotten when it is handed out; results not kept."""

from huey import RedisHuey, SqliteHuey
from side import IS_WORKER, URL, mark

if URL.startswith("sqlite:"):
    file = URL.removeprefix("sqlite:///")
    huey = SqliteHuey("bench", filename=file, results=False, fsync=not IS_WORKER)  # as ours
else:
    huey = RedisHuey("bench", url=URL, results=False, blocking=True)


@huey.task()
def job(sent: float) -> None:
    mark(sent)


def push(sent: float) -> None:
    job(sent)


def bulk(n: int) -> None:
    for _ in range(n):  # it has no bulk push
        job(0.0)
