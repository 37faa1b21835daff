"""Cron triggers as launchd agents of the user, for macOS."""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Sequence

from sprat.config import schedule
from sprat.triggers import install
from sprat.triggers.install import Entry, Installed

MOST_INTERVALS = 500  # a schedule that needs more is looked at every minute


def intervals(cron: str) -> list[dict[str, int]]:
    """A schedule as launchd writes it: a mapping for each combination, what is left out is any."""
    spelled = schedule.times(cron)
    days, weekdays = ("Day", spelled.days), ("Weekday", spelled.weekdays)
    always = [("Minute", spelled.minutes), ("Hour", spelled.hours), ("Month", spelled.months)]
    either = [[days], [weekdays]] if spelled.any_day else [[days, weekdays]]
    found = [one for some in either for one in _product([*always, *some])]
    return found if len(found) <= MOST_INTERVALS else [{}]


def files(entries: Sequence[Entry], url: str) -> dict[str, str]:
    """The text of every property list by its path."""
    import plistlib

    made = {}
    for entry in entries:
        label = _label(entry.name, url)
        about = {
            "Label": label,
            "ProgramArguments": ["/bin/sh", "-c", install.shell(entry, url)],
            **_start(entry),
        }
        path = os.path.join(_directory(), f"{label}.plist")
        made[path] = plistlib.dumps(about, sort_keys=False).decode()
    return made


def _start(entry: Entry) -> dict[str, object]:
    if entry.is_at_boot:
        return {"RunAtLoad": True}
    return {"StartCalendarInterval": intervals(entry.local_schedule())}


def add(entries: Sequence[Entry], url: str) -> Installed:
    path, text = install.environment_file(url)
    made = files(entries, url)
    for old in _present(url):
        _control(["bootout", _domain(), old])  # one that was not loaded says so: no matter
    install.delete([old for old in _present(url) if old not in made])
    install.write({path: text, **made})
    to_do = [_control(["bootstrap", _domain(), new]) for new in made]
    return Installed(
        entries=tuple(entry.name for entry in entries),
        where=_directory(),
        files=(path, *made),
        to_do=tuple(filter(None, to_do)),
    )


def remove(url: str) -> Installed:
    path, _ = install.environment_file(url)
    present = _present(url)
    to_do = [_control(["bootout", _domain(), old]) for old in present]
    install.delete([*present, path])
    prefix = _label("", url)
    names = [os.path.basename(old).removesuffix(".plist").removeprefix(prefix) for old in present]
    return Installed(
        entries=tuple(names),
        where=_directory(),
        files=tuple(present),
        to_do=tuple(filter(None, to_do)),
    )


def _product(named: Sequence[tuple[str, tuple[int, ...] | None]]) -> list[dict[str, int]]:
    given = [(name, values) for name, values in named if values is not None]
    names = [name for name, _ in given]
    combined = itertools.product(*(values for _, values in given))
    return [dict(zip(names, one, strict=True)) for one in combined]


def _control(arguments: Sequence[str]) -> str:
    """Tell launchd; what a person has to do where it does not listen."""
    command = ["launchctl", *arguments]
    code, _, _ = install.run(command)
    return " ".join(command) if code else ""


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _directory() -> str:
    return os.path.expanduser("~/Library/LaunchAgents")


def _label(name: str, url: str) -> str:
    return f"sprat.{install.mark(url)}.{name}"


def _present(url: str) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(_directory()), _label("*.plist", url))))
