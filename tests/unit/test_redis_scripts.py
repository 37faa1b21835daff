"""What is done to the Lua files before they are sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from sprat.core import leases, model, retry_rules
from sprat.store.redis import scripts

FILES = sorted((Path(scripts.__file__).parent / "lua").glob("*.lua"))
# What judges or renews leases. The commonest exchange and the pushes do without.
MARKED = {
    *("register", "heartbeat", "keep_alive", "reap", "record", "request_check", "begin_check"),
    *("update_status", "touch", "exchange_marked"),
}


def constants(text: str) -> list[tuple[str, str]]:
    """All that a file calls by a name in capitals, with what it stands for."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("local ") and line[6:8].isupper():
            names, _, values = line.removeprefix("local ").partition(" = ")
            found += zip(names.split(", "), values.split(" --")[0].split(", "), strict=False)
    return found


def test_places_in_rows_are_sent_as_numbers() -> None:
    text = scripts.script("exchange").text
    assert "item[SEQ]" not in text
    assert "item[STATUS] = 'claimed'" not in text
    assert "item[16] = 'claimed'" in text


def test_only_numbers_take_the_place_of_names() -> None:
    text = scripts.numbered("local ONE, TWO = 1, 2 -- so\nlocal WORDS = {a = 1}\nx[TWO], y[WORDS]")
    assert text.endswith("x[2], y[WORDS]")


def test_a_name_stands_for_one_number_in_all_files() -> None:
    meanings: dict[str, set[str]] = {}
    for file in FILES:
        for name, value in constants(file.read_text(encoding="utf-8")):
            meanings.setdefault(name, set()).add(value)
    assert meanings["SEQ"] == {"1"}
    assert {name for name, values in meanings.items() if len(values) > 1} == set()


def test_rules_in_lua_have_the_numbers_of_those_in_python() -> None:
    found = {name: value for file in FILES for name, value in constants(file.read_text("utf-8"))}
    wanted = {
        "UNANNOUNCED": retry_rules.UNANNOUNCED,
        "GIVE_BACKS": retry_rules.GIVE_BACKS,
        "MAX_TRANSIENT": model.MAX_TRANSIENT,
        "OUTAGE_PART": leases.OUTAGE_PART,
        "QUIET_PART": leases.QUIET_PART,
        "MOST_RENEWALS": leases.MOST_RENEWALS,
        "TOUCH": leases.TOUCH_SECONDS * 1e6,
    }
    assert {name: float(found[name]) for name in wanted} == wanted


@pytest.mark.parametrize("name", scripts.PARTS)
def test_only_some_scripts_look_at_the_mark(name: str) -> None:
    marked = "marks" in scripts.PARTS[name]
    assert marked == ("'mark', 'run', 'shortest'" in scripts.script(name).text)
    assert marked == (name in MARKED)


@pytest.mark.parametrize("name", scripts.PARTS)
def test_a_script_has_each_part_once_and_no_name_of_a_place(name: str) -> None:
    assert [part for part in scripts.PARTS[name] if scripts.PARTS[name].count(part) > 1] == []
    assert not any(f"[{place}]" in scripts.script(name).text for place in ("POOL", "W_STATUS"))
