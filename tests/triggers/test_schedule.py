"""Schedules: what cron's five fields mean, also on the two days a year when clocks change."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from sprat.config import schedule
from sprat.core.errors import InvalidInput

BERLIN = "Europe/Berlin"


def at(text: str, zone: str = "UTC", fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold).timestamp()


def said(moment: float | None, zone: str = "UTC") -> str:
    assert moment is not None
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M")


@pytest.mark.parametrize(
    ("written", "last", "next_"),
    [
        ("*/5 * * * *", "2026-11-16 10:35", "2026-11-16 10:40"),
        ("0 * * * *", "2026-11-16 10:00", "2026-11-16 11:00"),
        ("@hourly", "2026-11-16 10:00", "2026-11-16 11:00"),
        ("@daily", "2026-11-16 00:00", "2026-11-17 00:00"),
        ("@weekly", "2026-11-15 00:00", "2026-11-22 00:00"),
        ("@monthly", "2026-11-01 00:00", "2026-12-01 00:00"),
        ("@yearly", "2026-01-01 00:00", "2027-01-01 00:00"),
        ("30 9-17/2 * * mon-fri", "2026-11-16 09:30", "2026-11-16 11:30"),
        ("0 0 * jan,jul *", "2026-07-31 00:00", "2027-01-01 00:00"),
        ("0 0 29 2 *", "2024-02-29 00:00", "2028-02-29 00:00"),
        ("0 12 13 * FRI", "2026-11-13 12:00", "2026-11-20 12:00"),  # the 13th, or a Friday
        ("0 12 * * 7", "2026-11-15 12:00", "2026-11-22 12:00"),
    ],
)
def test_a_schedule_was_due_and_will_be(written: str, last: str, next_: str) -> None:
    now = at("2026-11-16 10:37:21")  # a Monday
    assert said(schedule.latest(written, "UTC", now)) == last
    assert said(schedule.following(written, "UTC", now)) == next_


def test_the_moment_itself_is_due() -> None:
    noon = at("2026-11-16 12:00")
    assert schedule.latest("0 12 * * *", "UTC", noon) == noon
    assert schedule.latest("0 12 * * *", "UTC", noon + 0.9) == noon
    assert schedule.latest("0 12 * * *", "UTC", noon - 0.1) == noon - 86400


def test_a_zone_is_the_triggers_own() -> None:
    now = at("2026-07-01 12:00")
    assert said(schedule.following("0 9 * * *", BERLIN, now)) == "2026-07-02 07:00"
    assert said(schedule.following("0 9 * * *", "America/New_York", now)) == "2026-07-01 13:00"


def test_a_time_that_is_skipped_in_spring_is_due_once_right_after() -> None:
    before, after = at("2026-03-29 01:59", BERLIN), at("2026-03-29 04:00", BERLIN)
    due = schedule.following("30 2 * * *", BERLIN, before)
    assert said(due, BERLIN) == "2026-03-29 03:00"
    assert schedule.latest("30 2 * * *", BERLIN, after) == due
    assert said(schedule.following("30 2 * * *", BERLIN, after), BERLIN) == "2026-03-30 02:30"


def test_a_time_that_comes_twice_in_autumn_is_due_once() -> None:
    first = at("2026-10-25 02:30", BERLIN)
    again = at("2026-10-25 02:30", BERLIN, fold=1)
    assert again == first + 3600
    for now in (first, first + 1, again - 1, again, again + 60):
        assert schedule.latest("30 2 * * *", BERLIN, now) == first
        assert said(schedule.following("30 2 * * *", BERLIN, now), BERLIN) == "2026-10-26 02:30"


def test_every_hour_is_every_hour_whatever_the_clock_shows() -> None:
    for day in ("2026-03-29", "2026-10-25"):
        moment = at(f"{day} 00:00", BERLIN)
        for _ in range(5):
            due = schedule.following("0 * * * *", BERLIN, moment)
            assert due == moment + 3600
            moment = due


@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("written", ["*/5 * * * *", "30 2 * * *", "30 1 * * *", "15 */2 * * *"])
def test_looking_back_and_looking_forward_agree(zone: str, written: str) -> None:
    rng = random.Random(f"{zone} {written}")
    for _ in range(40):
        now = datetime(2026, rng.choice((3, 4, 10, 11)), 1, tzinfo=UTC)
        now += timedelta(minutes=rng.randrange(31 * 24 * 60), seconds=rng.random() * 60)
        last = schedule.latest(written, zone, now.timestamp())
        assert last is not None
        assert last <= now.timestamp()
        following = schedule.following(written, zone, last)
        assert following is not None
        assert following > now.timestamp()
        assert following == schedule.following(written, zone, now.timestamp())


@pytest.mark.parametrize(
    "written",
    [
        *("", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *"),
        *("* * * 13 *", "* * * * 8", "*/0 * * * *", "5-1 * * * *", "1,,2 * * * *", "a * * * *"),
        *(
            "0 0 31 2 *",
            "0 0 L * *",
            "0 0 * * 5#2",
            "0 0 * * FRIL",
            "@never",
            "@reboot",
            "-1 * * * *",
        ),
        *(None, 5, ["* * * * *"], "\uff10 * * * *"),
    ],
)
def test_what_is_no_schedule_is_refused_in_one_sentence(written: object) -> None:
    with pytest.raises(InvalidInput, match="schedule") as refused:
        schedule.fields(written)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", None, "../etc/passwd", "/etc/localtime"])
def test_an_unknown_zone_is_refused(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"time ?zone"):
        schedule.zone(name)


def test_a_schedule_is_spelled_out_for_other_notations() -> None:
    spelled = schedule.times("*/30 9 13 * 5,7")
    assert (spelled.minutes, spelled.hours, spelled.days) == ((0, 30), (9,), (13,))
    assert (spelled.months, spelled.weekdays, spelled.any_day) == (None, (0, 5), True)
    assert schedule.times("* * * * *").weekdays is None
