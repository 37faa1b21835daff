"""Huey on Redis or SQLite: a job is forgotten when it is handed out; results not kept."""

from huey import RedisHuey, SqliteHuey
from side import URL, mark

if URL.startswith("sqlite:"):
    huey = SqliteHuey("bench", filename=URL.removeprefix("sqlite:///"), results=False, fsync=True)
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
