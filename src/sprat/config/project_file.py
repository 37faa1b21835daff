"""sprat.yml, the environment and flags, turned into settings: flags beat environment beats file.

An error in the file is reported in one sentence with file, line and key. Only reading the whole
file needs a YAML library (see yaml_tree.py): finding the store's URL does not.
"""

from __future__ import annotations

import os

from sprat.config import environment, probe_settings, text_file
from sprat.config.probe_settings import Lifecycle
from sprat.core import extensions, fields, payload
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sprat.config.trigger import Trigger
    from sprat.config.yaml_tree import Leaf

FILE = "sprat.yml"
DEFAULT_URL = "sqlite:///sprat.db"
TOP = ("store", "launcher", "pools", "triggers", "worker_lifecycle")
MAX_BYTES = 1_000_000
NOT_PLAIN = frozenset(" \t\"'{}[],#")  # characters that may mean something else to YAML


class Config(Record):
    """A checked sprat.yml: the store's URL as an absolute one, each pool's full settings, and the
    triggers."""

    store: str | None
    pools: Mapping[str, PoolSettings]
    triggers: tuple[Trigger, ...] = ()
    worker_lifecycle: Lifecycle = Lifecycle()


def load(path: str) -> Config:
    """Read and check a file."""
    directory = os.path.dirname(os.path.abspath(path))
    return checked(_tree(_text(path), path), directory)


def store_url(flag: str | None, environment: Mapping[str, str], *, path: str = FILE) -> str:
    """Which store is meant: the flag, SPRAT_URL, `store` in the file, or the default."""
    if flag is not None:
        return flag
    if environment.get("SPRAT_URL"):
        return environment["SPRAT_URL"]
    if not os.path.exists(path):
        return DEFAULT_URL
    text = _text(path)
    url = _store_at_a_glance(text)
    if url is None:
        top = _tree(text, path).mapping("the file")
        url = _store(top["store"]) if "store" in top else ""
    return beside(url or DEFAULT_URL, os.path.dirname(path))


def named_store(environment: Mapping[str, str]) -> str | None:
    """The store that SPRAT_URL or the sprat.yml of this directory names; None without either."""
    if not environment.get("SPRAT_URL") and not os.path.exists(FILE):
        return None
    return store_url(None, environment)


def check_overrides(variables: Mapping[str, str]) -> dict[str, int]:
    """What SPRAT_MAX_WORKERS and SPRAT_MIN_WORKERS say about one scaling pass."""
    workers = fields.workers()
    table = {"max_workers": workers, "min_workers": workers}
    return environment.numbers(variables, table, "SPRAT_")


def beside(url: str, directory: str) -> str:
    """A relative SQLite URL of a file, as seen from where the program runs."""
    scheme, colon, rest = url.partition(":///")
    if not directory or not colon or scheme != "sqlite" or rest.startswith("/") or not rest:
        return url
    return f"sqlite:///{os.path.join(directory, rest)}"


# -- reading ------------------------------------------------------------------------------------


def _text(path: str) -> str:
    return text_file.read(path, MAX_BYTES, missing="`sprat init` writes one")


def _tree(text: str, path: str) -> Leaf:
    from sprat.config import yaml_tree

    return yaml_tree.read(text, path)


def _store_at_a_glance(text: str) -> str | None:
    """The URL where it can be told without a YAML parser, "" for none; None: it cannot."""
    if "store" not in text:
        return ""
    for line in text.splitlines():
        if line.startswith("store: "):
            value = line[7:].split(" #")[0].strip()
            is_plain = value[:1].isalpha() and value[-1] != ":" and not set(value) & NOT_PLAIN
            return value if is_plain else None
    return None


# -- checking -----------------------------------------------------------------------------------


def checked(tree: Leaf, directory: str) -> Config:
    """The meaning of a file's tree, or InvalidInput."""
    from sprat.config import settings

    top = tree.mapping("the file")
    for key, leaf in top.items():
        if key not in TOP:
            leaf.key.refuse(f"unknown key {key!r}{did_you_mean(key, TOP)}")
    common: dict[str, object] = {}
    if (limit := environment.tenant_limit()) is not None:
        common["tenant_limit"] = limit
    if "launcher" in top:
        leaf = top["launcher"]
        common["launcher"] = leaf.checked(settings.FIELDS["launcher"], leaf.plain(), "launcher")
    pools = top["pools"].mapping("pools") if "pools" in top else {}
    return Config(
        store=beside(_store(top["store"]), directory) if "store" in top else None,
        pools={name: _pool(name, leaf, common, directory) for name, leaf in pools.items()},
        triggers=_triggers(top["triggers"], directory) if "triggers" in top else (),
        worker_lifecycle=_lifecycle(top["worker_lifecycle"])
        if "worker_lifecycle" in top
        else Lifecycle(),
    )


