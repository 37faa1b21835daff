"""sprat.yml, the environment and flags, turned into settings: flags beat environment beats file.

Whatever is wrong in the file is told in one sentence with file, line and key. Only reading all of
it needs a YAML library (see yaml_tree.py): who knows the store's URL never pays for that.
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
    from typing import NoReturn

    from sprat.config.trigger import Trigger
    from sprat.config.yaml_tree import Leaf
    from sprat.core.fields import Field

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
    return checked(
        _tree(_text(path), path),
        path,
        directory,
    )


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
        top = _mapping(_tree(text, path), path, "the file")
        url = _store(top["store"], path) if "store" in top else ""
    return beside(url or DEFAULT_URL, os.path.dirname(path))


def named_store(environment: Mapping[str, str]) -> str | None:
    """The store that SPRAT_URL or the sprat.yml of this directory names; None without either."""
    if not environment.get("SPRAT_URL") and not os.path.exists(FILE):
        return None
    return store_url(None, environment)


def check_overrides(environment: Mapping[str, str]) -> dict[str, int]:
    """What SPRAT_MAX_WORKERS and SPRAT_MIN_WORKERS say about one scaling pass."""
    found = {}
    for name in ("max_workers", "min_workers"):
        variable = f"SPRAT_{name.upper()}"
        text = environment.get(variable)
        if text:
            found[name] = fields.workers()(_number(text), variable)
    return found


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


def checked(tree: Leaf, path: str, directory: str) -> Config:
    """The meaning of a file's tree, or InvalidInput."""
    top = _mapping(tree, path, "the file")
    for key, leaf in top.items():
        if key not in TOP:
            _refuse(path, leaf.key_line, f"unknown key {key!r}{did_you_mean(key, TOP)}")
    store = _store(top["store"], path) if "store" in top else None
    common: dict[str, object] = {}
    if (limit := environment.tenant_limit()) is not None:
        common["tenant_limit"] = limit
    if "launcher" in top:
        from sprat.config import settings

        common["launcher"] = _setting(
            top["launcher"], settings.FIELDS["launcher"], "launcher", path
        )
    pools = {}
    if "pools" in top:
        for name, leaf in _mapping(top["pools"], path, "pools").items():
            pools[name] = _pool(name, leaf, common, path=path, directory=directory)
    return Config(
        store=None if store is None else beside(store, directory),
        pools=pools,
        triggers=_triggers(top["triggers"], path, directory) if "triggers" in top else (),
        worker_lifecycle=_lifecycle(top.get("worker_lifecycle"), path),
    )


def _store(leaf: Leaf, path: str) -> str:
    url = leaf.value
    if not isinstance(url, str) or "://" not in url or not url.isprintable():
        _refuse(path, leaf.line, f"store must be a URL such as {DEFAULT_URL}, not {leaf.said()}")
    return url


def _pool(
    name: str, leaf: Leaf, common: Mapping[str, object], *, path: str, directory: str
) -> PoolSettings:
    from sprat.config import settings

    try:
        payload.pool_name(name)
    except InvalidInput as error:
        _refuse(path, leaf.key_line, str(error))
    given: dict[str, object] = {}
    for key, inner in _mapping(leaf, path, f"pools.{name}").items():
        if key == "events":
            _refuse(path, inner.key_line, "events is made from triggers: write those instead")
        try:
            field = settings.find(key, f"pools.{name}")
        except InvalidInput as error:
            _refuse(path, inner.key_line, str(error))
        given[key] = _setting(inner, field, f"pools.{name}.{key}", path)
    if "policy_options" in given:
        policy = str(given.get("policy", PoolSettings().policy))
        policies = extensions.load("check", "policies")
        given["policy_options"] = _options(
            leaf.value["policy_options"],
            "policy_options",
            lambda key, value: policies.option(policy, key, value, in_file=True),
            path=path,
        )
    if "launcher_options" in given:
        launcher = str(given.get("launcher") or common.get("launcher") or PoolSettings().launcher)
        given["launcher_options"] = _options(
            leaf.value["launcher_options"],
            "launcher_options",
            lambda key, value: _launcher_option(launcher, key, value, directory),
            path=path,
        )
    given["directory"] = os.path.abspath(os.path.join(directory, str(given.get("directory") or "")))
    try:
        made = settings.changed(PoolSettings(), {**common, **given})
        starts = given.get("start_on_push", settings.has_processor(made))
        return made.replace(start_on_push=starts)
    except InvalidInput as error:
        _refuse(path, leaf.key_line, f"pools.{name}: {error}")


