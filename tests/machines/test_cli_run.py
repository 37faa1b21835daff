"""`sprat run` and `sprat machine` as people call them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sprat
from sprat.cli import main
from sprat.run import as_command

MACHINE = """\
data:
  name: waits
  settings: {backends: {work: sqlite, work_path: ./data/fleet.db}}
  states:
    start: {type: initial, action: "slow:work", transitions: [{to: end}]}
    end: {type: final, output: {input: "{{ input }}"}}
"""
SLOW = """\
import os, time

def work(_):
    if os.path.exists("go"):
        return
    open("began", "w").close()
    time.sleep(60)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPRAT_URL", raising=False)
    (tmp_path / "waits.yml").write_text(MACHINE)
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def test_a_run_prints_its_output_and_keeps_itself_where_its_backends_say(place: Path) -> None:
    (place / "go").touch()
    ran = subprocess.run(
        [sys.executable, "-m", "sprat", "run", "waits", "--input", '{"a": 1}'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(ran.stdout) == {"input": {"a": 1}}
    assert (place / "data" / "fleet.db").exists()
    assert not (place / "sprat.db").exists()


def test_the_input_may_come_from_standard_input(place: Path) -> None:
    (place / "go").touch()
    command = [sys.executable, "-m", "sprat.run", "--machine", "waits", "--input", "-"]
    ran = subprocess.run(command, input='{"a": "ü"}', capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == {"input": {"a": "ü"}}
    for wrong, says in (("{", "--input is not JSON"), ("[1]", "--input must be a JSON object")):
        ran = subprocess.run(command, input=wrong, capture_output=True, text=True, check=False)
        assert ran.returncode == 2
        assert says in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_an_action_at_once_and_the_run_can_be_resumed(
    place: Path, number: int
) -> None:
    command = [sys.executable, "-m", "sprat.run", "--machine=waits.yml", "--execution-id", "x"]
    process = subprocess.Popen([*command, "--input", '{"a": 2}'], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (place / "began").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "sprat: waits was stopped; --execution-id x --resume goes on\n"
    (place / "go").touch()
    resumed = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=True)
    assert json.loads(resumed.stdout) == {"input": {"a": 2}}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nobody.yml"], "there is no machine 'nobody.yml': no nobody.yml in "),
        (["nobody"], "there is no machine 'nobody': no nobody.yml in "),
        (["waits", "--bind", "x=gone.yml"], "--bind x=gone.yml: there is no file gone.yml"),
        (["waits", "--input", "{"], "--input is not JSON"),
        (["waits", "--input", "[1]"], "--input must be a JSON object"),
        (["waits", "--bind", "x"], "--bind takes NAME=FILE, not 'x'"),
        (["waits", "--resume"], "--resume needs the --execution-id"),
        (["broken.yml"], "line 2, column 3: data has no key 'sates': did you mean states?"),
        ([], "the following arguments are required: MACHINE"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_said_in_one_sentence(
    place: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "broken.yml").write_text("data:\n  sates: {}\n")
    assert main.main(["run", *arguments]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1


def test_a_machine_that_fails_says_why_and_exits_1(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "waits.yml").write_text(MACHINE.replace("slow:work", "json:loads"))
    assert main.main(["run", "waits"]) == 1
    assert "sprat: waits failed: TypeError: the JSON object must be" in capsys.readouterr().err


def test_checking_runs_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["run", "waits", "--check"]) == 0
    assert main.main(["machine", "validate", "waits.yml", "worker"]) == 0
    assert "waits.yml: waits, 2 states, in order" in capsys.readouterr().out
    assert not (place / "data").exists()


def test_a_machine_is_drawn(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["machine", "graph", "reaper"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["stateDiagram-v2", "    [*] --> s0"]
    assert "    s1 --> s3 : context.stale | length == 0" in lines
    assert "    s2 : reap (each action reap_worker)" in lines
    assert lines[-1] == "    s3 --> [*]"


def test_python_runs_a_machine_by_its_file(place: Path) -> None:
    (place / "go").touch()
    with sprat.open_store("memory://") as store:
        assert sprat.run_machine(store, "waits.yml", {"a": 3}) == {"input": {"a": 3}}
        worked = []
        actions = {"slow:work": worked.append}
        sprat.run_machine(store, "waits", actions=actions)
    assert len(worked) == 1


def test_the_module_takes_the_machine_as_an_option() -> None:
    assert as_command(["--machine", "x", "--input", "{}"]) == ["run", "x", "--input", "{}"]
    assert as_command(["--input", "{}", "--machine=x"]) == ["run", "x", "--input", "{}"]
