"""The bare statements on Redis, no library: one script settles 50 items and takes the next 50."""

import redis
from side import URL, mark

BATCH = 50
STEP = """
for i = 1, #ARGV do redis.call('HSET', 'item:' .. ARGV[i], 'status', 'done') end
local ids = redis.call('LPOP', KEYS[1], 50)
local found = {}
for i = 1, #(ids or {}) do
    redis.call('HSET', 'item:' .. ids[i], 'status', 'claimed', 'by', 'me', 'token', 'x')
    found[2 * i - 1], found[2 * i] = ids[i], redis.call('HGET', 'item:' .. ids[i], 'data')
end
return found
"""
db = redis.Redis.from_url(URL)


def push(sent: float) -> None:
    bulk(1)


def bulk(n: int) -> None:
    for start in range(0, n, 1000):
        pipe = db.pipeline()
        ids = range(start, min(start + 1000, n))
        for one in ids:
            pipe.hset(f"item:{one}", mapping={"data": "0.0", "status": "pending"})
        pipe.rpush("bench", *ids)
        pipe.execute()


def work(*_: str) -> None:
    step = db.register_script(STEP)
    done: list[bytes] = []
    while True:
        found = step(keys=["bench"], args=done)
        done = found[::2]
        for data in found[1::2]:
            mark(float(data))
        if not found:
            db.blpop(["bell"], timeout=1)
