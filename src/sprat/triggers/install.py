"""Installing cron triggers where something keeps time: one entry for each, that ticks for it, and
one that runs when the machine has started: a pass over every pool, for what a crash left behind.

An entry only ticks: whether the trigger is due is decided in the store, so the same entries may be
installed on many machines. The store's URL may hold a password, so it is in a file that only its
owner can read. Entries carry a mark of their store; installing again replaces them, and only them.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence

from sprat.config import schedule
from sprat.config.trigger import CRON, Trigger
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.core.runtime import runtime
from sprat.store.store import Store
from sprat.triggers import registry

EVERY_MINUTE = "* * * * *"
ALL = "all"  # the name of the entry that ticks for all triggers
REBOOT = "@reboot"  # the schedule of the entry that runs when the machine has started
AT_BOOT = "at:boot"  # and its name, which no trigger can have
STORE_WAIT_SECONDS = 300  # a machine's network, or its database, starts later than its cron
WAIT_SECONDS = 30  # the store's clock may be so far behind that of the machine
DAYS = 730  # over which two time zones are compared


class Entry(Record):
    """One line or unit: what it is called, when it runs, and what."""

    name: str
    schedule: str  # five fields, or REBOOT
    timezone: str
    command: tuple[str, ...]

    def local_schedule(self) -> str:
        """For those who know only the machine's own time zone: every minute, if that is another.
        The tick decides anyway."""
        if self.is_at_boot or is_local(self.timezone):
            return self.schedule
        return EVERY_MINUTE

    @property
    def is_at_boot(self) -> bool:
        return self.schedule == REBOOT


class Installed(Record):
    """What was installed or removed, where, and what is left for a person to do."""

    entries: tuple[str, ...] = ()
    where: str = ""
    files: tuple[str, ...] = ()
    to_do: tuple[str, ...] = ()


def on_a_machine(store: Store, *, every_minute: bool = False) -> list[Entry]:
    """What there is to install on a machine that uses this store. Without any trigger it is the
    recovery at boot alone."""
    if every_minute:
        return [_every_minute(), at_boot()]
    return [*entries_of(registry.every(store)), at_boot()]


def at_boot() -> Entry:
    """The recovery when the machine has started."""
    check = (sys.executable, "-m", "sprat", "check", "--all", "--wait", str(STORE_WAIT_SECONDS))
    return Entry(name=AT_BOOT, schedule=REBOOT, timezone=schedule.UTC, command=check)


def entries(store: Store, *, every_minute: bool = False) -> list[Entry]:
    """What there is to install in a cluster that uses this store, or InvalidInput."""
    if every_minute:
        return [_every_minute()]
    found = entries_of(registry.every(store))
    if not found:
        raise InvalidInput(
            "there is no cron trigger to install: apply one, or use --every-minute, "
            "which wakes pools and fires what may come"
        )
    return found


def entries_of(triggers: Sequence[Trigger]) -> list[Entry]:
    """One for each of these that has a schedule."""
    return [_entry(trigger) for trigger in triggers if trigger.type == CRON]


def mark(url: str) -> str:
    """A short name for a store that tells nothing about it."""
    return hashlib.sha256(url.encode()).hexdigest()[:8]


def environment_file(url: str) -> tuple[str, str]:
    """The file that entries read, and its text: for a shell and for systemd."""
    values = {"SPRAT_URL": url, "PATH": os.environ.get("PATH", os.defpath)}
    text = "".join(f"{name}={_quoted(value)}\n" for name, value in values.items())
    return os.path.join(config_home(), "sprat", f"{mark(url)}.env"), text


def config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")


def write(files: Mapping[str, str]) -> None:
    """Write files that only their owner can read, each whole or not at all."""
    for path, text in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        draft = f"{path}.new"
        opened = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(opened, "w") as file:
            file.write(text)
        os.replace(draft, path)


def delete(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def run(command: Sequence[str], text: str | None = None) -> tuple[int, str, str]:
    """Run a program of the system; its exit code (127: there is none) and what it said."""
    import subprocess

    try:
        done = subprocess.run(
            list(command), input=text, capture_output=True, text=True, timeout=60, check=False
        )
    except OSError as error:
        return 127, "", f"{command[0]}: {error.strerror}"
    except subprocess.TimeoutExpired:
        return 124, "", f"{command[0]} did not answer"
    return done.returncode, done.stdout, done.stderr


def is_local(timezone: str) -> bool:
    """Whether clocks in this zone show what this machine's show, today and for two years."""
    from datetime import datetime

    zone = schedule.tzinfo(timezone)
    now = runtime.time()
    for day in range(DAYS):
        moment = now + 86400 * day
        offset = datetime.fromtimestamp(moment, zone).utcoffset()
        if offset is None or offset.total_seconds() != time.localtime(moment).tm_gmtoff:
            return False
    return True


def _every_minute() -> Entry:
    return Entry(name=ALL, schedule=EVERY_MINUTE, timezone=schedule.UTC, command=_tick())


def _entry(trigger: Trigger) -> Entry:
    return Entry(
        name=trigger.name,
        schedule=schedule.fields(trigger.schedule),
        timezone=trigger.timezone,
        command=(*_tick(), trigger.name, "--wait", str(WAIT_SECONDS)),
    )


def _tick() -> tuple[str, ...]:
    return (sys.executable, "-m", "sprat", "triggers", "tick")


def _quoted(value: str) -> str:
    """As both a shell and systemd read it; a shell's way of quoting a quote is not systemd's."""
    if "'" in value or not value.isprintable():
        raise InvalidInput("a URL or PATH with a quote in it cannot be written for a scheduler")
    return f"'{value}'"


def shell(entry: Entry, url: str) -> str:
    """The entry as one line for a shell."""
    path, _ = environment_file(url)
    return f"set -a; . {shlex.quote(path)}; exec {shlex.join(entry.command)}"
