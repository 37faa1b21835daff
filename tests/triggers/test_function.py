"""The function for somebody's cloud: every shape of event, inside the time that is left."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from worlds import World

import sprat.triggers.events
from sprat.config.trigger import Trigger
from sprat.core.errors import InvalidInput, SpratError
from sprat.fleet import checker
from sprat.store.store import Store
from sprat.triggers import registry, webhook

SECRET = "a secret of sixteen letters"


class Context:
    """As the cloud gives it: how long the call may still take."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(1000 * (self.end - time.monotonic()))


@pytest.fixture
def cloud(shared: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Store:
    """A store that the function's environment names, with triggers in it."""
    monkeypatch.setenv("SPRAT_URL", shared.url)
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    store = shared.open()
    store.pool("papers").configure(start_on_push=False)
    note = ["/bin/sh", "-c", f"cat >> {tmp_path}/fired; echo >> {tmp_path}/fired"]
    registry.save(store, Trigger(name="note", type="lambda", command=note))
    registry.save(store, Trigger(name="bad", type="lambda", command=["/bin/false"]))
    registry.save(
        store, Trigger(name="hook", type="webhook", secret_env="HOOK_SECRET", command=note)
    )
    registry.save(store, Trigger(name="minutely", type="cron", schedule="* * * * *", command=note))
    return store


def fired(place: Path) -> list[dict[str, Any]]:
    file = place / "fired"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def call(event: object, seconds: float = 60.0) -> dict[str, Any]:
    return sprat.triggers.handler(event, Context(seconds))


def test_a_plain_event_names_a_trigger(cloud: Store, tmp_path: Path) -> None:
    said = call({"trigger": "note"})
    assert (said["ok"], said["event"]) == (True, "lambda")
    assert fired(tmp_path) == [{"event": "lambda"}]


def test_a_plain_event_names_a_pool_for_a_pass(
    cloud: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    launched: list[int] = []
    monkeypatch.setattr(checker, "launch", lambda s, p, c, ids, *_: launched.append(len(ids)))
    pool = cloud.pool("papers")
    pool.configure(command=["cat"], max_workers=3, start_on_push=False)
    pool.push_many([{}] * 9)
    assert call({"pool": "papers"})["ok"] is True
    assert launched == [3]


def test_a_schedule_is_a_tick(cloud: Store, shared: World, tmp_path: Path) -> None:
    event = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}, "id": "x"}
    shared.advance(60)
    assert [one["trigger"] for one in call(event)["fired"]] == ["minutely"]
    assert call(event)["fired"] == []
    shared.advance(60)
    assert [one["trigger"] for one in call({})["fired"]] == ["minutely"]


def test_a_schedule_may_name_its_trigger(cloud: Store, tmp_path: Path) -> None:
    event = {"source": "aws.events", "detail-type": "x", "detail": {"trigger": "note"}}
    assert call(event)["trigger"] == "note"
    assert len(fired(tmp_path)) == 1


def message(number: int, body: object) -> dict[str, object]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"messageId": f"m{number}", "body": text, "eventSource": "aws:sqs"}


def test_messages_that_failed_are_reported_and_equal_ones_are_done_once(
    cloud: Store, tmp_path: Path
) -> None:
    bodies = [{"trigger": "note"}, {"trigger": "note"}, {"trigger": "bad"}, "no json", [1]]
    bodies += [{"trigger": "nobody"}, {"trigger": 3}]
    said = call({"Records": [message(n, body) for n, body in enumerate(bodies)]})
    assert said == {"batchItemFailures": [{"itemIdentifier": f"m{n}"} for n in range(2, 7)]}
    assert len(fired(tmp_path)) == 1


def request(body: bytes, version: int, stamp: int) -> dict[str, Any]:
    headers = {
        "sprat-timestamp": str(stamp),
        "sprat-signature": webhook.sign(SECRET, "hook", timestamp=stamp, body=body),
    }
    text = {"body": base64.b64encode(body).decode(), "isBase64Encoded": True, "headers": headers}
    if version == 2:
        http = {"method": "POST", "path": "/prod/triggers/hook"}
        return {
            "requestContext": {"http": http, "stage": "prod"},
            "rawPath": "/prod/triggers/hook",
            **text,
        }
    return {
        "requestContext": {"stage": "prod"},
        "httpMethod": "POST",
        "path": "/triggers/hook",
    } | text


@pytest.mark.parametrize("version", [1, 2])
def test_a_request_is_a_webhook(cloud: Store, tmp_path: Path, version: int) -> None:
    event = request(b'{"n": 1}', version, int(time.time()))
    said = call(event)
    assert said["statusCode"] == 200
    assert json.loads(said["body"])["ok"] is True
    assert [one["body"] for one in fired(tmp_path)] == [{"n": 1}]
    assert call(event)["statusCode"] == 409
    assert call(event | {"body": "!"})["statusCode"] == 401
    assert call(event | {"headers": None})["statusCode"] == 401


def test_what_runs_inside_ends_before_the_functions_time(cloud: Store) -> None:
    slow = Trigger(name="slow", type="lambda", command=["/bin/sleep", "60"])
    registry.save(cloud, slow)
    began = time.monotonic()
    with pytest.raises(SpratError, match="stopped after"):
        call({"trigger": "slow"}, seconds=3.0)
    assert time.monotonic() - began < 20


def test_a_pass_that_hangs_is_given_up_in_time(
    cloud: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.pool("papers").configure(command=["true"])
    release = threading.Event()
    monkeypatch.setattr(checker, "check", lambda *_, **__: release.wait(60))
    began = time.monotonic()
    with pytest.raises(SpratError, match="not over after"):
        call({"pool": "papers"}, seconds=2.5)
    assert time.monotonic() - began < 20
    release.set()


def test_a_pass_that_fails_says_why(cloud: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SpratError("no room")

    cloud.pool("papers").configure(command=["true"])
    monkeypatch.setattr(checker, "check", fail)
    with pytest.raises(SpratError, match="no room"):
        call({"pool": "papers"})


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (None, "an event is a mapping"),
        ([], "an event is a mapping"),
        ("x", "an event is a mapping"),
        ({"trigger": 3}, "trigger must be a name"),
        ({"pool": []}, "pool must be a name"),
        ({"trigger": "no"}, "there is no trigger 'no'"),
        ({"pool": "papres"}, "there is no pool 'papres': did you mean papers?"),
        ({"pol": "papers"}, "did you mean pool?"),
    ],
)
def test_what_means_nothing_is_refused(cloud: Store, event: object, why: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(why)):
        call(event)


def test_a_sprat_yml_names_the_store(
    cloud: Store, shared: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPRAT_URL")
    monkeypatch.chdir(tmp_path)
    Path("sprat.yml").write_text(f"store: {shared.url}\n")
    assert sprat.triggers.handler({"trigger": "note"})["ok"]


def test_the_store_has_to_be_named(
    cloud: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPRAT_URL")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="SPRAT_URL"):
        call({})


def as_command(text: str, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sprat.triggers"],
        input=text,
        env={**os.environ, "SPRAT_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_same_as_a_plain_command(cloud: Store, shared: World, tmp_path: Path) -> None:
    bad = as_command("{", shared.url)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("sprat: the event is not JSON: ")
    done = as_command('{"trigger": "note"}', shared.url)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
    assert len(fired(tmp_path)) == 1
    wrong = as_command("{", shared.url)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    some = as_command(json.dumps({"Records": [message(1, "x")]}), shared.url)
    assert some.returncode == 1
