"""Behind a real PgBouncer in transaction mode: every transaction may get another session."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from processes import Together, at_once
from servers import postgres
from worlds import check_counts

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")


@pytest.fixture
def bouncer(url: str, tmp_path: Path) -> Iterator[str]:
    """The URL of the same database, through a pooler with two server connections."""
    if PROGRAM is None:
        if os.environ.get("SPRAT_TEST_REQUIRE_SERVERS"):
            pytest.fail("PgBouncer is not installed: tools/packages pgbouncer")
        pytest.skip("PgBouncer is not installed: tools/packages pgbouncer")
    with psycopg.connect(url) as db:
        host, port, database = db.info.host, db.info.port, db.info.dbname
    own = postgres.free_port()
    (tmp_path / "users").write_text('"sprat" ""\n')
    (tmp_path / "bouncer.ini").write_text(
        f"[databases]\n{database} = host={host} port={port} dbname={database}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {own}\nauth_type = any\n"
        f"auth_file = {tmp_path}/users\npool_mode = transaction\ndefault_pool_size = 2\n"
        "unix_socket_dir =\nserver_round_robin = 1\n"
    )
    with psycopg.connect(url) as db:  # auth_type any comes in as the user that is named here
        assert db.info.user == "sprat"
    ini = tmp_path / "bouncer.ini"
    text = ini.read_text().replace(f"dbname={database}\n", f"dbname={database} user=sprat\n")
    ini.write_text(text)
    for place in (tmp_path, *list(tmp_path.parents)[:3]):
        place.chmod(place.stat().st_mode | 0o055)
    command = [PROGRAM, str(ini)]
    if os.getuid() == 0:  # it refuses to run as root
        command = [*postgres.AS_POSTGRES, *command]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"postgresql://sprat@127.0.0.1:{own}/{database}"
    try:
        _await(address)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _await(address: str) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(address).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < end, "PgBouncer does not answer"
            time.sleep(0.02)


def test_the_pooler_is_found_out(bouncer: str, url: str) -> None:
    with open_store(bouncer) as store:
        assert store.describe()["pooled"] is True
    with open_store(url) as store:
        assert store.describe()["pooled"] is False
    with open_store(f"{url}?pooled=yes") as store:
        assert store.describe()["pooled"] is True


def drain(place: int, together: Together, url: str) -> int:
    done = 0
    with open_store(url) as store:
        pool = store.pool("papers")
        worker = store.workers.register(WorkerRegistration(worker_id=f"w{place}"))
        together()
        items = pool.claim_many(worker, 5)
        while items:
            done += len(items)
            settled = [pool.completion(item, item.data) for item in items]
            items = list(pool.exchange(worker, settlements=settled, claim=5).items)
    return done


def test_many_processes_share_two_sessions(bouncer: str) -> None:
    with open_store(bouncer) as store:
        pool = store.pool("papers")
        pool.push_many(range(200))
        pool.push("again", key="k")
        assert pool.push("again", key="k")
        assert sum(at_once(4, drain, bouncer)) == 201
        assert pool.counts().done == 201
        check_counts(pool)


def test_a_waiter_wakes_without_listening(bouncer: str) -> None:
    with open_store(bouncer) as store, open_store(bouncer) as other:
        pool = store.pool("papers")
        worker = store.workers.register(WorkerRegistration(worker_id="w1"))
        woken: list[bool] = []
        waiter = threading.Thread(target=lambda: woken.append(pool.wait(worker, seconds=60)))
        waiter.start()
        other.pool("papers").push("paper")
        waiter.join(60)
        assert woken == [True]
