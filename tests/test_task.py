"""Tasks: functions that push themselves, their results, and inline mode for users' own tests."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sprat
from sprat.config.settings import FIELDS
from sprat.core import model
from sprat.store.store import Store
from sprat.tasks import default_store, results
from sprat.tasks import source as task_source
from sprat.tasks import task as tasks
from sprat.worker import handlers, processor

HERE = Path(__file__).parent


@sprat.task(pool="sums", start_on_push=False, max_retries=2)
def add(a: int, b: int = 1, *, sign: int = 1) -> int:
    """Adds."""
    return sign * (a + b)


@sprat.task(start_on_push=False)
async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n + 1


@sprat.task
def many(*args: int, **named: int) -> list[int]:
    return [*args, *named.values()]


@sprat.task
def flaky(succeeds_at: int) -> int:
    attempt = sprat.current_job().attempt
    if attempt < succeeds_at:
        raise ValueError(f"attempt {attempt} fails")
    return attempt


@sprat.task
def count_down(n: int) -> int:
    if n:
        count_down.push(n - 1)
    return n


@sprat.task
def total(n: int) -> int:
    return sum(sprat.result(item_id) for item_id in add.push_many((i, 0) for i in range(n)))


@pytest.fixture
def memory() -> Store:
    return sprat.open_store("memory://")


def work(store: Store, task: tasks.Task[..., Any]) -> None:
    """What a worker does, in short."""
    pool = task.pool(store)
    me = store.workers.register(model.WorkerRegistration(worker_id="w1", pool_id=pool.name))
    call = processor.load(pool.state().settings)
    while item := pool.claim(me):
        from sprat.worker.job import Job

        outcome = processor.attempt(call, Job(pool, item))
        if outcome.ok:
            pool.complete(item, None if outcome.result is None else eval(outcome.result))
        else:
            pool.fail(item, outcome.error)


# -- the decorator ------------------------------------------------------------------------------


def test_a_task_is_called_like_its_function() -> None:
    assert add(2, b=3, sign=-1) == -5
    assert asyncio.run(later(1)) == 2
    with pytest.raises(TypeError):
        add()  # type: ignore[call-arg]  # that is the point


def test_a_task_keeps_its_name_doc_and_signature() -> None:
    assert (add.__name__, add.__doc__, add.__module__) == ("add", "Adds.", __name__)
    assert list(inspect.signature(add).parameters) == ["a", "b", "sign"]
    assert repr(add) == f"<task {__name__}.add of pool 'sums'>"


def test_the_pool_is_named_after_the_function() -> None:
    assert later.pool_name == "later"


def test_every_setting_of_a_pool_is_typed() -> None:
    source = inspect.getsource(tasks)
    typed = source.split("class Settings(TypedDict")[1].split("\nelse:")[0]
    names = {line.split(":")[0].strip() for line in typed.splitlines() if ": " in line}
    assert names == set(FIELDS) - {"handler", "command", "machine", "machines", "tasks"}


def method() -> object:
    class Thing:
        @sprat.task
        def run(self) -> None: ...

    return Thing


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: sprat.task(lambda: 1), "a lambda has no name to find it by"),
        (lambda: sprat.task(len), "a task is a function, not <built-in"),
        (lambda: sprat.task(int), "a task is a function, not <class"),
        (lambda: sprat.task("papers"), "a task is a function, not 'papers'"),
        (method, "is a method: a task is a function of a module"),
        (lambda: sprat.task(pool="a b")(work), "the pool name 'a b' must be"),
        (lambda: sprat.task(max_worker=1)(work), "did you mean max_workers?"),
        (lambda: sprat.task(max_workers=-1)(work), "max_workers must be a whole number"),
        (lambda: sprat.task(handler="a:b")(work), "a task sets handler by itself"),
        (lambda: sprat.task(max_retries=0)(work).options(), "max_retries must be"),
    ],
)
def test_what_cannot_be_a_task_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(sprat.InvalidInput) as refused:
        make()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


# -- pushing ------------------------------------------------------------------------------------


def test_a_pushed_call_is_run_with_its_arguments(memory: Store) -> None:
    with sprat.use(memory):
        first, second = add.push(2, sign=-1), add.push(b=5, a=1)
        assert add.pool().get(first).data == {"args": [2], "kwargs": {"sign": -1}}
        assert add.pool().get(first).max_retries == 2
        work(memory, add)
        assert [sprat.result(first), sprat.result(second)] == [-3, 6]


def test_an_async_task_is_awaited(memory: Store) -> None:
    with sprat.use(memory):
        item_id = later.push(1)
        work(memory, later)
        assert sprat.result(item_id) == 2


def test_many_calls_are_pushed_in_one_step(memory: Store) -> None:
    with sprat.use(memory):
        ids = add.push_many([(1, 2), {"a": 3, "sign": -1}, 4])
        work(memory, add)
        assert [sprat.result(item_id) for item_id in ids] == [3, -4, 5]
        assert add.push_many([]) == []


def test_options_are_those_of_a_push(memory: Store) -> None:
    with sprat.use(memory):
        push = add.options(
            priority=3, delay=5, key="k", tenant="t", group="gpu", max_retries=7
        ).push
        item = add.pool().get(push(1))
        assert push(1) == item.id
        with pytest.raises(sprat.KeyConflict):
            push(2)
        with pytest.raises(sprat.InvalidInput, match="a list of payloads, not str"):
            add.push_many("12")
        with pytest.raises(sprat.InvalidInput, match="a key names one item"):
            add.options(key="k").push_many([1])
        assert len(add.options(priority=1).push_many([1, 2])) == 2
    assert (item.priority, item.tenant, item.group, item.key) == (3, "t", "gpu", "k")
    assert item.max_retries == 7
    assert item.run_at is not None


def test_attempts_of_a_task_have_two_names_and_one_meaning(memory: Store) -> None:
    with sprat.use(memory):
        found = [
            sprat.task(pool="a", max_attempts=5)(add.__wrapped__).max_attempts,
            sprat.task(pool="b", max_retries=5)(add.__wrapped__).max_attempts,
            add.pool().get(add.options(max_attempts=5).push(1)).max_retries,
        ]
        assert found == [5, 5, 5]
        for max_attempts, max_retries in ((2, 3), (0, None), (None, 0)):
            given = {"max_attempts": max_attempts, "max_retries": max_retries}
            with pytest.raises(sprat.InvalidInput, match="max_"):
                add.options(**given)
            with pytest.raises(sprat.InvalidInput, match="max_"):
                sprat.task(**given)


@pytest.mark.parametrize(
    ("push", "sentence"),
    [
        (add.push, "add() missing 1 required positional argument: 'a'"),
        (lambda: add.push(1, 2, 3), "add() takes from 1 to 2 positional arguments but 3"),
        (lambda: add.push(1, c=3), "add() got an unexpected keyword argument 'c'"),
        (lambda: add.push(1, a=1), "add() got multiple values for argument 'a'"),
        (lambda: add.push(b"x"), 'the call of add is not JSON: call["args"][0] is bytes, which'),
        (lambda: add.push(float("nan")), 'the call of add is not JSON: call["args"][0] is nan'),
        (lambda: add.push(1, b={(1, 2): 3}), 'call["kwargs"]["b"] has a tuple as a key'),
        (lambda: add.push_many([1, (1, 2, 3)]), "add() takes from 1 to 2 positional"),
        (lambda: add.push_many([{"b": 1}]), "add() missing 1 required positional"),
        (lambda: add.options(priority="high"), "priority must be a whole number"),
        (lambda: add.options(delay=-1), "delay must be seconds"),
        (lambda: add.options(max_retries=0), "max_retries must be a whole number"),
        (lambda: many.push(x=object()), "the call of many is not JSON"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_pushed(
    push: Callable[[], object], sentence: str, memory: Store
) -> None:
    with sprat.use(memory), pytest.raises(sprat.InvalidInput) as refused:
        push()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert memory.pools() == []


def positional(a: int, /, b: int = 2, *rest: int, c: int, d: int = 4, **named: int) -> None: ...
def keywords(*, a: int, b: int = 1) -> None: ...
def nothing() -> None: ...


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    *(((1,) * n, kwargs) for n in range(4) for kwargs in ({}, {"a": 1}, {"b": 1}, {"c": 1})),
    *(((1,), {"c": 1, "x": 1}), ((), {"a": 1, "b": 1}), ((), {"a": 1, "c": 1, "d": 1})),
]


@pytest.mark.parametrize("function", [positional, keywords, nothing, add.__wrapped__])
def test_arguments_are_checked_as_python_does(function: Callable[..., None]) -> None:
    """The twin that checks a call agrees with the function itself on every call."""
    twin = task_source.twin(function)
    for args, kwargs in CALLS:
        fits = [True, True]
        for at, called in enumerate((twin, function)):
            try:
                called(*args, **kwargs)
            except TypeError:
                fits[at] = False
        assert fits[0] == fits[1], (args, kwargs)


@pytest.mark.parametrize("data", [{"args": [1]}, {"args": [], "kwargs": {}}, {"c": 1}])
def test_arguments_that_the_task_does_not_take_fail_for_good(data: object) -> None:
    item = model.WorkItem(id="x", pool="sums", data=data)
    with pytest.raises(sprat.Poison, match="these are not arguments of add"):
        add.run_item(item)


@pytest.mark.parametrize(
    "data", [{"args": [1], "kwargs": {"b": 4}}, {"args": [1, 4], "kwargs": {}}, {"a": 1, "b": 4}]
)
def test_every_form_of_payload_calls_the_task_with_its_arguments(data: object) -> None:
    assert add.run_item(model.WorkItem(id="x", pool="sums", data=data)) == 5


def test_a_payload_that_is_no_object_is_the_only_argument() -> None:
    assert add.run_item(model.WorkItem(id="x", pool="sums", data=4)) == add(4)


# -- where workers find it ----------------------------------------------------------------------


def test_settings_are_written_once(memory: Store) -> None:
    with sprat.use(memory):
        add.push(1)
        add.push(2)
    with sprat.use(memory):  # as another process would
        add.push(3)
    state = add.pool(memory).state()
    assert state.version == 1
    assert state.settings.handler == f"{__name__}:add"
    assert state.settings.directory == str(HERE)
    assert state.settings.start_on_push is False


def test_settings_of_others_are_left_alone(memory: Store) -> None:
    add.pool(memory).configure(keep_done_seconds=60.0, max_workers=3)
    with sprat.use(memory):
        add.push(1)
    settings = add.pool(memory).state().settings
    assert (settings.keep_done_seconds, settings.max_workers) == (60.0, 3)


def test_start_on_push_is_the_default() -> None:
    assert flaky.settings()["start_on_push"] is True


def test_two_tasks_of_a_program_share_a_pool(
    memory: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sprat.task(pool="sums")(nothing)
    monkeypatch.setitem(globals(), "nothing", other)
    with sprat.use(memory):
        add.push(1)
        other.push()
    settings = add.pool(memory).state().settings
    assert settings.handler == "test_task:add"
    assert set(settings.tasks) == {"test_task:add", "test_task:nothing"}


def test_a_name_means_one_function_in_a_process(
    memory: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sprat.task(pool="sums", name="test_task:add")(nothing)
    monkeypatch.setitem(globals(), "nothing", other)
    with sprat.use(memory):
        add.push(1)
        with pytest.raises(sprat.InvalidInput, match="a name of its own"):
            other.push()


def test_a_local_function_cannot_be_found_by_workers(memory: Store) -> None:
    @sprat.task
    def inner() -> None: ...

    with sprat.use(memory), pytest.raises(sprat.InvalidInput, match="is inside a function"):
        inner.push()


def test_a_task_under_another_name_is_not_found(memory: Store) -> None:
    renamed = sprat.task(nothing)
    with sprat.use(memory), pytest.raises(sprat.InvalidInput, match=r"put @sprat.task above"):
        renamed.push()


def test_a_task_of_an_interactive_session_is_not_found(tmp_path: Path) -> None:
    code = "import sprat\n@sprat.task\ndef f(): ...\n\ntry:\n  f.push()\n"
    code += "except sprat.InvalidInput as error:\n  print(error)\n"
    run = subprocess.run(
        [sys.executable, "-"],
        input=code,
        text=True,
        capture_output=True,
        check=True,
        env=surroundings(tmp_path),
    )
    assert run.stdout == "task 'f' is in no file that workers could import: put it into one\n"


@pytest.mark.parametrize(
    ("name", "file", "spec", "expected"),
    [
        ("__main__", "jobs.py", None, "jobs:task {place}"),
        ("__main__", "app/jobs.py", "app.jobs", "app.jobs:task {place}"),
        ("__main__", "app/__main__.py", "app.__main__", "app.__main__:task {place}"),
        ("app.jobs", "app/jobs.py", "app.jobs", "app.jobs:task {place}"),
        ("app", "app/__init__.py", "app", "app:task {place}"),
        ("__main__", "my-jobs.py", None, "workers cannot import"),
        ("__main__", "jobs.txt", None, "workers cannot import"),
    ],
)
def test_where_workers_find_a_task(
    name: str,
    file: str,
    spec: str | None,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module: Any = ModuleType(name)
    module.__file__ = str(tmp_path / file)
    module.__spec__ = None if spec is None else type("Spec", (), {"name": spec})()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    exec("import sprat\n@sprat.task\ndef task(): ...", module.__dict__)
    monkeypatch.setitem(sys.modules, name, module)
    try:
        program = module.task.program()
        found = f"{program.handler} {program.directory}"
    except sprat.InvalidInput as error:
        found = str(error)
    assert expected.format(place=tmp_path) in found


def test_a_module_that_pushes_while_workers_import_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eager.py").write_text(
        "import sprat\n\n@sprat.task\ndef job(): ...\n\njob.push()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(sprat.InvalidInput, match="if __name__ == '__main__'"):
        handlers.find("eager:job")


# -- which store --------------------------------------------------------------------------------


def test_the_store_is_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRAT_URL", f"sqlite:///{tmp_path}/env.db")
    monkeypatch.setattr(default_store, "_places", {})
    item_id = add.push(1)
    with sprat.open_store(f"sqlite:///{tmp_path}/env.db") as store:
        assert store.get(item_id).pool == "sums"
    close_all()


def test_the_store_is_a_file_here_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPRAT_URL", raising=False)
    monkeypatch.setattr(default_store, "_places", {})
    monkeypatch.chdir(tmp_path)
    item_id = add.push(1)
    assert add.push(2) != item_id
    assert len(default_store._places) == 1
    assert (tmp_path / "sprat.db").exists()
    close_all()


def test_use_takes_a_url_and_ends_with_its_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default_store, "_places", {})
    url = f"sqlite:///{tmp_path}/a.db"
    with sprat.use(url) as store, sprat.use(f"sqlite:///{tmp_path}/b.db"):
        item_id = add.push(1)
        with pytest.raises(KeyError):
            store.get(item_id)
    with sprat.use(url):
        assert add.pool().size() == 0
        assert add.pool(f"sqlite:///{tmp_path}/b.db").size() == 1
    close_all()


def close_all() -> None:
    for place in default_store._places.values():
        place.store.close()


# -- results ------------------------------------------------------------------------------------


def test_a_failed_item_raises_its_error(memory: Store) -> None:
    with sprat.use(memory):
        item_id = many.push()
        pool = many.pool()
        me = memory.workers.register(model.WorkerRegistration(worker_id="w1"))
        pool.fail(pool.claim(me) or "", "ValueError: seven\nTraceback ...", poison=True)
        with pytest.raises(sprat.JobFailed, match="failed after 1 attempt: ValueError") as failed:
            sprat.result(item_id)
    assert (failed.value.item_id, failed.value.error) == (
        item_id,
        "ValueError: seven\nTraceback ...",
    )


def test_a_cancelled_item_raises(memory: Store) -> None:
    item_id = many.pool(memory).push({})
    many.pool(memory).cancel(item_id)
    with pytest.raises(sprat.JobCancelled, match="was cancelled"):
        sprat.result(item_id, store=memory)


def test_time_is_up(memory: Store) -> None:
    item_id = many.pool(memory).push({})
    with pytest.raises(TimeoutError, match=f"item {item_id} is pending after 0"):
        sprat.result(item_id, 0.02, store=memory)
    with pytest.raises(sprat.InvalidInput, match="timeout must be seconds"):
        sprat.result(item_id, -1, store=memory)
    with pytest.raises(KeyError):
        sprat.result("nonesuch", store=memory)


def test_a_result_is_waited_for(memory: Store) -> None:
    item_id = many.pool(memory).push({})

    def finish() -> None:
        pool = many.pool(memory)
        me = memory.workers.register(model.WorkerRegistration(worker_id="w1"))
        pool.complete(pool.claim(me) or "", [1, 2])

    timer = threading.Timer(0.1, finish)
    timer.start()
    assert sprat.result(item_id, timeout=30, store=memory) == [1, 2]
    timer.join()


def test_waiting_for_a_result_keeps_the_fleet_going(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[str] = []
    monkeypatch.setattr(results, "FIRST_CALL_SECONDS", 0.02)
    monkeypatch.setattr(
        "sprat.triggers.events._start_pass", lambda store, pool, _: passes.append(pool)
    )
    with sprat.open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        item_id = store.pool("asks").push({})
        other_id = store.pool("rests").push({})
        store.pool("asks").configure(command=["true"])
        store.backend.configure("asks", '{"start_on_push": true}', None)
        for waited_for in (item_id, other_id):
            with pytest.raises(TimeoutError):
                sprat.result(waited_for, 0.2, store=store)
    assert set(passes) == {"asks"}


@pytest.mark.parametrize(("timeout", "calls"), [(0.001, 1), (0, 0)])
def test_the_shortest_wait_makes_one_call(
    timeout: float, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine one look can take as long as the time-out; a time-out of 0 only looks."""
    passes: list[str] = []
    monkeypatch.setattr(
        "sprat.triggers.events._start_pass", lambda store, pool, _: passes.append(pool)
    )
    with sprat.open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        item_id = store.pool("asks").push({})
        store.pool("asks").configure(command=["true"])
        store.backend.configure("asks", '{"start_on_push": true}', None)
        with pytest.raises(TimeoutError):
            sprat.result(item_id, timeout, store=store)
    assert len(passes) == calls


