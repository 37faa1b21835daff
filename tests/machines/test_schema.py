"""Every broken machine is refused with one sentence that names the line and the column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sprat.core.errors import InvalidInput
from sprat.machines.library import OURS, Library, load, parse

GOOD = """\
spec: flatmachine
data:
  name: small
  states:
    start:
      type: initial
      transitions:
        - to: end
    end:
      type: final
"""


def states(text: str) -> str:
    """A machine with these states, which begin in line 3."""
    return "data:\n  states:\n" + "\n".join(f"    {line}" for line in text.splitlines())


def state(text: str) -> str:
    """A machine with a state `work` of these keys, which begin in line 6, column 7."""
    inner = "\n".join(f"      {line}" for line in text.splitlines())
    ends = "    start: {type: initial, transitions: [{to: work}]}\n    end: {type: final}\n"
    return f"data:\n  states:\n{ends}    work:\n{inner}\n"


GO = "\ntransitions: [{to: end}]"

BROKEN = [
    ("", 1, 1, "the file must be a mapping (key: value), not nothing"),
    ("- a", 1, 1, "the file must be a mapping (key: value), not a list"),
    ("just a text", 1, 1, "must be a mapping (key: value), not 'just a text'"),
    ("a: b: c", 1, 5, "this is not YAML"),
    ("data:\n\tstates: {}", 2, 1, "this is not YAML"),
    ("data: [", 1, 8, "this is not YAML"),
    ("data: {", 1, 8, "this is not YAML"),
    ("data: 'open", 1, 12, "this is not YAML"),
    ("data: \x01", 1, 7, "this is not YAML"),
    ("spec: flatmachine\n---\nspec: x", 2, 1, "this is not YAML"),
    ("data: &a {states: *a}", 1, 7, "anchors (&) and aliases (*) are not supported"),
    ("data: !!python/object:os.system {}", 1, 7, "the tag"),
    ("data: {}\ndata: {}", 2, 1, "'data' is here twice, first in line 1"),
    ("? [a]\n: 1", 1, 3, "a key must be a plain text"),
    ("data:\n  context: " + "[" * 60 + "]" * 60, 2, 61, "this is nested too deeply"),
    ("data: " + "[" * 9000, 1, 56, "this is nested too deeply"),
    ("a: " + "9" * 5000, 1, 4, "is no int we can read"),
    ("spec: flatagent\ndata: {}", 1, 7, "spec must be flatmachine, not 'flatagent'"),
    ("spec: flatmachine", 1, 1, "data is missing"),
    ("dta: {}", 1, 1, "the file has no key 'dta': did you mean data?"),
    ("data: 3", 1, 7, "data must be a mapping (key: value), not 3"),
    ("data:\n  name: x", 1, 1, "data.states is missing"),
    ("data:\n  stats: {}", 2, 3, "data has no key 'stats': did you mean states?"),
    ("data:\n  states: []", 2, 11, "data.states must be a mapping"),
    ("data:\n  states: {}", 2, 3, "data.states has no state"),
    ("data:\n  name: [x]\n  states: {a: {type: initial, transitions: [{to: a}]}}", 2, 9,
     "data.name must be a text, not a list"),
    (states("a:\n  type: final"), 2, 3, "no state is the initial one"),
    (states("a: {type: initial, transitions: [{to: b}]}\nb: {type: initial, transitions: [{to: a}]}"
            ), 4, 5, "a is the initial state already"),
    (states("a: {type: begin}"), 3, 15, "states.a.type must be initial or final, not 'begin'"),
    (states("a: {type: initial}"), 3, 5, "states.a.transitions is missing"),
    (states("a: nothing"), 3, 8, "states.a must be a mapping"),
    (state("type: final\ntransitions: [{to: end}]"), 7, 7, "states.work is final: it has no trans"),
    (state("output: {a: 1}" + GO), 6, 7, "states.work is not final: it has no output"),
    (state("transitions: []"), 6, 20, "states.work.transitions must be a list of"),
    (state("transitions: end"), 6, 20, "states.work.transitions must be a list of"),
    (state("transitions: [end]"), 6, 21, "states.work.transitions must be a mapping"),
    (state("transitions: [{condition: 'true'}]"), 6, 21, "`to` is missing"),
    (state("transitions: [{to: edn}]"), 6, 26, "there is no state 'edn': did you mean end?"),
    (state("transitions: [{to: end, when: 1}]"), 6, 31, "has no key 'when'"),
    (state("transitions: [{to: end, condition: 3}]"), 6, 42, "a condition is an expression, not 3"),
    (state("transitions: [{to: end, condition: 'a >'}]"), 6, 46, "the expression ends too early"),
    (state("transitions: [{to: end, condition: 'a | lenght'}]"), 6, 47,
     "there is no filter 'lenght': did you mean length?"),
    (state("acton: x" + GO), 6, 7, "states.work has no key 'acton': did you mean action?"),
    (state("action: 3" + GO), 6, 15, "states.work.action must be a text, not 3"),
    (state("action: '{{ a }}'" + GO), 6, 15, "states.work.action is a name, not a template"),
    (state("action: a\nmachine: b" + GO), 7, 7, "states.work has action already"),
    (state("foreach: [1]" + GO), 6, 7, "states.work.foreach needs an action, a machine or a la"),
    (state("foreach: 3\naction: a" + GO), 6, 16, "foreach must be a list or a template, not 3"),
    (state("foreach: [1]\nas: context\naction: a" + GO), 7, 11, "must be a name of your own"),
    (state("as: x\naction: a" + GO), 6, 7, "states.work.as is for foreach"),
    (state("key: x\naction: a" + GO), 6, 7, "states.work.key is for foreach"),
    (state("launch_input: {}\naction: a" + GO), 6, 7, "launch_input is for a launch"),
    (state("input: {}\nlaunch: a" + GO), 6, 7, "input is for an action or a machine"),
    (state("action: a\ninput: 3" + GO), 7, 14, "states.work.input must be a mapping"),
    (state("action: a\noutput_to_context: [x]" + GO), 7, 26, "output_to_context must be a mapp"),
    (state("action: a\noutput_to_context: {x: '{{ y }'}" + GO), 7, 36, "} closes nothing"),
    (state("action: a\noutput_to_context:\n  x: \"{{ a. }}\"" + GO), 8, 19, "a name is missing"),
    (state("action: a\ninput: {x: '{% if a %}'}" + GO), 7, 19, "templates have no statements"),
    (state("action: a\ntimeout: soon" + GO), 7, 16, "timeout must be a number of seconds above 0"),
    (state("action: a\ntimeout: 0" + GO), 7, 16, "timeout must be a number of seconds above 0"),
    (state("action: a\ntimeout: true" + GO), 7, 16, "timeout must be a number of seconds"),
    (state("wait: -1" + GO), 6, 13, "wait must be a number of seconds above 0, not -1"),
    (state("action: a\non_error: nowhere" + GO), 7, 17, "there is no state 'nowhere'"),
    (state("action: a\non_error: {ValueError: nowhere}" + GO), 7, 30, "there is no state"),
    (state("action: a\non_error: [end]" + GO), 7, 17, "on_error must be a text, not a list"),
    (GOOD + "  settings: {heartbeat_interval: 0}", 11, 34, "heartbeat_interval must be a number"),
    (GOOD + "  settings: {heartbeat: 3}", 11, 14, "data.settings has no key 'heartbeat'"),
    (GOOD + "  settings: {max_steps: 1.5}", 11, 25, "max_steps must be a whole number above 0"),
    (GOOD + "  settings: {isolation: thread}", 11, 25, "isolation must be process or none"),
    (GOOD + "  settings: {backends: {work: mysql}}", 11, 31, "backends.work must be sqlite or"),
    (GOOD + "  settings: {backends: {work_path: a, registration_path: b}}", 11, 36,
     "registration_path and work_path must be the same"),
    (GOOD + "  hooks: {on_start: 'a:b'}", 11, 11, "hooks has no key 'on_start'"),
    (GOOD + "  hooks: {on_error: 3}", 11, 21, "hooks.on_error must be a text"),
    (GOOD + "  actions: {a: b}", 11, 16, "actions.a must be module:function, not 'b'"),
    (GOOD + "  machines: [a]", 11, 13, "machines must be a mapping"),
    (GOOD + "  context: {a: '{{ __import__ }}'}", 11, 20, "names that begin with _"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "says"), BROKEN, ids=range(len(BROKEN)))
def test_what_is_wrong_is_told_with_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse(text, "broken.yml")
    sentence = str(error.value)
    assert "\n" not in sentence
    assert says in sentence
    found = re.match(r"broken\.yml, line (\d+), column (\d+): ", sentence)
    assert found, sentence
    assert (int(found[1]), int(found[2])) == (line, column), sentence


def test_the_corpus_is_large_enough() -> None:
    assert len(BROKEN) >= 40


def test_yaml_words_that_are_texts_stay_texts() -> None:
    machine = parse(GOOD.replace("start", "on").replace("end", "no"))
    assert list(machine.states) == ["on", "no"]
    assert machine.initial == "on"
    assert machine.states["on"].transitions[0].to == "no"


def test_a_file_is_refused_by_size_and_by_encoding(tmp_path: Path) -> None:
    path = tmp_path / "m.yml"
    path.write_bytes(b"#" * 200_001)
    with pytest.raises(InvalidInput, match="larger than 200,000 bytes"):
        load(str(path))
    path.write_bytes(b"a: 1\nb: \xff")
    with pytest.raises(InvalidInput, match="line 2, column 4: this is not UTF-8"):
        load(str(path))
    with pytest.raises(InvalidInput, match="there is no"):
        load(str(tmp_path / "other.yml"))


def test_a_name_is_a_binding_then_a_file_beside_then_one_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(GOOD.replace("small", "beside"))
    (tmp_path / "b.yml").write_text(GOOD.replace("small", "bound"))
    user = parse(GOOD + "  machines: {c: b.yml}", str(tmp_path / "user.yml"))
    assert Library().get("a", user).name == "beside"
    assert Library().get("c", user).name == "bound"
    assert Library({"a": "b.yml"}, str(tmp_path)).get("a", user).name == "bound"
    assert Library().get("parallelization_checker", user).name == "checker"
    with pytest.raises(InvalidInput, match=r"there is no machine 'zz': no zz.yml in "):
        Library().get("zz", user)


def test_a_file_is_read_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text(GOOD)
    library = Library()
    first = library.read(str(path))
    assert library.read(str(path)) is first
    path.write_text(GOOD.replace("small", "another"))
    assert library.read(str(path)).name == "another"


@pytest.mark.parametrize("path", sorted(Path(OURS).iterdir()), ids=lambda p: p.stem)
def test_our_own_machines_are_in_order(path: Path) -> None:
    assert load(str(path)).name == path.stem
