"""Webhooks: only who has the secret fires a trigger, once a signature, over a real listener."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from worlds import World

from sprat.config.trigger import Trigger
from sprat.core.errors import InvalidInput
from sprat.store.store import Store
from sprat.triggers import listener as listening
from sprat.triggers import registry, webhook
from sprat.triggers.listener import WebhookListener

SECRET = "correct horse battery staple"
NOTE = "cat >> {}/fired; echo >> {}/fired"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", SECRET)


def save_hook(store: Store, place: Path, **about: object) -> None:
    command = ["/bin/sh", "-c", NOTE.format(place, place)]
    values = {"name": "hook", "type": "webhook", "secret_env": "HOOK_SECRET", **about}
    registry.save(store, Trigger(command=command, **values))  # type: ignore[arg-type]


def heard(place: Path) -> list[object]:
    file = place / "fired"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def signed(
    body: bytes, now: float = 1000.0, secret: str = SECRET, name: str = "hook"
) -> dict[str, str]:
    stamp = int(now)
    signature = webhook.sign(secret, name, timestamp=stamp, body=body)
    return {"sprat-timestamp": str(stamp), "SPRAT-SIGNATURE": signature}


def receive(store: Store, body: bytes = b"{}", **changes: object) -> tuple[int, str]:
    given = {
        "method": "POST",
        "path": "/triggers/hook",
        "headers": signed(body),
        "body": body,
        "now": 1000.0,
        **changes,
    }
    answer = webhook.receive(store, **given)  # type: ignore[arg-type]
    return answer.status, str(answer.said.get("error", ""))


def test_the_signature_is_the_hmac_of_timestamp_name_and_body() -> None:
    # printf '1000\nhook\n{"a": 1}' | openssl dgst -sha256 -hmac 'correct horse battery staple'
    said = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", SECRET],
        input=b'1000\nhook\n{"a": 1}',
        capture_output=True,
        check=True,
    ).stdout.decode()
    signature = webhook.sign(SECRET, "hook", timestamp=1000, body=b'{"a": 1}')
    assert signature == f"v2={said.split()[-1]}"


def test_a_request_signed_for_one_trigger_fires_no_other(store: Store, tmp_path: Path) -> None:
    """They share a secret. Names may have dots in them, and a number is JSON."""
    for name in ("hook", "other", "hook.1"):
        save_hook(store, tmp_path, name=name)
    assert receive(store, path="/triggers/other") == (401, "the signature is wrong")
    given = {"body": b"5", "headers": signed(b"1.5")}
    assert receive(store, path="/triggers/hook.1", **given) == (401, "the signature is wrong")
    assert heard(tmp_path) == []
    assert receive(store, path="/triggers/other", headers=signed(b"{}", name="other"))[0] == 200


def test_a_signature_of_version_1_is_refused_with_what_to_do(store: Store, tmp_path: Path) -> None:
    save_hook(store, tmp_path)
    old = "v1=" + hmac.new(SECRET.encode(), b"1000.{}", hashlib.sha256).hexdigest()
    status, why = receive(store, headers={**signed(b"{}"), "SPRAT-SIGNATURE": old})
    assert status == 401
    assert why == (
        "a v1 signature does not cover the trigger's name: "
        "sign timestamp, name and body, each on a line of its own, as v2"
    )
    assert heard(tmp_path) == []


TELLING = """
import json, os, sys

def tell(given):
    words = " ".join(sys.orig_argv) + open("/proc/self/cmdline").read()
    with open(given["file"], "w") as file:
        json.dump({"argv": words, "body": given["body"]}, file)
"""
MACHINE = """
data:
  name: telling
  states:
    start: {type: initial, action: "telling:tell", transitions: [{to: end}],
      input: {file: "{{ input.file }}", body: "{{ input.body }}"}}
    end: {type: final, output: {}}
