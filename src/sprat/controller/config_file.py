"""The file of a controller: what may stand in it, and the sentence when something else does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sprat.config import settings, text_file
from sprat.config.yaml_tree import Leaf
from sprat.controller import limits
from sprat.core import fields, payload
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.core.fields import Field
from sprat.core.model import PoolSettings
from sprat.core.record import Record
from sprat.launchers import option_checks
from sprat.scaling import policies

MAX_BYTES = 1_000_000
CONFIG_TTL_SECONDS = 60.0  # how long what the orchestrator said is good
LEASE_SECONDS = 15.0  # another controller takes over after this many seconds without a renewal
SHORTEST_LEASE_SECONDS = 1.0
# Names of the same algorithm elsewhere.
ALGORITHMS = {
    "queue_depth": "pending-per-worker",
    "percentage": "headroom",
}
OF_A_GROUP = "pending-per-worker"  # where no algorithm is named
ALIASES = {"group": "machine_group", "policy": "algorithm", "policy_options": "algorithm_options"}
RECORD_NAMES = {"tenant_id": "tenant", "machine_group": "group"}
OPTIONS = ("launcher_options", "algorithm_options", "overrides")


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


def _algorithm(name: object, _: str) -> None:
    known = (*ALGORITHMS, *policies.NAMES)
    if name not in known:
        raise InvalidInput(f"there is no algorithm {name!r}{did_you_mean(name, known)}")


URL = fields.kind(
    "a URL", lambda value: isinstance(value, str) and "://" in value and value.isprintable()
)
LABEL = fields.optional(fields.custom("1 to 128 printable characters", payload.label))
DURATION = fields.optional(fields.seconds())

OF_A_SET = {
    "tenant_id": LABEL,
    "machine_group": LABEL,
    "pool": fields.optional(
        fields.custom("a pool's name", lambda value, _: payload.pool_name(value))
    ),
    "launcher": settings.FIELDS["launcher"],
    "environment": settings.FIELDS["environment"],
    "algorithm": fields.custom(" or ".join(policies.NAMES), _algorithm),
}
OF_ALL = {
    "orchestrator_url": URL,
    "store": URL,
    "config_ttl_seconds": DURATION,
    "lease_seconds": fields.at_least(SHORTEST_LEASE_SECONDS, DURATION),
    "drain_deadline_seconds": DURATION,
}


def read(path: str) -> ControllerFile:
    from sprat.config import yaml_tree

    text = text_file.read(path, MAX_BYTES, missing="docs/operate/controller.md has an example")
    return _Reader(path).controller_file(yaml_tree.read(text, path))


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path
        self._warnings: list[str] = []

    def controller_file(self, tree: Leaf) -> ControllerFile:
        top = self._keys(tree, "the file", (*OF_ALL, "scale_sets", *OF_A_SET, *OPTIONS))
        named = top.pop("scale_sets", None)
        given = self._values(top, OF_ALL)
        own = {key: leaf for key, leaf in top.items() if key not in OF_ALL}
        sets = [self._scale_set(own)] if named is None else self._list(named, own)
        self._refuse_twins(sets, named or tree)
        return ControllerFile(scale_sets=tuple(sets), warnings=tuple(self._warnings), **given)

    def _list(self, leaf: Leaf, common: Mapping[str, Leaf]) -> list[ControlledScaleSet]:
        if not isinstance(leaf.value, list) or not leaf.value:
            leaf.refuse(f"scale_sets must be a list (- pool: ...), not {leaf.said()}")
        return [
            self._scale_set(
                {**common, **self._keys(inner, "a scale set", (*OF_A_SET, *OPTIONS))},
                common.get("overrides"),
            )
            for inner in leaf.value
        ]

    def _scale_set(
        self, given: Mapping[str, Leaf], common: Leaf | None = None
    ) -> ControlledScaleSet:
        values = self._values(given, OF_A_SET)
        values["overrides"] = {
            **({} if common is None else self._overrides(common)),
            **(self._overrides(given["overrides"]) if "overrides" in given else {}),
        }
        self._launcher(given, values)
        self._algorithm(given, values)
        return ControlledScaleSet(
            **{RECORD_NAMES.get(name, name): value for name, value in values.items()}
        )

    def _overrides(self, leaf: Leaf) -> dict[str, Any]:
        known = self._keys(leaf, "overrides", (*limits.FIELDS, *limits.UNUSED), limits.ALIASES)
        for key in limits.UNUSED.keys() & known.keys():
            line = known.pop(key).key_line
            why = limits.UNUSED[key]
            self._warnings.append(f"{self._path}, line {line}: {key} is not used: {why}")
        return self._values(known, limits.FIELDS)

    def _launcher(self, given: Mapping[str, Leaf], values: dict[str, Any]) -> None:
        name = values.get("launcher")
        options: dict[str, Any] = {}
        if "launcher_options" in given:
            options = self._options(
                given["launcher_options"],
                "launcher_options",
                lambda key, value: (
                    option_checks.option(name, key, value, in_file=True) if name else value
                ),
            )
        if name is not None:
            leaf = given.get("launcher_options", given["launcher"])
            leaf.checked(option_checks.options, name, options)
        values["launcher_options"] = options

    def _algorithm(self, given: Mapping[str, Leaf], values: dict[str, Any]) -> None:
        if "algorithm" in values:
            values["algorithm"] = ALGORITHMS.get(values["algorithm"], values["algorithm"])
        if "algorithm_options" not in given:
            return
        leaf, name = given["algorithm_options"], values.get("algorithm")
        if name is None:
            leaf.key.refuse("algorithm_options need an algorithm: name it too")
        options = self._options(
            leaf,
            "algorithm_options",
            lambda key, value: policies.option(name, key, value, in_file=True),
        )
        wanted = PoolSettings(policy=name, policy_options=options, max_workers=fields.MAX_WORKERS)
        leaf.checked(policies.check, wanted)
        for key in options.keys() & values["overrides"].keys():
            if options[key] != values["overrides"][key]:
                self._warnings.append(
                    f"{self._path}: overrides.{key} and algorithm_options.{key} do not agree: "
                    f"{values['overrides'][key]:g} is used"
                )
        values["algorithm_options"] = options

    # -- leaves -----------------------------------------------------------------------------

    def _keys(
        self,
        leaf: Leaf,
        what: str,
        known: tuple[str, ...],
        aliases: Mapping[str, str] = ALIASES,
    ) -> dict[str, Leaf]:
        """A mapping by the names that we use ourselves."""
        found: dict[str, Leaf] = {}
        for key, inner in leaf.mapping(what).items():
            name = aliases.get(key, key)
            if name not in known:
                inner.key.refuse(f"{what} has no {key!r}{did_you_mean(key, known)}")
            if name in found and found[name].plain() != inner.plain():
                self._warnings.append(
                    f"{self._path}, line {inner.key_line}: {name} and its other name do not "
                    f"agree: {name} is used"
                )
            if key == name or name not in found:
                found[name] = inner
        return found

    def _values(self, given: Mapping[str, Leaf], table: Mapping[str, Field]) -> dict[str, Any]:
        """The values of those keys that the table has; without those that are null."""
        values = {
            key: leaf.checked(table[key].read, leaf.plain(), key)
            for key, leaf in given.items()
            if key in table
        }
        return {key: value for key, value in values.items() if value is not None}

    def _options(
        self, leaf: Leaf, what: str, read: Callable[[str, object], object]
    ) -> dict[str, Any]:
        if not isinstance(leaf.value, dict):
            leaf.refuse(f"{what} must be a mapping (option: value), not {leaf.said()}")
        return {key: inner.checked(read, key, inner.plain()) for key, inner in leaf.value.items()}

    def _refuse_twins(self, sets: list[ControlledScaleSet], leaf: Leaf) -> None:
        known = set()
        for scale_set in sets:
            if (scale_set.pool, scale_set.group) in known:
                leaf.key.refuse(f"there are two scale sets for {scale_set.shown}")
            known.add((scale_set.pool, scale_set.group))