def _triggers(leaf: Leaf, path: str, directory: str) -> tuple[Trigger, ...]:
    if leaf.value is None:
        return ()
    if not isinstance(leaf.value, list):
        _refuse_here(path, leaf, f"triggers must be a list (- name: ...), not {leaf.said()}")
    found: dict[str, Trigger] = {}
    for inner in leaf.value:
        trigger = _trigger(inner, path, directory)
        if trigger.name in found:
            _refuse_here(path, inner, f"there are two triggers with the name {trigger.name}")
        found[trigger.name] = trigger
    return tuple(found.values())


def _trigger(leaf: Leaf, path: str, directory: str) -> Trigger:
    from sprat.config import trigger

    given: dict[str, object] = {}
    if not isinstance(leaf.value, dict):
        _refuse_here(path, leaf, f"a trigger must be a mapping (key: value), not {leaf.said()}")
    for key, inner in leaf.value.items():
        place = inner.replace(line=inner.key_line, column=inner.key_column)
        try:
            field = fields.find(trigger.FIELDS, key, "a trigger has no")
            place = inner
            given[key] = field.read(inner.plain(), key)
        except InvalidInput as error:
            _refuse_here(path, place, str(error))
    given["directory"] = os.path.abspath(os.path.join(directory, str(given.get("directory") or "")))
    try:
        return trigger.checked(given)
    except InvalidInput as error:
        _refuse_here(path, leaf, str(error))


def _lifecycle(leaf: Leaf | None, path: str) -> Lifecycle:
    if leaf is None:
        return Lifecycle()
    entries = _mapping(leaf, path, "worker_lifecycle")
    try:
        return probe_settings.checked({key: inner.plain() for key, inner in entries.items()})
    except InvalidInput as error:
        _refuse(path, leaf.key_line, str(error))


def _setting(leaf: Leaf, field: Field, what: str, path: str) -> object:
    try:
        return field.read(leaf.plain(), what)
    except InvalidInput as error:
        _refuse(path, leaf.line, str(error))


def _options(
    leaf: Leaf, setting: str, read: Callable[[str, object], object], *, path: str
) -> dict[str, object]:
    """The options of a policy or launcher, each checked in its own line; what they mean together
    is checked later."""
    options: dict[str, object] = {}
    for key, inner in leaf.value.items():
        try:
            options[key] = read(key, inner.plain())
        except InvalidInput as error:
            _refuse(path, inner.key_line, f"{setting}.{key}: {error}")
    return options


def _launcher_option(launcher: str, key: str, value: object, directory: str) -> object:
    """The files that some options name are read here: a process that launches later knows only
    the store."""
    option_checks = extensions.load("check", "launchers")
    if isinstance(value, str) and key in option_checks.files(launcher):
        file = os.path.join(directory, value)
        value = _tree(text_file.read(file, MAX_BYTES, missing=f"{key} names it"), file).plain()
    return option_checks.option(launcher, key, value, in_file=True)


def _mapping(leaf: Leaf, path: str, what: str) -> dict[str, Leaf]:
    if leaf.value is None:
        return {}
    if not isinstance(leaf.value, dict):
        _refuse(path, leaf.line, f"{what} must be a mapping (key: value), not {leaf.said()}")
    found: dict[str, Leaf] = leaf.value
    return found


def _number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text


def _refuse_here(path: str, leaf: Leaf, why: str) -> NoReturn:
    raise InvalidInput(f"{path}, line {leaf.line}, column {leaf.column}: {why}")


def _refuse(path: str, line: int, why: str) -> NoReturn:
    raise InvalidInput(f"{path}, line {line}: {why}")
