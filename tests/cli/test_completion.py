"""The completion scripts: shells accept them, and they offer what there is."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest

from sprat.cli import COMMANDS

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
        (["sprat", "completion", ""], {"bash", "zsh", "fish", "--help", "-h"}),
    ],
)
def test_bash_offers_what_fits(typed: list[str], offers: set[str], sprat: Run) -> None:
    words = " ".join(f"'{word}'" for word in typed)
    ask = f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _sprat; echo ${{COMPREPLY[@]}}"
    script = sprat("completion", "bash").out + ask
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offers