"""


def test_a_body_reaches_a_machine_and_is_in_no_command_line(
    shared: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user of the machine reads command lines in `ps`. One longer than 128 KiB would not
    even start: escapes make a body of 64 KiB six times as long."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "telling.py").write_text(TELLING)
    (tmp_path / "telling.yml").write_text(MACHINE)
    store = shared.open()
    about = {"machine": "telling.yml", "directory": str(tmp_path)}
    values = {"name": "hook", "type": "webhook", "secret_env": "HOOK_SECRET", **about}
    registry.save(store, Trigger(input={"file": str(tmp_path / "told")}, **values))  # type: ignore[arg-type]
    body = {"card": "TOPSECRET-4111", "more": "\x01" * 10_000}
    assert receive(store, json.dumps(body).encode()) == (200, "")
    told = json.loads((tmp_path / "told").read_text())
    assert told["body"] == body
    assert "sprat.run" in told["argv"]
    assert "TOPSECRET" not in told["argv"]


def test_a_signed_request_fires_and_its_body_is_in_the_input(store: Store, tmp_path: Path) -> None:
    save_hook(store, tmp_path, input={"depth": 2})
    assert receive(store, b'{"repo": "x"}') == (200, "")
    assert heard(tmp_path) == [{"depth": 2, "body": {"repo": "x"}, "event": "webhook"}]


def test_a_replayed_request_is_refused(store: Store, tmp_path: Path) -> None:
    save_hook(store, tmp_path)
    assert receive(store)[0] == 200
    assert receive(store)[0] == 409
    assert receive(store, headers=signed(b"{}", 1001.0))[0] == 200
    assert len(heard(tmp_path)) == 2


def test_a_request_is_only_good_for_a_while(store: Store, tmp_path: Path) -> None:
    save_hook(store, tmp_path)
    for late in (301.0, -301.0):
        status, why = receive(store, headers=signed(b"{}", 1000.0), now=1000.0 + late)
        assert status == 401
        assert "300 seconds off" in why
    assert receive(store, headers=signed(b"{}", 1000.0), now=1300.0)[0] == 200


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"headers": {}}, 401),
        ({"headers": {**signed(b"{}"), "SPRAT-SIGNATURE": "v2=" + "0" * 64}}, 401),
        ({"headers": {**signed(b"{}"), "SPRAT-SIGNATURE": "\u00e9"}}, 401),
        ({"headers": {**signed(b"{}"), "sprat-timestamp": "now"}}, 400),
        ({"headers": {**signed(b"{}"), "sprat-timestamp": "-1000"}}, 400),
        ({"headers": {**signed(b"{}"), "sprat-timestamp": "1001"}}, 401),
        ({"headers": signed(b"{}", secret="guess guess guess")}, 401),
        ({"headers": signed(b"{} ")}, 401),
        ({"path": "/triggers/nobody"}, 401),
        ({"path": "/triggers/"}, 401),
        ({"path": "/triggers/" + "x" * 300}, 401),
        ({"path": "/triggers/%00\n"}, 401),
        ({"path": "/triggers/a/b"}, 404),
        ({"path": "/"}, 404),
        ({"method": "GET"}, 405),
        ({"body": b"x" * 70_000}, 413),
    ],
)
def test_what_is_not_signed_fires_nothing(
    store: Store, tmp_path: Path, changes: dict[str, object], status: int
) -> None:
    save_hook(store, tmp_path)
    answer = receive(store, **changes)
    assert answer[0] == status
    assert answer[1]
    assert heard(tmp_path) == []


def test_a_signed_body_that_is_no_json_is_refused_and_may_be_sent_again(
    store: Store, tmp_path: Path
) -> None:
    save_hook(store, tmp_path)
    assert receive(store, b"{")[0] == 400
    assert receive(store, b"\xff")[0] == 400
    assert receive(store, b"[" * 60_000)[0] == 400
    assert receive(store, b"")[0] == 200


def test_other_triggers_and_missing_secrets_answer_like_wrong_signatures(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.save(store, Trigger(name="hook", type="lambda"))
    assert receive(store) == (401, "the signature is wrong")
    save_hook(store, tmp_path)
    monkeypatch.setenv("HOOK_SECRET", "short")
    assert receive(store, headers=signed(b"{}", secret="short")) == (401, "the signature is wrong")
    monkeypatch.delenv("HOOK_SECRET")
    assert receive(store, headers=signed(b"{}", secret="")) == (401, "the signature is wrong")
    with pytest.raises(InvalidInput, match="HOOK_SECRET, is not set"):
        webhook.secret_of(registry.find(store, "hook"), os.environ)


def test_the_secret_is_nowhere_in_the_store(shared: World, tmp_path: Path) -> None:
    store = shared.open()
    save_hook(store, tmp_path)
    receive(store)
    said = [
        d.body
        for kind in ("trigger", "webhook-seen")
        for d in store.backend.documents(kind, 9, None)
    ]
    assert said
    assert not any(SECRET in body for body in said)


def test_a_failed_command_is_told(store: Store, tmp_path: Path) -> None:
    trigger = Trigger(name="hook", type="webhook", secret_env="HOOK_SECRET", command=["/bin/false"])
    registry.save(store, trigger)
    assert receive(store)[0] == 502


# -- over HTTP ----------------------------------------------------------------------------------


@pytest.fixture
def port(shared: World, tmp_path: Path) -> Iterator[int]:
    store = shared.open()
    save_hook(store, tmp_path)
    with WebhookListener(store, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.port
        server.shutdown()
        thread.join(10)


def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, object]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    response = connection.getresponse()
    said = json.loads(response.read())
    connection.close()
    return response.status, said


def fresh(body: bytes) -> dict[str, str]:
    stamp = int(time.time())
    signature = webhook.sign(SECRET, "hook", timestamp=stamp, body=body)
    return {"Sprat_Timestamp": str(stamp), "Sprat_Signature": signature}


def test_the_listener_answers_and_fires(port: int, tmp_path: Path) -> None:
    assert ask(port, "GET", "/health") == (200, {"status": "ok"})
    status, said = ask(port, "POST", "/triggers/hook", b'{"n": 1}', **fresh(b'{"n": 1}'))
    assert (status, said["ok"]) == (200, True)  # type: ignore[index]
    assert [one["body"] for one in heard(tmp_path)] == [{"n": 1}]  # type: ignore[index]
    assert ask(port, "POST", "/triggers/hook", b"{}")[0] == 401
    assert ask(port, "GET", "/triggers/hook")[0] == 405
    assert ask(port, "GET", "/nothing")[0] == 404


def test_of_many_equal_requests_at_once_one_fires(port: int, tmp_path: Path) -> None:
    headers = fresh(b"{}")
    answers: list[int] = []

    def send() -> None:
        answers.append(ask(port, "POST", "/triggers/hook", b"{}", **headers)[0])

    threads = [threading.Thread(target=send) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == [200] + [409] * 11
    assert len(heard(tmp_path)) == 1


def raw(port: int, text: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        link.sendall(text)
        return link.recv(4096)


def test_a_large_or_unmeasured_body_is_refused_unread(port: int) -> None:
    post = b"POST /triggers/hook HTTP/1.1\r\nHost: x\r\n"
    assert b" 413 " in raw(port, post + b"Content-Length: 99999999\r\n\r\n")
    assert b" 413 " in raw(port, post + b"Content-Length: 999999999999\r\n\r\n")
    assert b" 411 " in raw(port, post + b"Transfer-Encoding: chunked\r\n\r\n")
    assert b" 411 " in raw(port, post + b"Content-Length: -5\r\n\r\n")
    assert b" 501 " in raw(port, b"DELETE /triggers/hook HTTP/1.1\r\nHost: x\r\n\r\n")


def test_who_says_nothing_is_hung_up_on_and_keeps_nobody_waiting(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening._Request, "timeout", 0.5)
    silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(8)]
    assert ask(port, "GET", "/health")[0] == 200
    for link in silent:
        assert link.recv(100) == b""
        link.close()


def test_more_slow_clients_than_there_are_places_keep_no_other_waiting(
    port: int, tmp_path: Path
) -> None:
    slow = [
        socket.create_connection(("127.0.0.1", port), timeout=30)
        for _ in range(2 * listening.MAX_AT_ONCE)
    ]
    for link in slow:
        with contextlib.suppress(OSError):  # the oldest are ended while the others begin
            link.sendall(b"POST /triggers/hook HTTP/1.1\r\nContent-Length: 9\r\n")
    assert ask(port, "GET", "/health")[0] == 200
    assert ask(port, "POST", "/triggers/hook", b"{}", **fresh(b"{}"))[0] == 200
    assert len(heard(tmp_path)) == 1
    for link in slow:
        link.close()


# -- the commands -------------------------------------------------------------------------------


def test_serve_and_sign_are_two_halves(shared: World, tmp_path: Path) -> None:
    save_hook(shared.open(), tmp_path)
    sprat = [sys.executable, "-m", "sprat", "triggers"]
    env = {**os.environ, "SPRAT_URL": shared.url}
    served = subprocess.Popen(
        [*sprat, "serve", "--listen", "127.0.0.1:0", "--json"], env=env, stdout=subprocess.PIPE
    )
    try:
        assert served.stdout is not None
        where = json.loads(served.stdout.readline())["listening"]
        curl = subprocess.run(
            [*sprat, "sign", "hook", "--body", '{"it": "works"}', "--to", where],
            env=env,
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        assert curl.stdout.startswith("curl -X POST -H 'Sprat-Timestamp: ")
        assert SECRET not in curl.stdout
        sent = subprocess.run(
            ["/bin/sh", "-c", curl.stdout.replace("curl", "curl -sS --fail", 1)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert sent.returncode == 0, sent.stderr
        assert [one["body"] for one in heard(tmp_path)] == [{"it": "works"}]  # type: ignore[index]
        served.send_signal(signal.SIGTERM)
        assert served.wait(30) == 0
    finally:
        served.kill()
        served.communicate()


Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("serve", "--listen", "8080"), "it must be HOST:PORT"),
        (("serve", "--listen", "127.0.0.1:99999"), "it must be HOST:PORT"),
        (("serve", "--listen", "192.0.2.1:80"), "cannot listen on 192.0.2.1:80"),
        (("sign", "other"), "is no webhook but a lambda trigger"),
        (("sign", "nobody"), "there is no trigger 'nobody'"),
    ],
)
def test_wrong_words_are_told(
    shared: World, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    save_hook(shared.open(), tmp_path)
    registry.save(shared.open(), Trigger(name="other", type="lambda"))
    done = subprocess.run(
        [sys.executable, "-m", "sprat", "triggers", *arguments],
        env={**os.environ, "SPRAT_URL": shared.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_serve_refuses_to_start_without_its_secrets(shared: World, tmp_path: Path) -> None:
    save_hook(shared.open(), tmp_path)
    env = {k: v for k, v in os.environ.items() if k != "HOOK_SECRET"} | {"SPRAT_URL": shared.url}
    done = subprocess.run(
        [sys.executable, "-m", "sprat", "triggers", "serve", "--listen", "127.0.0.1:0"],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "HOOK_SECRET, is not set" in done.stderr