@pytest.mark.alone
def test_waiting_for_a_result_costs_next_to_nothing(tmp_path: Path) -> None:
    with sprat.open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        item_id = store.pool("asks").push({})
        began = time.process_time()
        with pytest.raises(TimeoutError):
            sprat.result(item_id, 2.0, store=store)
        share = (time.process_time() - began) / 2.0
    assert share < 0.02, f"{share:.1%} of a core"


# -- inline -------------------------------------------------------------------------------------


def test_inline_runs_tasks_where_they_are_pushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with sprat.inline() as store:
        item_id = add.push(2, sign=-1)
        assert store.get(item_id).status == "done"
        assert sprat.result(item_id) == -3
        assert sprat.result(later.push(1)) == 2
        assert add.pool().counts().done == 1
    assert list(tmp_path.iterdir()) == []


def test_inline_runs_local_functions() -> None:
    @sprat.task
    def inner(n: int) -> int:
        return n * 2

    with sprat.inline():
        assert sprat.result(inner.push(4)) == 8


def test_inline_tries_again_without_waiting() -> None:
    began = time.monotonic()
    with sprat.inline() as store:
        item_id = flaky.options(delay=3600).push(3)
        assert sprat.result(item_id) == 3
        assert store.get(item_id).attempts == 3
    assert time.monotonic() - began < 5


