"""The rules of the layout: which package may import which, and how large a module may be."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

from sprat.core import extensions

SOURCE = Path(__file__).parent.parent / "src" / "sprat"

# A package imports only from lower layers, which stand above it here; packages of one layer do not
# import each other. What must reach a higher layer is named in core/extensions.py.
LAYERS = (
    ("core",),
    ("config",),
    ("scaling",),
    ("store",),
    ("fleet", "worker"),
    ("launchers",),
    ("tasks", "machines", "triggers", "simulation", "local"),
    ("server", "controller", "manifests", "flatmachines"),
    ("cli",),
)
TOP_LEVEL = {"__init__.py", "__main__.py", "run.py", "py.typed"}
# One backend is imported when its URL is opened: only from these modules, inside a function.
BACKENDS = ("store.memory", "store.sqlite", "store.postgres", "store.redis", "store.http")
SHARED_SQL = "store.sql"  # imported by these two backends only
SQL_BACKENDS = {"store.sqlite", "store.postgres"}
OPENS_BACKENDS = {
    *("store.open_store", "tasks.inline"),
    "worker.client",  # shares the connections of the HTTP store
}

# Modules that every short-lived worker imports: each import here is paid once a job.
LEAN = {
    *("", "__main__", "core.record", "core.errors", "core.model", "core.extensions"),
    *("core.runtime",),
    *("core.retry_rules", "core.payload", "core.fields", "core.did_you_mean", "config.settings"),
    *("store.backend", "store.pool", "store.workers"),
    *("store.store", "store.open_store", "store.sql", "store.sqlite", "store.http", "cli"),
    *("worker.job", "worker.handlers", "worker.processor", "worker.worker"),
    *("tasks.default_store", "tasks.task", "tasks.source", "tasks.ownership"),
}
# in a lean package, but imported on demand
NOT_LEAN = {"cli.demo", "cli.simulate", "cli.arguments", "cli.probe"}
HEAVY = {
    *("argparse", "asyncio", "contextlib", "dataclasses", "datetime", "inspect", "logging"),
    *("pathlib", "re", "subprocess", "tempfile", "typing", "urllib", "uuid"),
}
THIRD_PARTY = {
    "store.sqlite": {"apsw"},
    "store.postgres": {"psycopg"},
    "store.redis": {"hiredis"},
    "config.yaml_tree": {"ruamel"},
    "config.schedule": {"cronsim"},
    "flatmachines": {"flatmachines"},
    "launchers.docker": {"docker"},
    "launchers.kubernetes": {"httpx2", "lightkube"},
    "server": {"msgspec", "starlette", "uvicorn"},
}

# Packages whose clock, sleeps, randomness and processes a simulation can replace
REPLAYABLE = {
    *("core", "scaling", "store", "fleet", "worker", "launchers"),
    *("tasks", "machines", "triggers"),
}
OF_THE_RUNTIME = {
    *("time.monotonic", "time.time", "time.sleep", "os.urandom", "os.fork", "os.posix_spawn"),
}
# Class names that several modules have, and why
SAME_NAME = {
    "Options": "the options of a policy, launcher or server: found by this name",
    "Job": "a stored job at work, and the job of an in-process pool (a public name)",
}
VAGUE_NAMES = {"utils", "util", "helpers", "common", "manager", "misc"}
MAX_LINES = 350
# path under src/sprat: why it may be longer
LONG_FILES = {"core/model.py": "records only", "store/pool.py": "the facade: one method per verb"}


class Module:
    """One source file: its dotted name under `sprat`, and every import in it."""

    def __init__(self, path: Path) -> None:
        parts = path.relative_to(SOURCE).with_suffix("").parts
        self.path = path
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.tree = ast.parse(path.read_text())

    def imports(self) -> list[tuple[str, bool]]:
        """Every import, anywhere in the file: (dotted name, is it late?)."""
        late = {
            id(node)
            for function in ast.walk(self.tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for node in ast.walk(function)
        }
        return [(name, id(node) in late) for node in ast.walk(self.tree) for name in imported(node)]

    def own_imports(self) -> set[tuple[str, bool]]:
        """The modules of ours that it imports, without the `sprat.` in front."""
        ours = {(known(name), late) for name, late in self.imports() if root(name) == "sprat"}
        return {(name, late) for name, late in ours if name}

    def paid_at_import(self) -> list[str]:
        """What importing the module imports: all but functions and TYPE_CHECKING blocks."""
        return [name for node in executed(self.tree.body) for name in imported(node)]


def imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: imports are absolute"
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def executed(body: list[ast.stmt]) -> list[ast.AST]:
    found: list[ast.AST] = []
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        found.append(node)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            found += executed(node.orelse)
            continue
        for field in ("body", "orelse", "finalbody"):
            found += executed(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            found += executed(handler.body)
    return found


def root(name: str) -> str:
    return name.partition(".")[0]


def known(name: str) -> str:
    """`sprat.core.model.WorkItem` and `sprat.core.model` are both the module `model`."""
    inner = name.removeprefix("sprat").removeprefix(".")
    while inner and inner not in NAMES:
        inner = inner.rpartition(".")[0]
    return inner


def package(name: str) -> str:
    return name.partition(".")[0]


def backend_of(name: str) -> str | None:
    return next((b for b in BACKENDS if is_in(name, {b})), None)


def is_in(name: str, places: set[str]) -> bool:
    """Whether a module is one of these, or inside of one."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def layer(name: str) -> int:
    return next((n for n, layer in enumerate(LAYERS) if package(name) in layer), len(LAYERS))


