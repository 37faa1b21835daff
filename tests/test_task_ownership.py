"""A pool runs the tasks of one program: no job is ever called with the function of another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sprat
from sprat.core.model import PoolSettings, WorkItem
from sprat.tasks import ownership
from sprat.tasks.ownership import Program
from sprat.worker.handlers import Handlers, UnknownTask
from sprat.worker.job import Job

APP = """
import sprat, sys

@sprat.task(pool="analyze", max_workers=2, idle_seconds=0.1{more})
def analyze(x: int):
    return "{word} %d" % x

if __name__ == "__main__":
    print([sprat.result(job, 60) for job in analyze.push_many(range(int(sys.argv[1])))])
"""
HERE = Program(task="m:f", handler="m:f", file="/a/m.py", directory="/a", host="box")


def write(place: Path, module: str, word: str, more: str = "") -> Path:
    place.mkdir(exist_ok=True)
    path = place / f"{module}.py"
    path.write_text(APP.format(word=word, more=more))
    return path


def run(program: Path, url: str, jobs: int) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPRAT_URL": url}
    command = [sys.executable, program.name, str(jobs)]
    return subprocess.run(
        command,
        cwd=program.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def settings_of(program: Program, **more: Any) -> PoolSettings:
    return PoolSettings(**{**ownership.moved(program), **more})


def test_a_busy_pool_refuses_a_task_of_another_program(tmp_path: Path) -> None:
    """Both programs have a function `analyze`, and so the same pool."""
    url = f"sqlite:///{tmp_path}/shared.db"
    papers = write(tmp_path / "papers_app", "papers", "PAPER")
    images = write(tmp_path / "images_app", "images", "IMAGE")
    assert run(papers, url, 3).stdout == "['PAPER 0', 'PAPER 1', 'PAPER 2']\n"
    with sprat.open_store(url) as store:
        store.pool("analyze").push({"x": 7}, delay=3600, task="papers:analyze")
        refused = run(images, url, 3)
        assert refused.returncode == 1
        assert f"has jobs of {papers}, so task images:analyze of {images}" in refused.stderr
        assert f"sprat move analyze {images.parent}" in refused.stderr
        assert store.pool("analyze").counts().total == 4  # nothing was pushed


def test_an_empty_pool_moves_to_the_program_that_pushes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    papers = write(tmp_path / "papers_app", "papers", "PAPER")
    images = write(tmp_path / "images_app", "images", "IMAGE")
    for _ in range(2):  # there and back, with idle workers of the other program around
        assert run(papers, url, 3).stdout == "['PAPER 0', 'PAPER 1', 'PAPER 2']\n"
        assert run(images, url, 3).stdout == "['IMAGE 0', 'IMAGE 1', 'IMAGE 2']\n"


def test_a_new_deployment_directory_is_another_program() -> None:
    there = HERE.replace(file="/b/m.py", directory="/b")
    assert ownership.is_other(settings_of(HERE), there)
    assert not ownership.is_other(settings_of(HERE), HERE)
    assert "sprat move p /b" in ownership.refusal("p", settings_of(HERE), there)


def test_another_host_has_paths_of_its_own_and_changes_none() -> None:
    there = HERE.replace(file="/b/m.py", directory="/b", host="other")
    assert not ownership.is_other(settings_of(HERE), there)
    assert ownership.adopted(settings_of(HERE), there) == {}


def test_a_second_task_of_the_program_is_added() -> None:
    second = HERE.replace(task="m:g", handler="m:g")
    changes = ownership.adopted(settings_of(HERE), second)
    assert changes["handler"] == "m:f"
    assert set(changes["tasks"]) == {"m:f", "m:g"}


def test_a_pool_with_a_command_is_another_program() -> None:
    assert ownership.is_other(PoolSettings(command=("convert",)), HERE)
    assert not ownership.is_other(PoolSettings(handler="m:f"), HERE)
    assert not ownership.is_other(PoolSettings(), HERE)


def test_a_worker_runs_only_the_task_that_the_job_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "two_tasks.py").write_text(
        "import sprat\n@sprat.task(pool='p')\ndef f(): return 'f'\n"
        "@sprat.task(pool='p', name='gee')\ndef g(): return 'g'\n"
    )
    entry = {"file": "x", "host": "x"}
    handlers = Handlers(
        "two_tasks:f",
        {
            "two_tasks:f": {"handler": "two_tasks:f", **entry},
            "gee": {"handler": "two_tasks:g", **entry},
            "gone": {"handler": "two_tasks:h", **entry},
        },
    )
    assert handlers.tasks == ("two_tasks:f", "gee")

    def call(task: str | None) -> Any:
        pool: Any = None
        return handlers(Job(pool, WorkItem(id="1", pool="p", data={}, task=task)))

    assert [call(None), call("two_tasks:f"), call("gee")] == ["f", "f", "g"]
    with pytest.raises(UnknownTask, match="two_tasks has no h"):
        call("gone")
    with pytest.raises(UnknownTask, match="no worker of the pool has task other"):
        call("other")


def test_a_changed_module_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "edited_job.py"
    module.write_text("def f(data): return 1\n")
    handlers = Handlers("edited_job:f", {})
    assert not handlers.has_changed()
    module.write_text("def f(data): return 22\n")
    assert handlers.has_changed()
    module.unlink()
    assert not handlers.has_changed()  # an editor may be replacing it
