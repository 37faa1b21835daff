"""What a command is about: the store that is meant, and a pool that is in it."""

from __future__ import annotations

import os
import sys
import time

from sprat.core.errors import InvalidInput, StoreWarning
from sprat.store.open_store import open_store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.store import Store


def url_of(flag: str | None, *, path: str | None = None) -> str:
    """The URL that is meant, with `path` as the sprat.yml to look into."""
    url = flag if flag is not None else os.environ.get("SPRAT_URL")
    if not url:
        from sprat.config import (
            project_file,  # here: with --url it is not needed
        )

        url = project_file.store_url(flag, os.environ, path=path or project_file.FILE)
    if url.startswith("memory:"):
        raise InvalidInput("memory:// is gone when the command ends: use sqlite:///sprat.db")
    if url.startswith("redis"):
        _warn_in_sentences()
    return url


def _warn_in_sentences() -> None:
    """A server that may lose jobs is reported once, as a sentence on stderr."""
    import warnings

    show, told = warnings.showwarning, set[str]()

    def told_once(
        message: Warning | str, category: type[Warning], *about: Any, **more: Any
    ) -> None:
        sentence = f"sprat: warning: {message}"
        if not issubclass(category, StoreWarning):
            show(message, category, *about, **more)
        elif sentence not in told:
            told.add(sentence)
            print(sentence, file=sys.stderr)

    warnings.showwarning = told_once


def open_any(flag: str | None) -> Store:
    """The store, made now if there is none."""
    url = url_of(flag)
    if not exists(url):
        _check_file(flag)
    return open_store(url)


def open_existing(flag: str | None) -> Store:
    """The store; a command that only looks at one makes none."""
    url = url_of(flag)
    if not exists(url):
        _check_file(flag)
        raise InvalidInput(
            f"there is no store {sqlite_file(url)} yet: `sprat apply` or `sprat push --create` "
            f"makes it, --url or SPRAT_URL names another"
        )
    return open_store(url)


def _check_file(flag: str | None) -> None:
    """No store is where it is said to be: perhaps the file that says so is wrong."""
    from sprat.config import project_file

    if flag is None and not os.environ.get("SPRAT_URL") and os.path.exists(project_file.FILE):
        project_file.load(project_file.FILE)


def exists(url: str) -> bool:
    """Whether there is a store to open. Only a file can be missing."""
    file = sqlite_file(url)
    return file is None or os.path.exists(file)


def sqlite_file(url: str) -> str | None:
    """The path in a URL, if it is the URL of a file."""
    scheme, _, rest = url.partition(":///")
    return (rest.partition("?")[0] or None) if scheme == "sqlite" else None


def known_pool(store: Store, name: str, advice: str = "") -> str:
    """The name of a pool that exists, or InvalidInput with those that do."""
    store.pool(name)  # complains about what cannot be a name
    pools = store.pools()
    if name in pools:
        return name
    near = ", nor any other: `sprat apply` makes them"
    if pools:
        from sprat.core.did_you_mean import did_you_mean

        near = did_you_mean(name, pools)
    raise InvalidInput(f"there is no pool {name!r}{near}{advice}")


def workable_pool(store: Store, name: str) -> str:
    """The same, for one that workers can be started for."""
    from sprat.fleet.launcher import require_processor

    require_processor(store.pool(known_pool(store, name)).state().settings, name)
    return name


def start_fleet(store: Store, pool: str) -> None:
    """After work became ready by hand: start a scaling pass, if the pool wants that."""
    if store.url.startswith("http"):
        return  # the orchestrator sees to it, or who runs workers for it
    from sprat.triggers.events import work_added

    work_added(store, pool)


def attend(store: Store, pool: str) -> None:
    """Have a process of this machine look after the pool until its work is sure to be taken."""
    if store.url.startswith("http"):
        return
    from sprat.fleet.launcher import open_launcher

    settings = store.pool(pool).state().settings
    if store.pool(pool).size() or store.pool(pool).counts().claimed:
        open_launcher(settings.launcher).attend(store.url, pool, settings)


def store_now(store: Store) -> float:
    """The time by the store's clock."""
    ahead = store.describe().get("clock_ahead_seconds", 0.0)
    return time.time() + (ahead if isinstance(ahead, float) else 0.0)
