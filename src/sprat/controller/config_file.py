"""The file of a controller: what may stand in it, and the sentence when something else does."""

from __future__ import annotations

from sprat.config import settings, text_file
from sprat.config.project_file import nearest, seconds
from sprat.controller import limits
from sprat.core import extensions, payload
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.core.record import Record
from sprat.launchers import option_checks
from sprat.scaling import policies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn

    from sprat.config.yaml_tree import Leaf

MAX_BYTES = 1_000_000
CONFIG_TTL_SECONDS = 60.0  # how long what the orchestrator said is good
LEASE_SECONDS = 15.0  # so long after a leader's last sign of life another takes over
SHORTEST_LEASE_SECONDS = 1.0
# Names of the same algorithm elsewhere.
ALGORITHMS = {
    "queue_depth": "pending-per-worker",
    "percentage": "headroom",
}
OF_A_GROUP = "pending-per-worker"  # where no algorithm is named
ALIASES = {"group": "machine_group", "policy": "algorithm", "policy_options": "algorithm_options"}
OF_A_SET = (
    *("tenant_id", "machine_group", "pool", "launcher", "launcher_options", "environment"),
    *("algorithm", "algorithm_options", "overrides"),
)
OF_ALL = (
    *("orchestrator_url", "store", "scale_sets"),
    *("config_ttl_seconds", "lease_seconds", "drain_deadline_seconds"),
)


class ControlledScaleSet(Record):
    """Workers to look after: of one pool or (None) of every pool that has a processor."""

    pool: str | None = None
    group: str | None = None
    tenant: str | None = None
    # The pool's settings have these too, but their author may be a tenant, not the operator of this
    # machine: only this file counts.
    launcher: str | None = None  # a file without one is refused when a controller starts
    launcher_options: Mapping[str, Any] = {}
    environment: Sequence[str] = ()  # the variables of the controller that workers get
    algorithm: str | None = None  # None: that of the pool, or of a machine group
    algorithm_options: Mapping[str, Any] = {}
    overrides: Mapping[str, float] = {}

    @property
    def shown(self) -> str:
        pool = "every pool" if self.pool is None else self.pool
        return pool if self.group is None else f"{pool}, group {self.group}"


class ControllerFile(Record):
    """A file as it was read and checked."""

    orchestrator_url: str | None = None
    store: str | None = None
    scale_sets: tuple[ControlledScaleSet, ...] = ()
    config_ttl_seconds: float = CONFIG_TTL_SECONDS
    lease_seconds: float = LEASE_SECONDS
    drain_deadline_seconds: float | None = None
    warnings: tuple[str, ...] = ()


