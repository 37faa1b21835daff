"""Text of jobs, results, errors and servers cannot write to the terminal: no command prints a
control, C1 or bidirectional character that it did not choose itself."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sprat.core import model
from sprat.core.jsontext import printable
from sprat.store.backend import PROTOCOL
from sprat.store.store import Store

HOSTILE = "\x1b]0;owned\x07\x1b[2J\rsprat: job 1 done \x7f\x9b31m\u202e\u2066\U000e0041"
JOBS = """
def refuse(payload):
    raise ValueError("cannot read " + payload["name"])

def repeat(payload):
    return payload["name"]
"""
LOOKS = [
    ("jobs", "list", "numbers"),
    ("jobs", "list", "numbers", "--json"),
    ("status",),
    ("status", "--json"),
    ("explain", "numbers"),
    ("explain", "numbers", "--json"),
    ("watch", "numbers", "--timeout", "0"),
    ("workers", "list", "--all"),
    ("workers", "list", "--all", "--json"),
    ("doctor",),
    ("check", "numbers", "--dry-run"),
]


def is_clean(text: str) -> bool:
    return all(c.isprintable() or c in "\n\t" for c in text)


@pytest.fixture
def hostile_server() -> Iterator[str]:
    """The URL of a server that refuses every request with a hostile message."""
    body = json.dumps({"error": "invalid_input", "message": HOSTILE}).encode()
    head = (
        f"HTTP/1.1 422 X\r\nsprat-protocol: {PROTOCOL}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(1 << 16)
                connection.sendall(head.encode() + body)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def test_a_worker_prints_errors_without_control_characters(
    process: Callable[..., object], place: Path, store: Store
) -> None:
    (place / "jobs.py").write_text(JOBS)
    store.pool("numbers").configure(handler="jobs:refuse")
    item_id = store.pool("numbers").push({"name": HOSTILE}, max_retries=1)
    answer = process("work", "numbers", "--max-jobs", "1")
    assert is_clean(answer.err), ascii(answer.err)
    assert f"{item_id} attempt 1/1 failed: ValueError: cannot read \\u001b]0;owned" in answer.err
    for arguments in (*LOOKS, ("jobs", "show", item_id), ("jobs", "show", item_id, "--json")):
        answer = process(*arguments)
        assert is_clean(answer.out + answer.err), (arguments, ascii(answer.out + answer.err))


def test_json_is_the_same_value_in_printable_characters(
    process: Callable[..., object], place: Path, store: Store
) -> None:
    (place / "jobs.py").write_text(JOBS)
    store.pool("numbers").configure(handler="jobs:repeat")
    name = HOSTILE + "ünïcode 中"
    item_id = store.pool("numbers").push({"name": name})
    process("work", "numbers", "--max-jobs", "1")
    answer = process("jobs", "show", item_id, "--json")
    assert is_clean(answer.out)
    assert "ünïcode 中" in answer.out
    assert answer.data["result"] == name


def test_what_a_server_says_is_printed_without_control_characters(
    process: Callable[..., object], hostile_server: str
) -> None:
    for command in ("status", "jobs list numbers", "push numbers 1", "work numbers", "pause p"):
        answer = process(*command.split(), "--url", hostile_server)
        assert answer.code == 2, answer
        assert is_clean(answer.out + answer.err), ascii(answer.err)
        assert "\\u001b[2J" in answer.err


def test_reasons_from_the_store_are_printed_without_control_characters(
    process: Callable[..., object], store: Store
) -> None:
    pool = store.pool("numbers")
    decision = {"policy": "p", "direction": "hold", "current": 0, "desired": 0}
    assert pool.record(
        model.Decision(pool="numbers", reason=HOSTILE, launch=0, max_workers=1, **decision),
        version=pool.observe().version,
    )
    store.workers.register(
        model.WorkerRegistration(worker_id="w-1", pool_id="numbers", metadata={"place": HOSTILE})
    )
    for arguments in (*LOOKS, ("workers", "show", "w-1"), ("workers", "show", "w-1", "--json")):
        answer = process(*arguments)
        assert is_clean(answer.out + answer.err), (arguments, ascii(answer.out + answer.err))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 中 text", "plain ünï 中 text"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2J\r\x7f\x9b", "\\u001b[2J\\u000d\\u007f\\u009b"),
        ("\u202e\u2028\udc80", "\\u202e\\u2028\\udc80"),
        ("\U000e0041", "\\udb40\\udc41"),
    ],
)
def test_what_cannot_be_shown_is_written_as_json_writes_it(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert json.loads(f'"{printable(json.dumps(text, ensure_ascii=False)[1:-1])}"') == text


def test_the_function_as_a_command_prints_errors_without_control_characters(
    place: Path, hostile_server: str
) -> None:
    command = [sys.executable, "-m", "sprat.triggers"]
    done = subprocess.run(
        command,
        input='{"trigger": "check"}',
        env={**os.environ, "SPRAT_URL": hostile_server},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert is_clean(done.stdout + done.stderr), ascii(done.stderr)
    assert "\\u001b[2J" in done.stdout + done.stderr
