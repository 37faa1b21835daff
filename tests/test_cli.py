"""The command line as a user meets it: a process, its output and its exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import sprat
from sprat.cli import main as cli

SPRAT = [sys.executable, "-m", "sprat"]


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    settings: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, **options}
    return subprocess.run([*SPRAT, *arguments], check=False, **settings)


def test_help_names_every_command() -> None:
    answer = run("--help")
    assert answer.returncode == 0
    assert answer.stderr == ""
    for name, (_, what) in cli.COMMANDS.items():
        assert name in answer.stdout
        assert what in answer.stdout


def test_help_groups_the_commands_and_lists_the_exit_codes() -> None:
    text = run("--help").stdout
    headings = [line for line in text.splitlines() if line in cli.GROUPS.values()]
    assert headings == ["Use", "Look", "Operate", "Deploy", "Machines"]
    assert "130 interrupted" in text
    assert max(map(len, text.splitlines())) <= 80


def test_version_is_the_package_version() -> None:
    assert run("--version").stdout == f"sprat {sprat.__version__}\n"


def test_no_command_is_a_usage_error_with_help() -> None:
    answer = run()
    assert answer.returncode == 2
    assert answer.stderr.startswith("usage: sprat")


@pytest.mark.parametrize("command", [[], ["--help"], ["--version"]])
def test_help_and_version_import_no_store(command: list[str]) -> None:
    code = "import sys; from sprat.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "sprat.cli.main" in loaded
    assert not {
        "argparse",
        "difflib",
        "json",
        "apsw",
        "sprat.store.store",
        "sprat.core.model",
    } & set(loaded)


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("dmeo", "did you mean demo?"),
        ("--hepl", "did you mean --help?"),
        ("xyzzy", "`sprat --help` lists"),
        ("retry", "did you mean `sprat jobs retry`?"),
        ("purge", "did you mean `sprat jobs purge`?"),
        ("drian", "did you mean `sprat workers drain`?"),
        ("--urls", "did you mean --url?"),
        ("--url", "no command behind --url"),
        ("--json", "no command behind --json"),
    ],
)
def test_unknown_command_is_one_helpful_sentence(typed: str, advice: str) -> None:
    answer = run(typed)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert advice in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_closed_pipe_is_silent() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        answer = run("--help", capture_output=False, stdout=write, stderr=subprocess.PIPE)
    finally:
        os.close(write)
    assert (answer.returncode, answer.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        answer = run("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert (answer.returncode, answer.stderr) == (1, "sprat: No space left on device\n")


def test_closed_output_is_no_error() -> None:
    answer = subprocess.run(["sh", "-c", '"$0" -m sprat --help >&-', sys.executable], check=False)
    assert answer.returncode == 0


class _Raises:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def main(self, arguments: list[str]) -> int:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (sprat.InvalidInput("no such\npool"), 2, "sprat: no such pool\n"),
        (sprat.KeyConflict("taken"), 2, "sprat: taken\n"),
        (sprat.StoreUnavailable("busy"), 1, "sprat: busy\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_become_a_sentence_and_a_code(
    error: BaseException,
    code: int,
    said: str,
    *,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "demo", ("raises", ""))
    monkeypatch.setitem(sys.modules, "raises", _Raises(error))
    assert cli.main(["demo"]) == code
    assert capsys.readouterr().err == said


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cli.COMMANDS, "demo", ("raises", ""))
    monkeypatch.setitem(sys.modules, "raises", _Raises(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["demo"])


def test_demo_proves_that_nothing_is_lost(tmp_path: Path) -> None:
    answer = run("demo", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert (answer.returncode, answer.stderr) == (0, "")
    for promise in (
        "kill -9",
        "its job is free again",
        "starts again, attempt 2",
        "kept with its error",
    ):
        assert promise in answer.stdout
    assert answer.stdout.count("  yes  ") == 6
    assert "  NO   " not in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 80
    assert "\033" not in answer.stdout
    assert list(tmp_path.iterdir()) == []


def test_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [*SPRAT, "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    with demo:
        assert demo.stdout
        pid = next(int(line.rpartition(" ")[2]) for line in demo.stdout if "appeared" in line)
        demo.send_signal(signal.SIGINT)
        _, complaint = demo.communicate(timeout=30)
    assert (demo.returncode, complaint) == (130, "")
    assert list(tmp_path.iterdir()) == []
    assert _is_gone(pid)


def test_demo_takes_no_arguments() -> None:
    answer = run("demo", "--fast")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert run("demo", "--help").stdout.startswith("usage: sprat demo")


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
