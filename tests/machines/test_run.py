"""What a machine does from state to state: actions, machines, foreach, waits, errors, limits."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from rooms import run, write

from sprat import open_store
from sprat.core.errors import InvalidInput, SpratError
from sprat.machines.stepping import Hooks
from sprat.store.store import Store

ENDS = """
  end:
    type: final
    output: {context: "{{ context }}"}
"""


@pytest.fixture
def memory() -> Store:
    return open_store("memory://")


def one_state(keys: str) -> str:
    inner = "\n".join(f"    {line}" for line in keys.splitlines())
    start = "  start: {type: initial, transitions: [{to: work}]}"
    return f"states:\n{start}\n  work:\n{inner}\n    transitions: [{{to: end}}]{ENDS}"


def context_after(store: Store, keys: str, given: Any = None, **more: Any) -> Any:
    context = run(store, one_state(keys), given, **more)["context"]
    context.pop("execution_id")
    return context


def test_values_keep_their_types_from_input_to_output(memory: Store) -> None:
    text = """
    context: {n: "{{ input.n }}", m: "{{ input.m | default(10) }}", none: "{{ null }}", x: 3}
    states:
      start: {type: initial, transitions: [{to: end}]}
      end:
        type: final
        output: {n: "{{ context.n + 1 }}", m: "{{ context.m }}",
          none: "{{ context.none }}", x: "{{ context.x }}"}
    """
    assert run(memory, text, {"n": 1}) == {"n": 2, "m": 10, "none": None, "x": 3}


def test_the_first_open_transition_is_taken(memory: Store) -> None:
    text = """
    states:
      start:
        type: initial
        transitions:
          - {condition: "input.n > 10", to: big}
          - {condition: "input.n > 5", to: middle}
          - {to: small}
      big: {type: final, output: big}
      middle: {type: final, output: middle}
      small: {type: final, output: small}
    """
    assert [run(memory, text, {"n": n}) for n in (11, 10, 5)] == ["big", "middle", "small"]


def test_no_open_transition_is_an_error(memory: Store) -> None:
    text = """
    states:
      start: {type: initial, transitions: [{condition: "false", to: start}]}
    """
    with pytest.raises(SpratError, match="no transition of state start is open"):
        run(memory, text)


def test_an_action_is_called_with_its_input_or_with_the_context(memory: Store) -> None:
    seen = []

    def note(given: Any) -> Any:
        seen.append(given)
        return {"n": 7}

    actions = {"note": note}
    keys = 'action: note\ninput: {a: "{{ 1 + 1 }}"}\noutput_to_context: {n: "{{ output.n }}"}'
    assert context_after(memory, keys, actions=actions) == {"n": 7}
    context_after(memory, "action: note", actions=actions)
    assert seen[0] == {"a": 2}
    assert list(seen[1]) == ["execution_id"]


def test_an_action_that_returns_the_context_has_changed_it(memory: Store) -> None:
    def change(context: dict[str, Any]) -> dict[str, Any]:
        context["added"] = True
        return context

    assert context_after(memory, "action: change", actions={"change": change}) == {"added": True}


def test_an_action_may_be_a_coroutine(memory: Store) -> None:
    async def slow(_: Any) -> Any:
        return 5

    keys = 'action: slow\noutput_to_context: {n: "{{ output }}"}'
    assert context_after(memory, keys, actions={"slow": slow}) == {"n": 5}


def test_an_action_may_be_a_function_of_a_module_beside_the_machine(
    memory: Store, tmp_path: Path
) -> None:
    (tmp_path / "beside_the_machine.py").write_text("def double(given): return given['n'] * 2")
    keys = (
        'action: beside_the_machine:double\ninput: {n: 4}\noutput_to_context: {n: "{{ output }}"}'
    )
    assert context_after(memory, keys, place=tmp_path) == {"n": 8}
    text = one_state(keys.replace("beside_the_machine:double", "double"))
    bound = "actions: {double: 'beside_the_machine:double'}\n" + text
    assert run(memory, bound, place=tmp_path)["context"]["n"] == 8


def test_an_unknown_action_is_named_with_what_was_meant(memory: Store) -> None:
    with pytest.raises(InvalidInput, match="no action 'claim_jobs': did you mean claim_job"):
        run(memory, one_state("action: claim_jobs"))


def test_what_an_action_returns_has_to_be_json(memory: Store) -> None:
    with pytest.raises(InvalidInput, match="the output is not JSON"):
        run(memory, one_state("action: odd"), actions={"odd": lambda _: {"x": b""}})


def test_foreach_collects_a_list_or_a_mapping_by_key(memory: Store) -> None:
    actions = {"double": lambda context: {"twice": 2 * context["n"]}}
    keys = (
        'foreach: "{{ range(3) }}"\nas: n\naction: double\noutput_to_context: {all: "{{ output }}"}'
    )
    assert context_after(memory, keys, actions=actions) == {
        "all": [{"twice": 0}, {"twice": 2}, {"twice": 4}]
    }
    by_key = context_after(memory, keys + '\nkey: "n{{ n }}"', actions=actions)
    assert by_key["all"] == {"n0": {"twice": 0}, "n1": {"twice": 2}, "n2": {"twice": 4}}
    none = context_after(memory, keys.replace("range(3)", "[]"), actions=actions)
    assert none == {"all": []}
    with pytest.raises(SpratError, match=r"work.foreach is no list"):
        run(memory, one_state(keys.replace("range(3)", "3")), actions=actions)


DOUBLER = """
    name: doubler
    context: {n: "{{ input.n }}"}
    states:
      start: {type: initial, transitions: [{to: end}]}
      end: {type: final, output: {twice: "{{ context.n * 2 }}"}}