def test_inline_keeps_failures() -> None:
    with sprat.inline() as store:
        item_id = flaky.push(4)
        assert store.get(item_id).attempts == 3
        with pytest.raises(sprat.JobFailed, match="attempt 3 fails"):
            sprat.result(item_id)


def test_inline_raises_a_failure_that_nobody_saw() -> None:
    with pytest.raises(sprat.JobFailed, match="attempt 3 fails"), sprat.inline():
        flaky.push(4)


def test_inline_does_not_hide_the_error_of_its_block() -> None:
    def test() -> None:
        with sprat.inline():
            flaky.push(4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        test()


def test_inline_runs_what_tasks_push() -> None:
    with sprat.inline():
        count_down.push(300)  # deeper than Python's stack, if each ran inside the other
        assert count_down.pool().counts().done == 301


def test_inline_gives_a_job_the_result_of_another() -> None:
    with sprat.inline():
        assert sprat.result(total.push(4)) == 6


def test_inline_stops_a_task_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sprat.tasks.inline.MOST_JOBS", 100)

    @sprat.task
    def again() -> None:
        again.options(delay=60).push()

    with pytest.raises(sprat.SpratError, match="does again push itself"), sprat.inline():
        again.push()


def test_inline_knows_checkpoints_progress_transient_and_poison() -> None:
    @sprat.task(max_retries=1)
    def careful() -> object:
        job = sprat.current_job()
        if job.checkpoint is None:
            job.save_checkpoint({"page": 7})
            job.progress(0.5, "half")
            raise sprat.Transient("come back later", delay_seconds=60)
        return job.checkpoint

    @sprat.task
    def hopeless() -> None:
        raise sprat.Poison("no such paper")

    with sprat.inline() as store:
        item_id = careful.push()
        assert sprat.result(item_id) == {"page": 7}
        assert store.get(item_id).progress_note == "half"
        with pytest.raises(sprat.JobFailed, match="failed after 1 attempt: no such paper"):
            sprat.result(hopeless.push())


def test_inline_serves_every_group_and_goes_before_use(memory: Store) -> None:
    with sprat.inline(), sprat.use(memory):
        assert sprat.result(add.options(group="gpu").push(1)) == 2
        assert sprat.result(add.options(group="cpu", tenant="t").push(2)) == 3
    assert memory.pools() == []


def test_inline_says_when_an_item_cannot_be_run() -> None:
    with sprat.inline() as store:
        item_id = store.pool("nobody").push({})
        with pytest.raises(TimeoutError, match="is pending"):
            sprat.result(item_id)


def test_inline_in_an_async_test() -> None:
    async def test() -> object:
        item_id = await asyncio.to_thread(later.push, 1)
        return await asyncio.to_thread(sprat.result, item_id)

    with sprat.inline():
        assert asyncio.run(test()) == 2


# -- the whole way ------------------------------------------------------------------------------

SCRIPT = """\
import sprat


@sprat.task(max_workers=3)
def square(n: int) -> int:
    return n * n


if __name__ == "__main__":
    ids = square.push_many(range(10))
    print(sum(sprat.result(item_id, timeout=60) for item_id in ids))
"""


def surroundings(place: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("SPRAT_")}
    source = str(HERE.parent / "src")
    return {**clean, "PYTHONPATH": source, "SPRAT_LOG": str(place / "log")}


def test_a_script_of_ten_lines_gets_its_work_done(tmp_path: Path) -> None:
    (tmp_path / "squares.py").write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "squares.py"],
        cwd=tmp_path,
        env=surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    log = (tmp_path / "log").read_text() if (tmp_path / "log").exists() else ""
    assert (run.stdout, run.stderr) == ("285\n", ""), log
    with sprat.open_store(f"sqlite:///{tmp_path}/sprat.db") as store:
        assert store.pool("square").state().version == 1
        deadline = time.monotonic() + 30
        while store.workers.list(status=model.LIVE) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not store.workers.list(status=model.LIVE)


