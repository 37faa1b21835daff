"""The completion scripts: shells accept them, and they offer what there is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sprat.cli.main import COMMANDS
from sprat.store.store import Store

Run = Callable[..., "object"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_accepted_and_name_every_command(shell: str, sprat: Run) -> None:
    answer = sprat("completion", shell)
    assert (answer.code, answer.err) == (0, "")
    assert set(COMMANDS) <= set(answer.out.replace('"', " ").replace("(", " ").split())
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=answer.out, text=True, check=True)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "offers"),
    [
        (["sprat", "wo"], {"work", "workers"}),
        (["sprat", "jobs", ""], {"list", "show", "requeue", "cancel", "purge"}),
        (["sprat", "jobs", "list", "--st"], {"--status"}),
        (["sprat", "push", "numbers", "--pri"], {"--priority"}),
        (["sprat", "work", "numbers", "--s"], {"--serve"}),  # --seat is for programs
        (["sprat", "completion", ""], {"bash", "zsh", "fish", "--help", "-h"}),
    ],
)
def test_bash_offers_what_fits(typed: list[str], offers: set[str], sprat: Run) -> None:
    words = " ".join(f"'{word}'" for word in typed)
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _sprat; echo ${{COMPREPLY[@]}}"
    script = sprat("completion", "bash").out + ask
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offers


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize("command", [["status"], ["push"], ["jobs", "list"]])
def test_pools_are_offered_when_the_store_is_a_file(
    command: list[str], sprat: Run, store: Store, place: Path
) -> None:
    store.pool("night").push({})
    (place / "sprat").write_text(f'#!/bin/sh\nexec {sys.executable} -m sprat "$@"\n')
    (place / "sprat").chmod(0o755)
    words = " ".join(["sprat", *command, "n"])
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(command) + 1}; _sprat; echo ${{COMPREPLY[@]}}"
    script = sprat("completion", "bash").out + ask
    shell = ["bash", "-c", f"PATH={place}:$PATH; {script}"]
    done = subprocess.run(shell, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["night", "numbers"]


def test_no_pools_are_offered_and_nothing_is_said_or_made_without_a_store(
    sprat: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in ("sqlite:///none.db", "sqlite:///jobs.py", "postgresql://127.0.0.1:1/x", "what:"):
        monkeypatch.setenv("SPRAT_URL", url)
        answer = sprat("completion", "pools")
        assert (answer.code, answer.out.strip(), answer.err) == (0, "", "")
    assert not (place / "none.db").exists()
