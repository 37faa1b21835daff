"""The bare statements on Redis, no library: one script moves 50 ids and settles the last 50."""

import redis
from side import URL, mark

BATCH = 50
STEP = """
for i = 1, #ARGV do redis.call('HDEL', KEYS[2], ARGV[i]); redis.call('INCR', KEYS[3]) end
local ids = redis.call('LPOP', KEYS[1], 50)
if ids then for i = 1, #ids do redis.call('HSET', KEYS[2], ids[i], 'me') end end
return ids or {}
"""
db = redis.Redis.from_url(URL)


def push(sent: float) -> None:
    db.rpush("bench", str(sent))


def bulk(n: int) -> None:
    for start in range(0, n, 1000):
        db.rpush("bench", *(f"{start + i}" for i in range(min(1000, n - start))))


def work(*_: str) -> None:
    step = db.register_script(STEP)
    done: list[bytes] = []
    while True:
        ids = step(keys=["bench", "claimed", "done"], args=done)
        for _ in ids:
            mark(0.0)
        done = ids
        if not ids:
            _, one = db.blpop(["bench"])
            mark(float(one) if b"." in one else 0.0)