TYPED = """\
import sprat


@sprat.task(pool="papers", max_retries=3, timeout_seconds=60, isolation="none")
def analyze(paper: str, *, pages: int = 1) -> list[int]:
    return [len(paper)] * pages


@sprat.task
async def fetch(url: str) -> bytes:
    return b""


reveal_type(analyze("a", pages=2))
reveal_type(analyze.push("a", pages=2))
reveal_type(analyze.push_many([("a",), {"paper": "b"}, "c"]))
reveal_type(analyze.options(priority=1).push("a"))
coroutine = reveal_type(fetch("x"))
reveal_type(sprat.current_job().attempt)
with sprat.inline() as store:
    reveal_type(store)
analyze.push(1)
analyze.push("a", page=2)
analyze.options(priority=1).push()
analyze.options(prority=1)
sprat.task(max_worker=3)
"""

REVEALED = [
    "list[int]",
    "str",
    "list[str]",
    "str",
    "typing.Coroutine[Any, Any, bytes]",
    "int",
    "sprat.store.store.Store",
]
REFUSED = [
    'Argument 1 to "push" of "Task" has incompatible type "int"; expected "str"  [arg-type]',
    'Unexpected keyword argument "page" for "push" of "Task"',
    'Missing positional argument "paper" in call to "push" of "Pusher"  [call-arg]',
    'Unexpected keyword argument "prority" for "options" of "Task"',
    'Unexpected keyword argument "max_worker" for overloaded function "task"',
]


def test_types_survive_the_decorator(tmp_path: Path) -> None:
    (tmp_path / "sample.py").write_text(TYPED)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", ".mypy_cache", "sample.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(HERE.parent / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("sample.py")]
    revealed = [line.split('"')[1] for line in lines if "Revealed type" in line]
    errors = [line.split("error: ")[1] for line in lines if "error: " in line]
    assert [text.replace("builtins.", "") for text in revealed] == REVEALED, run.stdout
    assert len(errors) == len(REFUSED), run.stdout
    for error, expected in zip(errors, REFUSED, strict=True):
        assert error.startswith(expected)