def _store(leaf: Leaf) -> str:
    url = leaf.value
    if not isinstance(url, str) or "://" not in url or not url.isprintable():
        leaf.refuse(f"store must be a URL such as {DEFAULT_URL}, not {leaf.said()}")
    return url


def _pool(name: str, leaf: Leaf, common: Mapping[str, object], directory: str) -> PoolSettings:
    from sprat.config import settings

    leaf.key.checked(payload.pool_name, name)
    entries = leaf.mapping(f"pools.{name}")
    given: dict[str, object] = {}
    for key, inner in entries.items():
        if key == "events":
            inner.key.refuse("events is made from triggers: write those instead")
        field = inner.key.checked(settings.find, key, f"pools.{name}")
        given[key] = inner.checked(field.read, inner.plain(), f"pools.{name}.{key}")
    if "policy_options" in given:
        policy = str(given.get("policy", PoolSettings().policy))
        policies = extensions.load("check", "policies")
        given["policy_options"] = _options(
            entries["policy_options"],
            "policy_options",
            lambda key, value: policies.option(policy, key, value, in_file=True),
        )
    if "launcher_options" in given:
        launcher = str(given.get("launcher") or common.get("launcher") or PoolSettings().launcher)
        given["launcher_options"] = _options(
            entries["launcher_options"],
            "launcher_options",
            lambda key, value: _launcher_option(launcher, key, value, directory),
        )
    given["directory"] = os.path.abspath(os.path.join(directory, str(given.get("directory") or "")))
    try:
        made = settings.changed(PoolSettings(), {**common, **given})
    except InvalidInput as error:
        leaf.key.refuse(f"pools.{name}: {error}")
    return made.replace(start_on_push=given.get("start_on_push", made.has_processor))


def _triggers(leaf: Leaf, directory: str) -> tuple[Trigger, ...]:
    if leaf.value is None:
        return ()
    if not isinstance(leaf.value, list):
        leaf.exact.refuse(f"triggers must be a list (- name: ...), not {leaf.said()}")
    found: dict[str, Trigger] = {}
    for inner in leaf.value:
        trigger = _trigger(inner, directory)
        if trigger.name in found:
            inner.exact.refuse(f"there are two triggers with the name {trigger.name}")
        found[trigger.name] = trigger
    return tuple(found.values())


def _trigger(leaf: Leaf, directory: str) -> Trigger:
    from sprat.config import trigger

    if not isinstance(leaf.value, dict):
        leaf.exact.refuse(f"a trigger must be a mapping (key: value), not {leaf.said()}")
    given: dict[str, object] = {}
    for key, inner in leaf.value.items():
        field = inner.key.exact.checked(fields.find, trigger.FIELDS, key, "a trigger has no")
        given[key] = inner.exact.checked(field.read, inner.plain(), key)
    given["directory"] = os.path.abspath(os.path.join(directory, str(given.get("directory") or "")))
    made: Trigger = leaf.exact.checked(trigger.checked, given)
    return made


def _lifecycle(leaf: Leaf) -> Lifecycle:
    entries = leaf.mapping("worker_lifecycle")
    values = {name: inner.plain() for name, inner in entries.items()}
    made: Lifecycle = leaf.key.checked(probe_settings.checked, values)
    return made


def _options(leaf: Leaf, setting: str, read: Callable[[str, object], object]) -> dict[str, object]:
    """The options of a policy or launcher, each checked in its own line; what they mean together
    is checked later."""
    options: dict[str, object] = {}
    for key, inner in leaf.value.items():
        try:
            options[key] = read(key, inner.plain())
        except InvalidInput as error:
            inner.key.refuse(f"{setting}.{key}: {error}")
    return options


def _launcher_option(launcher: str, key: str, value: object, directory: str) -> object:
    """The files that some options name are read here: a process that launches later knows only
    the store."""
    option_checks = extensions.load("check", "launchers")
    if isinstance(value, str) and key in option_checks.files(launcher):
        file = os.path.join(directory, value)
        value = _tree(text_file.read(file, MAX_BYTES, missing=f"{key} names it"), file).plain()
    return option_checks.option(launcher, key, value, in_file=True)
