"""The house rules that a machine can check: which module may import which, and how big it may be.

A new module goes into RUNGS below, on the lowest rung that has all it needs beneath it.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "sprat"

# Imports point down: a module may import from the rungs below its own, and a package also from
# itself. Modules on one rung do not know each other. A package stands for all its modules.
RUNGS = (
    {"record", "errors", "jsontext", "scaling_reasons"},
    {"model", "listening", "plain_json"},
    {
        "retry",
        "leases",
        "limits",
        "histogram",
        "payload",
        "percent",
        "environment",
        "machine_load",
        "awaiting",
        "schedule",
        "text_file",
    },
    {"scaling", "retrying", "recent", "idempotency", "worker_process", "tally", "finding"},
    {"placement"},
    {"backend", "lifecycle", "settings", "ownership", "trigger", "yaml_tree"},
    {"simulation", "machine", "claim_tokens", "tenant_limit", "stores.lost_claims"},
    {"stores.memory", "stores.sqlite", "stores.postgres", "stores.redis", "stores.http"},
    {"pool"},
    {"registry"},
    {"store", "config", "worker_pool"},
    {"launcher", "job", "regional_pool", "insight", "health"},
    {"handlers", "checker", "reaper", "client", "scale_set", "pool_deletion"},
    {"processor"},
    {"ahead", "child", "contact", "pulse", "scaler", "signals"},
    {"attempts"},
    {"worker"},
    {"reachable", "seat"},
    {"launchers"},
    {"triggers", "flatmachines"},
    {"using", "task_source"},
    {"tasks", "results", "machine_room"},
    {"inlining", "controller"},
    {"orchestrator"},
    {"manifests"},
    {"cli"},
    {"__main__"},
    {"run"},
)
# Packages that nobody imports, except late (inside a function) from these modules.
ONLY_LATE = {
    "stores.memory": {"store", "inlining"},
    "stores.sqlite": {"store"},
    "stores.postgres": {"store"},
    "stores.redis": {"store"},
    "stores.http": {"store", "client"},
}
# Imports that point up the ladder, late: a URL or a name decides at run time what is needed.
UPWARDS = {
    *(("store", "triggers"), ("store", "pool_deletion"), ("launcher", "launchers")),
    *(("processor", "machine_room"), ("launchers", "machine_room")),
}

# Modules that every short-lived worker imports: each import here is paid once a job.
LEAN = {
    *("", "__main__", "record", "errors", "model", "retry", "payload", "backend", "pool"),
    *("registry", "store", "stores", "stores.sqlite", "stores.http", "cli", "job"),
    *("handlers", "ownership", "processor", "worker", "using", "tasks", "task_source"),
}
NOT_LEAN = {
    "cli.demo",
    "cli.simulate",
    "cli.arguments",
    "cli.probe",
}  # in a lean package, but imported on demand
HEAVY = {
    *("argparse", "asyncio", "contextlib", "dataclasses", "datetime", "inspect", "logging"),
    *("pathlib", "re", "subprocess", "tempfile", "typing", "urllib", "uuid"),
}
THIRD_PARTY = {
    "stores.sqlite": {"apsw"},
    "stores.postgres": {"psycopg"},
    "stores.redis": {"hiredis"},
    "yaml_tree": {"ruamel"},
    "schedule": {"cronsim"},
    "flatmachines": {"flatmachines"},
    "launchers": {"docker", "httpx2", "lightkube"},
    "orchestrator": {"msgspec", "starlette", "uvicorn"},
}

VAGUE_NAMES = {"utils", "util", "helpers", "common", "manager", "misc"}
MAX_LINES = 350
# path under src/sprat: why it may be longer
LONG_FILES = {"model.py": "records only", "pool.py": "the facade: a method a verb"}


class Module:
    """One source file: its dotted name under `sprat`, and every import in it."""

    def __init__(self, path: Path) -> None:
        parts = path.relative_to(SOURCE).with_suffix("").parts
        self.path = path
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        self.tree = ast.parse(path.read_text())

    @property
    def place(self) -> str:
        return home(self.name)

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
    """`sprat.model.WorkItem` and `sprat.model` are both the module `model`."""
    inner = name.removeprefix("sprat").removeprefix(".")
    while inner and inner not in NAMES:
        inner = inner.rpartition(".")[0]
    return inner


def home(name: str) -> str:
    """The entry of RUNGS that a module belongs to, or its own name."""
    places = [place for rung in RUNGS for place in rung]
    return next((p for p in places if name == p or name.startswith(f"{p}.")), name)


def rung(name: str) -> int:
    return next((n for n, rung in enumerate(RUNGS) if home(name) in rung), -1)


FILES = sorted(SOURCE.rglob("*.py"))
NAMES = {Module(path).name for path in FILES}
MODULES = [Module(path) for path in FILES]
BELOW_THE_ROOF = [m for m in MODULES if m.name not in ("", "stores")]  # hold no code
each_module = pytest.mark.parametrize("module", MODULES, ids=lambda m: m.name or "sprat")


@pytest.mark.parametrize("module", BELOW_THE_ROOF, ids=lambda m: m.name)
def test_module_has_a_place_in_the_order(module: Module) -> None:
    assert rung(module.name) >= 0, f"add {module.name} to RUNGS in {Path(__file__).name}"


@pytest.mark.parametrize("module", BELOW_THE_ROOF, ids=lambda m: m.name)
def test_imports_point_down(module: Module) -> None:
    for target, late in module.own_imports():
        if home(target) == module.place:
            continue
        if home(target) in ONLY_LATE:
            allowed = late and module.name in ONLY_LATE[home(target)]
            assert allowed, f"{module.name} may not import {target} here"
        elif (module.place, home(target)) in UPWARDS:
            assert late, f"{module.name} may import {target} only inside a function"
        else:
            assert rung(target) < rung(module.name), f"{module.name} may not import {target}"


def test_the_package_itself_imports_nothing_until_asked() -> None:
    package = next(m for m in MODULES if m.name == "")
    assert package.paid_at_import() == ["__future__.annotations"]


@each_module
def test_lean_modules_import_nothing_heavy(module: Module) -> None:
    is_lean = module.name in LEAN or module.place in LEAN
    if is_lean and module.name not in NOT_LEAN:
        heavy = {name for name in module.paid_at_import() if root(name) in HEAVY}
        assert not heavy, f"{module.name} is imported by every worker: import {heavy} late"


@each_module
def test_third_party_packages_stay_where_they_are_needed(module: Module) -> None:
    foreign = {root(name) for name, _ in module.imports()} - set(sys.stdlib_module_names)
    assert foreign - {"sprat"} <= THIRD_PARTY.get(module.place, set())


@each_module
def test_module_is_named_after_an_idea(module: Module) -> None:
    assert not VAGUE_NAMES & set(module.name.split("."))


@each_module
def test_file_holds_one_idea(module: Module) -> None:
    path = str(module.path.relative_to(SOURCE))
    lines = len(module.path.read_text().splitlines())
    assert lines <= MAX_LINES or path in LONG_FILES, f"{path}: {lines} lines; what is its 2nd idea?"


def test_long_files_are_still_there_and_still_long() -> None:
    for path in LONG_FILES:
        assert len((SOURCE / path).read_text().splitlines()) > MAX_LINES
