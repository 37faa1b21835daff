"""`sprat pools`: the pools of a store, and the end of one."""

from __future__ import annotations

from sprat.cli.arguments import CommandParser, Namespace
from sprat.cli.main import DONE
from sprat.cli.output import document, talk
from sprat.cli.target import known_pool, open_existing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.store.store import Store


def parser() -> CommandParser:
    made = CommandParser(prog="sprat pools", has_json=False, has_url=False)
    family = made.family()
    what = "list the names of the pools"
    family.add_parser("list", help=what, what=what)
    what = "delete a pool with its settings, finished jobs and statistics"
    family.add_parser("delete", help=what, what=what).add_argument("pool", metavar="POOL")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        ACTIONS[asked.action](store, asked)
    return DONE


def _list(store: Store, asked: Namespace) -> None:
    names = store.pools()
    if asked.json:
        document({"pools": names})
    elif names:
        print("\n".join(names))
    else:
        print("no pools")


def _delete(store: Store, asked: Namespace) -> None:
    from sprat.triggers import registry

    pool = known_pool(store, asked.pool)
    store.delete_pool(pool)
    if asked.json:
        document({"deleted": pool})
    else:
        print(f"pool {pool} is deleted")
    for trigger in registry.every(store):
        if trigger.pool == pool:
            talk(
                f"sprat: the trigger {trigger.name} still names the pool: "
                f"`sprat triggers remove {trigger.name}`"
            )


ACTIONS: dict[str, Callable[[Store, Namespace], None]] = {"list": _list, "delete": _delete}