"""


def test_a_machine_runs_another_and_gets_its_output(memory: Store, tmp_path: Path) -> None:
    write(tmp_path, "doubler", DOUBLER)
    keys = 'machine: doubler\ninput: {n: 4}\noutput_to_context: {n: "{{ output.twice }}"}'
    assert context_after(memory, keys, place=tmp_path) == {"n": 8}
    kept = "{{ output | map(attribute='twice') | list }}"
    each = 'foreach: [1, 2]\nas: n\nmachine: doubler\ninput: {n: "{{ n }}"}'
    each += f'\noutput_to_context: {{n: "{kept}"}}'
    assert context_after(memory, each, place=tmp_path) == {"n": [2, 4]}
    with pytest.raises(InvalidInput, match="there is no machine 'nobody'"):
        run(memory, one_state("machine: nobody"), place=tmp_path)


def test_a_machine_that_runs_itself_for_ever_is_stopped(memory: Store, tmp_path: Path) -> None:
    text = "name: loop\n" + one_state("machine: loop")
    write(tmp_path, "loop", text)
    with pytest.raises(SpratError, match="20 levels deep"):
        run(memory, text, place=tmp_path)


def test_max_steps_ends_a_machine_that_goes_round(memory: Store) -> None:
    text = """
    settings: {max_steps: 50}
    states:
      start: {type: initial, transitions: [{to: start}]}
    """
    with pytest.raises(SpratError, match="has passed through 50 states: max_steps"):
        run(memory, text)


# -- errors -------------------------------------------------------------------------------------


def fails(_: Any) -> Any:
    raise KeyError("which")


@pytest.mark.parametrize(
    ("on_error", "state"),
    [("a", "a"), ("{KeyError: b, default: a}", "b"), ("{LookupError: b}", "b"),
     ("{ValueError: b, default: a}", "a"), ("{Exception: b}", "b")],
)  # fmt: skip
def test_an_error_goes_where_on_error_says(memory: Store, on_error: str, state: str) -> None:
    text = f"""
    states:
      start: {{type: initial, action: fails, on_error: {on_error}, transitions: [{{to: start}}]}}
      a: {{type: final, output: {{state: a, kind: "{{{{ context.error_type }}}}"}}}}
      b: {{type: final, output: {{state: b, kind: "{{{{ context.last_error_type }}}}"}}}}
    """
    found = run(memory, text, actions={"fails": fails})
    assert found == {"state": state, "kind": "KeyError"}


def test_an_error_that_nobody_catches_ends_the_machine(memory: Store) -> None:
    with pytest.raises(KeyError, match="which"):
        run(memory, one_state("action: fails"), actions={"fails": fails})
    with pytest.raises(KeyError):
        run(
            memory,
            one_state("action: fails\non_error: {ValueError: end}"),
            actions={"fails": fails},
        )


def test_a_template_that_cannot_be_filled_is_an_error_like_any_other(memory: Store) -> None:
    keys = 'action: get\ninput: {x: "{{ context.a.b }}"}\non_error: end'
    found = context_after(memory, keys, actions={"get": lambda given: given})
    assert found["error"] == "{{ context.a.b }}: context.a is not defined"
    assert found["error_type"] == "TemplateError"


# -- limits -------------------------------------------------------------------------------------


def spin(_: Any) -> Any:
    Path(os.environ["SPIN_PID"]).write_text(str(os.getpid()))
    total = 0
    while True:
        total += 1


def sleep_for_ever(_: Any) -> Any:
    Path(os.environ["SPIN_PID"]).write_text(str(os.getpid()))
    time.sleep(600)


@pytest.mark.parametrize("action", [spin, sleep_for_ever])
def test_a_timeout_really_stops_the_work(
    memory: Store, action: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPIN_PID", str(tmp_path / "pid"))
    keys = "action: long\ntimeout: 0.5\non_error: {TimeoutError: end}"
    found = context_after(memory, keys, actions={"long": action})
    assert found["error"] == "work was stopped after 0.5 seconds"
    assert found["error_type"] == "StateTimeout"
    pid = int((tmp_path / "pid").read_text())
    assert pid != os.getpid()
    assert not os.path.exists(f"/proc/{pid}")


def test_a_timeout_of_the_outer_state_is_not_caught_inside(memory: Store, tmp_path: Path) -> None:
    write(tmp_path, "inner", "name: inner\n" + one_state("wait: 60\non_error: end"))
    keys = "machine: inner\ntimeout: 0.3\non_error: end"
    assert context_after(memory, keys, place=tmp_path)["error_type"] == "StateTimeout"


def test_a_wait_takes_as_long_as_it_says(memory: Store) -> None:
    began = time.monotonic()
    run(memory, one_state('wait: "{{ 0.2 + 0.1 }}"'))
    assert 0.3 <= time.monotonic() - began < 10


# -- hooks --------------------------------------------------------------------------------------


class Noting(Hooks):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_machine_start(self, context: dict[str, Any]) -> dict[str, Any]:
        self.seen.append("start")
        return {**context, "begun": True}

    def on_state_enter(self, state: str, context: dict[str, Any]) -> None:
        self.seen.append(f"enter {state}")

    def on_state_exit(self, state: str, context: dict[str, Any], output: Any) -> Any:
        self.seen.append(f"exit {state}")

    def on_transition(self, old: str, new: str, context: dict[str, Any]) -> None:
        self.seen.append(f"{old} -> {new}")

    def on_action(self, action: str, context: dict[str, Any]) -> Any:
        self.seen.append(f"action {action}")
        return {"n": 3} if action == "mine" else context

    def on_error(self, state: str, error: Exception, context: dict[str, Any]) -> str | None:
        self.seen.append(f"error {error}")
        return None

    async def on_machine_end(self, context: dict[str, Any], output: Any) -> Any:
        self.seen.append("end")
        return {**output, "ended": True}


def test_hooks_see_everything_in_order_and_may_change_it(memory: Store) -> None:
    hooks = Noting()
    keys = 'action: mine\noutput_to_context: {n: "{{ output.n }}"}'
    found = run(memory, one_state(keys), hooks=hooks)
    assert found["ended"] is True
    assert (found["context"]["n"], found["context"]["begun"]) == (3, True)
    assert hooks.seen == [
        "start", "enter start", "exit start", "start -> work", "enter work", "action mine",
        "exit work", "work -> end", "enter end", "exit end", "end",
    ]  # fmt: skip


def test_on_action_sees_built_in_actions_too_and_leaves_them_alone(memory: Store) -> None:
    hooks = Noting()
    keys = "action: get_pool_state\ninput: {pool_id: p}"
    keys += '\noutput_to_context: {n: "{{ output.queue_depth }}"}'
    memory.pool("p").push(1)
    assert run(memory, one_state(keys), hooks=hooks)["context"]["n"] == 1
    assert "action get_pool_state" in hooks.seen


def test_on_error_may_choose_the_next_state(memory: Store) -> None:
    hooks = {"on_error": lambda state, error, context: "end"}
    found = run(memory, one_state("action: fails"), hooks=hooks, actions={"fails": fails})
    assert found["context"]["error_type"] == "KeyError"
    with pytest.raises(SpratError, match="there is no such state"):
        run(memory, one_state("wait: 0.01"), hooks={"on_transition": lambda *_: "nowhere"})


HOOKS = """\
class Own:
    def __init__(self, n=1):
        self.n = n
    def on_machine_end(self, context, output):
        return {"n": self.n}

def at_the_end(context, output):
    return {"n": "function"}
"""


@pytest.mark.parametrize(
    ("hooks", "n"),
    [("some_hooks:Own", 1), ("{name: 'some_hooks:Own', args: {n: 5}}", 5), ("mine", 1),
     ("{on_machine_end: 'some_hooks:at_the_end'}", "function")],
)  # fmt: skip
def test_hooks_are_given_by_path_or_by_a_registered_name(
    memory: Store, tmp_path: Path, hooks: str, n: Any
) -> None:
    (tmp_path / "some_hooks.py").write_text(HOOKS)
    namespace: dict[str, Any] = {}
    exec(HOOKS, namespace)
    text = f"hooks: {hooks}\n" + one_state("wait: 0.01")
    found = run(memory, text, place=tmp_path, registered={"mine": namespace["Own"]})
    assert found == {"n": n}