FILES = sorted(SOURCE.rglob("*.py"))
NAMES = {Module(path).name for path in FILES}
MODULES = [Module(path) for path in FILES]
PACKAGED = [m for m in MODULES if "." in m.name or package(m.name) in sum(LAYERS, ())]
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda m: m.name or "sprat")
each_packaged = pytest.mark.parametrize("module", PACKAGED, ids=lambda m: m.name)


def test_the_top_level_has_four_files_and_the_packages_of_the_layers() -> None:
    there = {path.name for path in SOURCE.iterdir() if path.name != "__pycache__"}
    assert there == TOP_LEVEL | {name for layer in LAYERS for name in layer}


@each_packaged
def test_imports_point_down(module: Module) -> None:
    for target, _ in module.own_imports():
        if package(target) != package(module.name):
            assert layer(target) < layer(module.name), f"{module.name} may not import {target}"


@each_packaged
def test_a_backend_is_imported_only_where_its_url_is_opened(module: Module) -> None:
    for target, late in module.own_imports():
        backend = backend_of(target)
        if backend is not None and backend != backend_of(module.name):
            assert late, f"{module.name} may import {target} only inside a function"
            assert module.name in OPENS_BACKENDS, f"{module.name} may not import {target}"


@each_packaged
def test_the_sql_kernel_is_imported_by_the_sql_stores_only(module: Module) -> None:
    if not is_in(module.name, {SHARED_SQL, *SQL_BACKENDS}):
        assert not [name for name, _ in module.own_imports() if is_in(name, {SHARED_SQL})]


@pytest.mark.parametrize("dialect", sorted(SQL_BACKENDS))
def test_a_dialect_has_the_sql_of_every_shared_verb(dialect: str) -> None:
    """The kernel names its statements `tx.sql.<module>.<CONSTANT>`."""
    for module in MODULES:
        if is_in(module.name, {SHARED_SQL}):
            text = ast.unparse(module.tree)
            for family, constant in re.findall(r"\btx\.sql\.(\w+)\.([A-Z_]+)", text):
                statements = importlib.import_module(f"sprat.{dialect}.{family}")
                assert hasattr(statements, constant), f"{dialect}.{family} has no {constant}"


@pytest.mark.parametrize(
    "path", [path for point in extensions.POINTS.values() for path in point.values()]
)
def test_an_extension_is_there(path: str) -> None:
    module, _, attribute = path.partition(":")
    loaded = importlib.import_module(module)
    assert not attribute or hasattr(loaded, attribute)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("__init__.py")), ids=lambda p: p.parent.name)
def test_a_package_says_what_it_is_for(path: Path) -> None:
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert len(text) > 40, f"{path}: what is the package for, and where does a reader start?"


def test_the_package_itself_imports_nothing_until_asked() -> None:
    package = next(m for m in MODULES if m.name == "")
    assert package.paid_at_import() == ["__future__.annotations"]


@each_module
def test_lean_modules_import_nothing_heavy(module: Module) -> None:
    if is_in(module.name, LEAN) and module.name not in NOT_LEAN:
        heavy = {name for name in module.paid_at_import() if root(name) in HEAVY}
        assert not heavy, f"{module.name} is imported by every worker: import {heavy} late"


@each_module
def test_third_party_packages_stay_where_they_are_needed(module: Module) -> None:
    foreign = {root(name) for name, _ in module.imports()} - set(sys.stdlib_module_names)
    allowed = (names for place, names in THIRD_PARTY.items() if is_in(module.name, {place}))
    assert foreign - {"sprat"} <= set().union(*allowed)


@each_packaged
def test_time_chance_and_new_processes_come_from_the_runtime(module: Module) -> None:
    if package(module.name) in REPLAYABLE and module.name != "core.runtime":
        direct = {ast.unparse(node) for node in ast.walk(module.tree) if is_direct(node)}
        assert not direct, f"{module.name}: use core/runtime.py instead of {direct}"


def is_direct(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) in OF_THE_RUNTIME


@each_module
def test_module_is_named_after_an_idea(module: Module) -> None:
    assert not VAGUE_NAMES & set(module.name.split("."))


def test_a_class_name_has_one_meaning() -> None:
    homes: dict[str, list[str]] = {}
    for module in MODULES:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module.name)
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert twice.keys() <= SAME_NAME.keys(), twice


@each_module
def test_file_holds_one_idea(module: Module) -> None:
    path = str(module.path.relative_to(SOURCE))
    lines = len(module.path.read_text().splitlines())
    assert lines <= MAX_LINES or path in LONG_FILES, f"{path}: {lines} lines; what is its 2nd idea?"


def test_long_files_are_still_there_and_still_long() -> None:
    for path in LONG_FILES:
        assert len((SOURCE / path).read_text().splitlines()) > MAX_LINES
