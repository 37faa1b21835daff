"""Cron triggers as lines of the user's crontab, each with a mark at its end."""

from __future__ import annotations

from collections.abc import Sequence

from sprat.core.errors import SpratError
from sprat.triggers import install
from sprat.triggers.install import Entry, Installed

MARK = "# sprat"


def lines(entries: Sequence[Entry], url: str) -> list[str]:
    """One line each. To cron a percent sign is the end of a line."""
    return [
        f"{entry.local_schedule()} "
        + f"{install.shell(entry, url)} {MARK} {install.mark(url)} {entry.name}".replace("%", r"\%")
        for entry in entries
    ]


def merged(crontab: str, ours: Sequence[str], url: str) -> str:
    """A crontab with our lines in place of those it had of this store; all others stay."""
    mark = f" {MARK} {install.mark(url)} "
    kept = [line for line in crontab.splitlines() if mark not in line]
    return "".join(f"{line}\n" for line in [*kept, *ours])


def add(entries: Sequence[Entry], url: str) -> Installed:
    path, text = install.environment_file(url)
    install.write({path: text})
    _change(lines(entries, url), url)
    names = tuple(entry.name for entry in entries)
    return Installed(entries=names, where="your crontab", files=(path,))


def remove(url: str) -> Installed:
    path, _ = install.environment_file(url)
    gone = _change([], url)
    install.delete([path])
    return Installed(entries=tuple(gone), where="your crontab", files=(path,))


def _change(ours: Sequence[str], url: str) -> list[str]:
    """Replace our lines; the names of those that were there."""
    before = _read()
    after = merged(before, ours, url)
    if after != before:
        code, _, said = install.run(["crontab", "-"], after)
        if code:
            raise SpratError(f"crontab could not be written: {' '.join(said.split())}")
    mark = f" {MARK} {install.mark(url)} "
    return [line.rpartition(mark)[2] for line in before.splitlines() if mark in line]


def _read() -> str:
    code, text, said = install.run(["crontab", "-l"])
    if code == 127:
        raise SpratError("there is no cron here: install it, or use --systemd or --print")
    if code and "no crontab" not in said:
        raise SpratError(f"crontab could not be read: {' '.join(said.split())}")
    return text if not code else ""
