"""Cron triggers as systemd timers of the user, each with its service."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from sprat.config import schedule
from sprat.triggers import install
from sprat.triggers.install import Entry, Installed

WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")

BOOT_SECONDS = 10  # after the machine has started

# Without KillMode=process systemd ends the workers that a tick has started as soon as it is over.
SERVICE = """\
[Unit]
Description=sprat trigger {name}

[Service]
Type=oneshot
EnvironmentFile={file}
ExecStart={command}
KillMode=process
"""
TIMER = """\
[Unit]
Description=sprat trigger {name}

[Timer]
{times}
AccuracySec=1s
Persistent=true

[Install]
WantedBy=timers.target
"""


def calendars(cron: str, timezone: str) -> list[str]:
    """A schedule as systemd writes it: two lines where either day counts."""
    spelled = schedule.times(cron)
    clock = f"{_list(spelled.hours)}:{_list(spelled.minutes)}:00"
    if spelled.any_day:
        pairs = [(None, spelled.days), (spelled.weekdays, None)]
    else:
        pairs = [(spelled.weekdays, spelled.days)]
    return [
        f"{_weekdays(weekdays)}*-{_list(spelled.months)}-{_list(days)} {clock} {timezone}"
        for weekdays, days in pairs
    ]


def files(entries: Sequence[Entry], url: str) -> dict[str, str]:
    """The text of every unit by its path."""
    path, _ = install.environment_file(url)
    made = {}
    for entry in entries:
        unit = os.path.join(_directory(), _unit(entry.name, url))
        command = " ".join(_escaped(word) for word in entry.command)
        made[f"{unit}.service"] = SERVICE.format(
            name=entry.name, file=path.replace("%", "%%"), command=command
        )
        made[f"{unit}.timer"] = TIMER.format(name=entry.name, times=_times(entry))
    return made


def _times(entry: Entry) -> str:
    if entry.is_at_boot:
        return f"OnBootSec={BOOT_SECONDS}"
    return "\n".join(f"OnCalendar={c}" for c in calendars(entry.schedule, entry.timezone))


def add(entries: Sequence[Entry], url: str) -> Installed:
    path, text = install.environment_file(url)
    made = files(entries, url)
    _retire([old for old in _present(url) if old not in made])
    install.write({path: text, **made})
    to_do = [["daemon-reload"], ["enable", "--now", *_timers(made)]]
    return Installed(
        entries=tuple(entry.name for entry in entries),
        where=_directory(),
        files=(path, *made),
        to_do=tuple(said for step in to_do if (said := _control(step))),
    )


def remove(url: str) -> Installed:
    path, _ = install.environment_file(url)
    present = _present(url)
    to_do = _retire(present)
    install.delete([path])
    names = tuple(timer.removesuffix(".timer").split("-", 2)[2] for timer in _timers(present))
    return Installed(entries=names, where=_directory(), files=tuple(present), to_do=to_do)


def _retire(paths: Sequence[str]) -> tuple[str, ...]:
    """Stop timers and delete their files; what is left for a person to do."""
    if not paths:
        return ()
    disabled = _control(["disable", "--now", *_timers(paths)])
    install.delete(paths)
    return tuple(filter(None, (disabled, _control(["daemon-reload"]))))


def _control(arguments: Sequence[str]) -> str:
    """Tell systemd; what a person has to do where it does not listen."""
    command = ["systemctl", "--user", *arguments]
    code, _, _ = install.run(command)
    return " ".join(command) if code else ""


def _directory() -> str:
    return os.path.join(install.config_home(), "systemd", "user")


def _unit(name: str, url: str) -> str:
    return f"sprat-{install.mark(url)}-{name}"


def _present(url: str) -> list[str]:
    pattern = os.path.join(glob.escape(_directory()), _unit("*", url))
    return sorted(p for p in glob.glob(pattern) if p.endswith((".timer", ".service")))


def _timers(paths: Sequence[str] | dict[str, str]) -> list[str]:
    return [os.path.basename(path) for path in paths if path.endswith(".timer")]


def _list(values: Sequence[int] | None) -> str:
    return "*" if values is None else ",".join(str(value) for value in values)


def _weekdays(values: Sequence[int] | None) -> str:
    return "" if values is None else ",".join(WEEKDAYS[day] for day in values) + " "


def _escaped(word: str) -> str:
    safe = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{safe}"'
