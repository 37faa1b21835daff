"""What can be wrong with an address or a server, in one sentence that shows no password."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest
from servers import postgres

from sprat.core.errors import InvalidInput, SpratError, StoreMismatch, StoreUnavailable
from sprat.store.open_store import open_store
from sprat.store.postgres import address

SECRET = "s3cret-word"


def complaint(url: str, kind: type[SpratError] = StoreUnavailable) -> str:
    with pytest.raises(kind) as caught:
        open_store(url)
    text = str(caught.value)
    assert SECRET not in text
    assert "\n" not in text
    return text


def at(url: str, user: str, database: str = "") -> str:
    """The same server, for another user or database."""
    host, _, own = url.partition("@")[2].partition("/")
    return f"postgresql://{user}:{SECRET}@{host}/{database or own}"


def test_nobody_is_there() -> None:
    url = f"postgresql://app:{SECRET}@127.0.0.1:{postgres.free_port()}/app"
    assert "cannot be reached (Connection refused): is the server running?" in complaint(url)


def test_wrong_password(url: str, mine: psycopg.Connection) -> None:
    mine.execute("DROP ROLE IF EXISTS locked")
    mine.execute("CREATE ROLE locked LOGIN PASSWORD 'another'")
    mine.commit()
    assert "check user and password" in complaint(at(url, "locked"))


def test_missing_database(url: str) -> None:
    assert '"nowhere" does not exist: create it first' in complaint(at(url, "sprat", "nowhere"))


def test_missing_permission(url: str, mine: psycopg.Connection) -> None:
    mine.execute("DROP ROLE IF EXISTS guest")
    mine.execute("CREATE ROLE guest LOGIN")
    mine.commit()
    assert "permission denied" in complaint(at(url, "guest"))
    assert "permission denied" in complaint(at(url, "guest") + "?schema=of_their_own")


def test_commits_that_are_not_waited_for_are_refused(url: str, mine: psycopg.Connection) -> None:
    mine.execute("DROP ROLE IF EXISTS hasty")
    mine.execute("CREATE ROLE hasty LOGIN SUPERUSER")
    mine.execute("ALTER ROLE hasty SET synchronous_commit = off")
    mine.commit()
    assert "synchronous_commit off" in complaint(at(url, "hasty"))


def test_a_schema_of_another_program(url: str, mine: psycopg.Connection) -> None:
    mine.execute("CREATE SCHEMA IF NOT EXISTS theirs")
    mine.execute("CREATE TABLE IF NOT EXISTS theirs.work_pool (id int)")
    mine.commit()
    assert "belongs to another program" in complaint(f"{url}?schema=theirs", StoreMismatch)


def test_a_store_of_a_newer_sprat(url: str, mine: psycopg.Connection) -> None:
    open_store(f"{url}?schema=newer").close()
    mine.execute("UPDATE newer.meta SET value = 99 WHERE name IN ('version', 'needs')")
    mine.commit()
    try:
        assert "upgrade sprat" in complaint(f"{url}?schema=newer", StoreMismatch)
        mine.execute("UPDATE newer.meta SET value = 1 WHERE name = 'needs'")
        mine.commit()
        open_store(f"{url}?schema=newer").close()  # newer, but made so that this one still fits
    finally:
        mine.execute("DROP SCHEMA newer CASCADE")
        mine.commit()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("schema=Robert'); DROP", "the schema"),
        ("schema=", "the schema"),
        ("pooled=perhaps", "pooled=yes or pooled=no"),
        ("connections=0", "from 1 to 1000"),
        ("connections=many", "from 1 to 1000"),
    ],
)
def test_a_wrong_option_is_one_sentence(url: str, query: str, says: str) -> None:
    assert says in complaint(f"{url}?{query}", InvalidInput)


def test_a_port_that_is_no_number() -> None:
    assert "cannot be read" in complaint("postgresql://host:port/app", InvalidInput)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://app:ge%heim@127.0.0.1:1/app", "%25 for %"),
        ("postgresql://app:ge heim@127.0.0.1:1/app", "special character"),
        ("postgresql://app:ge%heim@127.0.0.1:1/app?nonsense=1", "cannot be read"),
        ("postgresql://127.0.0.1:1/app?nonsense=1", '"nonsense"'),
    ],
)
def test_a_url_that_the_driver_cannot_read_is_one_sentence_without_the_password(
    url: str, says: str
) -> None:
    said = complaint(url, InvalidInput)
    assert says in said
    assert "heim" not in said


def test_a_url_may_leave_out_all_there_is() -> None:
    parsed = address.parse("postgresql://")
    assert (parsed.dsn, parsed.shown) == ("postgresql://?", "postgresql:///")


def test_a_closed_store_says_so(url: str) -> None:
    store = open_store(url)
    store.close()
    with pytest.raises(StoreUnavailable, match="was closed"):
        store.pools()


def test_a_missing_driver_names_the_extra(url: str) -> None:
    code = "import sys; sys.modules['psycopg'] = None; import sprat; sprat.open_store(sys.argv[1])"
    command = [sys.executable, "-c", code, url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "psycopg is not installed: pip install 'sprat[postgres]'" in done.stderr


def test_describe_shows_no_password(url: str) -> None:
    with open_store(at(url, "sprat")) as store:
        told = store.describe()
    assert SECRET not in repr(told)
    assert told["kind"] == "postgresql"
    assert (told["fsync"], told["synchronous_commit"]) == ("on", "on")
    assert told["may_write"] is True


def test_several_stores_share_a_database(url: str, mine: psycopg.Connection) -> None:
    with open_store(url) as one, open_store(f"{url}?schema=second") as other:
        one.pool("papers").push(1)
        assert other.pools() == []
        other.pool("papers").push_many([1, 2])
        assert (one.pool("papers").size(), other.pool("papers").size()) == (1, 2)
    mine.execute("DROP SCHEMA second CASCADE")
    mine.commit()


def test_doctor_finds_nothing_wrong(url: str) -> None:
    command = [sys.executable, "-m", "sprat", "doctor", "--url", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    checks = {line.split()[1] for line in done.stdout.splitlines()}
    assert {"store", "postgresql", "permission", "durability", "clock"} <= checks


def test_doctor_fails_where_a_crash_would_lose_work(server: postgres.Server) -> None:
    with psycopg.connect(server.url(), autocommit=True) as db:
        db.execute("ALTER SYSTEM SET full_page_writes = off")
        db.execute("SELECT pg_reload_conf()")
    command = [sys.executable, "-m", "sprat", "doctor", "--url", server.url()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "full_page_writes is off" in done.stdout
