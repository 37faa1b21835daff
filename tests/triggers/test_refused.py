"""A pass over a pool without a handler is refused: no launch, no process, no failure recorded."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from sprat import open_store, run_machine
from sprat.cli import main
from sprat.config.trigger import Trigger
from sprat.core.errors import InvalidInput
from sprat.launchers.process import launcher
from sprat.store.store import Store
from sprat.triggers import events, firing, registry, webhook
from sprat.triggers.tick import tick

WHY = "pool papers has no handler and no command: `sprat apply` gives it one"


@pytest.fixture(autouse=True)
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """The processes that were started: none, in every test."""
    found: list[object] = []
    monkeypatch.setattr(launcher, "run_apart", lambda *about: found.append(about))
    yield found
    assert found == []


@pytest.fixture
def without_handler(tmp_path: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/fleet.db")
    store.pool("papers").push_many([{}] * 3)
    yield store
    seen = store.pool("papers").observe()
    assert (len(seen.workers), seen.launch_failures) == (0, 0)


def checking(**about: object) -> Trigger:
    values = {"name": "check", "type": "cron", "schedule": "* * * * *", "pool": "papers", **about}
    return Trigger(**values)  # type: ignore[arg-type]


def test_a_pass_is_refused_and_names_the_handler(without_handler: Store) -> None:
    for machine in (None, "parallelization_checker"):
        fired = firing.fire(without_handler, checking(machine=machine))
        assert (fired.ok, fired.refused, fired.said) == (False, True, WHY)


def test_a_tick_goes_on_with_other_triggers(without_handler: Store, tmp_path: Path) -> None:
    store = without_handler
    registry.save(store, checking())
    registry.save(store, checking(name="note", pool=None, command=["touch", f"{tmp_path}/ran"]))
    for name in ("check", "note"):
        registry.mark(store, name, registry.now(store) - 120)
    said = {fired.trigger: fired.said for fired in tick(store).fired}
    assert said == {"check": WHY, "note": "done"}
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["subprocess", "in_loop"])
def test_an_event_logs_it_once_and_goes_on_with_other_triggers(
    without_handler: Store, tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    store, ran = without_handler, tmp_path / "ran"
    event = {"type": kind, "schedule": None, "on": ("work_added",)}
    note = {**event, "type": "in_loop", "command": ["touch", str(ran)]}
    registry.save(store, checking(name=f"a_{kind}", **event))
    registry.save(store, checking(name="b_note", **note))
    registry.link(store)
    with caplog.at_level(logging.WARNING, "sprat"):
        for _ in range(3):
            store.pool("papers").push({})
        events.finish(store)  # waits for what runs in this process
    assert ran.exists()
    assert [WHY in line for line in caplog.messages] == [True]


def test_a_pool_that_gets_its_handler_is_started_at_once(
    without_handler: Store, started: list[object]
) -> None:
    """A refused pass leaves no mark that one is on its way."""
    store = without_handler
    store.pool("papers").configure(start_on_push=True)
    store.pool("papers").push({})
    assert started == []
    store.pool("papers").configure(command=["true"])
    assert events.work_added(store, "papers")
    started.clear()


def test_a_webhook_answers_422(without_handler: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "correct horse battery staple")
    hook = checking(type="webhook", schedule=None, secret_env="SECRET")
    registry.save(without_handler, hook)
    secret = "correct horse battery staple"
    signature = webhook.sign(secret, "check", timestamp=1000, body=b"")
    headers = {webhook.TIMESTAMP: "1000", webhook.SIGNATURE: signature}
    answer = webhook.receive(
        without_handler,
        method="POST",
        path="/triggers/check",
        headers=headers,
        body=b"",
        now=1000.0,
    )
    assert (answer.status, answer.said["said"]) == (422, WHY)


@pytest.mark.parametrize("name", ["parallelization_checker", "spawning.yml"])
def test_a_machine_that_starts_the_pools_own_workers_is_refused(
    without_handler: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    spawn = "{type: initial, action: spawn_workers, transitions: [{to: end}]}"
    (tmp_path / "spawning.yml").write_text(
        "data:\n  context: {workers_to_spawn: 2}\n"
        f"  states:\n    start: {spawn}\n    end: {{type: final}}\n"
    )
    with pytest.raises(InvalidInput, match="pool papers has no handler"):
        run_machine(without_handler, name, {"pool_id": "papers"})


def test_the_command_line_reports_it(
    without_handler: Store,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SPRAT_URL", without_handler.url)
    registry.save(without_handler, checking())
    registry.save(without_handler, checking(name="fine", pool=None))
    assert main.main(["triggers", "fire", "check"]) == 2
    assert capsys.readouterr().err == f"sprat: trigger check: {WHY}\n"
    assert main.main(["triggers", "list"]) == 0
    assert f"trigger check cannot run: {WHY}\n" in capsys.readouterr().err
    main.main(["triggers", "list", "--json"])
    assert f'"problem": "{WHY}"' in capsys.readouterr().out
    main.main(["doctor"])
    assert f"warn  triggers    check cannot run: {WHY}\n" in capsys.readouterr().out