def read(path: str) -> ControllerFile:
    from sprat.config import yaml_tree

    text = text_file.read(path, MAX_BYTES, missing="docs/operate/controller.md has an example")
    return _Reader(path).controller_file(yaml_tree.read(text, path))


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path
        self._warnings: list[str] = []

    def controller_file(self, tree: Leaf) -> ControllerFile:
        top = self._keys(tree, "the file", (*OF_ALL, *OF_A_SET))
        own = {key: leaf for key, leaf in top.items() if key in OF_A_SET}
        given: dict[str, Any] = {}
        for key in ("orchestrator_url", "store"):
            if key in top:
                given[key] = self._checked(top[key], _url, key)
        for key in ("config_ttl_seconds", "lease_seconds", "drain_deadline_seconds"):
            if key in top and top[key].value is not None:
                given[key] = self._checked(top[key], DURATIONS[key], key)
        named = top.get("scale_sets")
        sets = [self._scale_set(own)] if named is None else self._list(named, own)
        self._refuse_twins(sets, named or tree)
        return ControllerFile(scale_sets=tuple(sets), warnings=tuple(self._warnings), **given)

    def _list(self, leaf: Leaf, common: Mapping[str, Leaf]) -> list[ControlledScaleSet]:
        if not isinstance(leaf.value, list) or not leaf.value:
            self._refuse(leaf.line, f"scale_sets must be a list (- pool: ...), not {leaf.said()}")
        found = []
        for inner in leaf.value:
            own = self._keys(inner, "a scale set", OF_A_SET)
            found.append(self._scale_set({**common, **own}, common.get("overrides")))
        return found

    def _scale_set(
        self, given: Mapping[str, Leaf], common: Leaf | None = None
    ) -> ControlledScaleSet:
        made: dict[str, Any] = {}
        for key, field in (("tenant_id", "tenant"), ("machine_group", "group"), ("pool", "pool")):
            if key in given and given[key].value is not None:
                made[field] = self._checked(given[key], NAMES[key], key)
        overrides = {} if common is None else self._overrides(common)
        if "overrides" in given:
            overrides |= self._overrides(given["overrides"])
        made["overrides"] = overrides
        self._launcher(given, made)
        self._algorithm(given, made)
        return ControlledScaleSet(**made)

    def _overrides(self, leaf: Leaf) -> dict[str, float]:
        found: dict[str, float] = {}
        names = (*limits.NAMES, *limits.UNUSED)
        known = self._keys(leaf, "overrides", names, limits.ALIASES)
        for key in limits.UNUSED.keys() & known.keys():
            line = known.pop(key).key_line
            why = limits.UNUSED[key]
            self._warnings.append(f"{self._path}, line {line}: {key} is not used: {why}")
        for key, inner in known.items():
            value = seconds(inner.value) if key.endswith("_seconds") else inner.value
            found[key] = self._checked(inner.replace(value=value), _number(key), key)
        return found

    def _launcher(self, given: Mapping[str, Leaf], made: dict[str, Any]) -> None:
        if "environment" in given:
            names = given["environment"].plain()
            check = settings.CHECKS["environment"]
            self._checked(given["environment"], lambda *_: check(names, "environment"), "")
            made["environment"] = names
        options: dict[str, Any] = {}
        if "launcher_options" in given:
            options = self._options(given["launcher_options"], "launcher_options")
        made["launcher_options"] = options
        if "launcher" in given:
            name = self._checked(given["launcher"], _launcher, "launcher")
            leaf = given.get("launcher_options", given["launcher"])
            self._checked(leaf, lambda *_: option_checks.options(name, options), "")
            made["launcher"] = name

    def _algorithm(self, given: Mapping[str, Leaf], made: dict[str, Any]) -> None:
        name, options = None, {}
        if "algorithm" in given:
            leaf = given["algorithm"]
            name = ALGORITHMS.get(str(leaf.value), leaf.value)
            self._checked(leaf, lambda *_: _algorithm(name), "algorithm")
        if "algorithm_options" in given:
            leaf = given["algorithm_options"]
            options = self._options(leaf, "algorithm_options")
            if name is None:
                self._refuse(leaf.key_line, "algorithm_options need an algorithm: name it too")
            wanted = PoolSettings(
                policy=name, policy_options=options, max_workers=limits.MAX_WORKERS
            )
            self._checked(leaf, lambda *_: policies.check(wanted), "")
        for key in options.keys() & made["overrides"].keys():
            if options[key] != made["overrides"][key]:
                self._warnings.append(
                    f"{self._path}: overrides.{key} and algorithm_options.{key} do not agree: "
                    f"{made['overrides'][key]:g} is used"
                )
        made.update(algorithm=name, algorithm_options=options)

    # -- leaves -----------------------------------------------------------------------------

    def _keys(
        self,
        leaf: Leaf,
        what: str,
        known: tuple[str, ...],
        aliases: Mapping[str, str] = ALIASES,
    ) -> dict[str, Leaf]:
        """A mapping by the names that we use ourselves."""
        if leaf.value is None:
            return {}
        if not isinstance(leaf.value, dict):
            self._refuse(leaf.line, f"{what} must be a mapping (key: value), not {leaf.said()}")
        found: dict[str, Leaf] = {}
        for key, inner in leaf.value.items():
            name = aliases.get(key, key)
            if name not in known:
                near = nearest(key, known)
                self._refuse(inner.key_line, f"{what} has no {key!r}{near}")
            if name in found and found[name].plain() != inner.plain():
                self._warnings.append(
                    f"{self._path}, line {inner.key_line}: {name} and its other name do not "
                    f"agree: {name} is used"
                )
            if key == name or name not in found:
                found[name] = inner
        return found

    def _options(self, leaf: Leaf, what: str) -> dict[str, Any]:
        if not isinstance(leaf.value, dict):
            self._refuse(leaf.line, f"{what} must be a mapping (option: value), not {leaf.said()}")
        return {
            key: seconds(inner.plain()) if key.endswith("_seconds") else inner.plain()
            for key, inner in leaf.value.items()
        }

    def _checked(self, leaf: Leaf, check: Callable[[object, str], Any], what: str) -> Any:
        try:
            return check(leaf.value, what)
        except InvalidInput as error:
            self._refuse(leaf.line, str(error))

    def _refuse_twins(self, sets: list[ControlledScaleSet], leaf: Leaf) -> None:
        seen = set()
        for one in sets:
            if (one.pool, one.group) in seen:
                self._refuse(leaf.key_line, f"there are two scale sets for {one.shown}")
            seen.add((one.pool, one.group))

    def _refuse(self, line: int, why: str) -> NoReturn:
        raise InvalidInput(f"{self._path}, line {line}: {why}")


# -- checks -------------------------------------------------------------------------------------


def _url(value: object, name: str) -> str:
    if not isinstance(value, str) or "://" not in value or not value.isprintable():
        raise InvalidInput(f"{name} must be a URL, not {value!r}")
    return value


def _label(value: object, name: str) -> str | None:
    return payload.label(value, name)


def _number(name: str) -> Callable[[object, str], float]:
    return lambda value, shown: limits.number(name, value, shown)


def _launcher(value: object, name: str) -> str:
    if value not in extensions.names("launcher"):
        raise InvalidInput(
            f"{name} must be {' or '.join(extensions.names('launcher'))}, not {value!r}"
        )
    return str(value)


def _algorithm(name: object) -> None:
    if name not in policies.NAMES:
        known = (*ALGORITHMS, *policies.NAMES)
        raise InvalidInput(f"there is no algorithm {name!r}{nearest(str(name), known)}")


def _duration(low: float) -> Callable[[object, str], float]:
    def check(value: object, name: str) -> float:
        found = payload.seconds(seconds(value), name)
        if found < low:
            raise InvalidInput(f"{name} must be at least {low:g} seconds, not {value!r}")
        return found

    return check


NAMES: dict[str, Callable[[object, str], Any]] = {
    "tenant_id": _label,
    "machine_group": _label,
    "pool": lambda value, _: payload.pool_name(value),
}
DURATIONS = {
    "config_ttl_seconds": _duration(0.0),
    "lease_seconds": _duration(SHORTEST_LEASE_SECONDS),
    "drain_deadline_seconds": _duration(0.0),
}
