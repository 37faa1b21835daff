"""`sprat keys`: the API keys of the orchestrator that serves this store."""

from __future__ import annotations

import sys

from sprat.cli.arguments import CommandParser, seconds
from sprat.cli.main import DONE
from sprat.cli.output import document, table
from sprat.cli.target import open_any, open_existing, url_of
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.cli.arguments import Namespace
    from sprat.server.keys import Key
    from sprat.store.store import Store


def parser() -> CommandParser:
    from sprat.server.keys import ROTATION_SECONDS
    from sprat.server.roles import ROLES

    made = CommandParser(prog="sprat keys", has_json=False, has_url=False)
    family = made.family()
    what = "make a key and print it"
    create = family.add_parser("create", help=what, what=what)
    create.add_argument(
        "--role",
        dest="roles",
        action="append",
        required=True,
        choices=ROLES,
        help="what it may do; give several for several",
    )
    create.add_argument("--tenant", help="whose part of the store it sees; else all of it")
    create.add_argument("--label", help="what it is for, in your words")
    what = "list the keys, without their secrets"
    family.add_parser("list", help=what, what=what)
    what = "end a key now"
    family.add_parser("revoke", help=what, what=what).add_argument("id", metavar="ID")
    what = "make a new key like an old one, and print it"
    rotate = family.add_parser("rotate", help=what, what=what)
    rotate.add_argument("id", metavar="ID")
    rotate.add_argument(
        "--grace",
        type=seconds,
        default=ROTATION_SECONDS,
        metavar="SECONDS",
        help="how long the old one stays good; default 1d",
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    if url_of(asked.url).startswith("http"):
        raise InvalidInput(
            "keys are kept in the store, and nobody reads them over HTTP: give the URL of the "
            "store itself, where the server runs"
        )
    return ACTIONS[asked.action](asked)


def _create(asked: Namespace) -> int:
    from sprat.server import keys

    with open_any(asked.url) as store:
        key, text = keys.create(
            store.backend, tuple(asked.roles), tenant=asked.tenant, label=asked.label
        )
        _note(store, "create key", key.id)
    return _print_new(asked, key, text)


def _rotate(asked: Namespace) -> int:
    from sprat.server import keys

    with open_existing(asked.url) as store:
        key, text = keys.rotate(store.backend, asked.id, seconds=asked.grace)
        _note(store, "rotate key", asked.id)
    return _print_new(asked, key, text)


def _list(asked: Namespace) -> int:
    from sprat.server import keys

    with open_existing(asked.url) as store:
        found = keys.listed(store.backend)
    if asked.json:
        document({"keys": [_public(key) for key in found]})
        return DONE
    if not found:
        print("no keys yet: `sprat keys create --role admin` makes one")
        return DONE
    table(
        ("ID", "ROLES", "TENANT", "LABEL"),
        ((k.id, ",".join(k.roles), k.tenant or "-", k.label or "-") for k in found),
        narrow=3,
    )
    return DONE


def _revoke(asked: Namespace) -> int:
    from sprat.server import keys

    with open_existing(asked.url) as store:
        keys.revoke(store.backend, asked.id)
        _note(store, "revoke key", asked.id)
    if asked.json:
        document({"id": asked.id, "revoked": True})
    else:
        print(f"key {asked.id} is revoked; servers forget it within {keys.REMEMBER_SECONDS:.0f} s")
    return DONE


def _note(store: Store, act: str, key_id: str) -> None:
    """For the audit log: who changes keys has the store, and so no key of its own."""
    from sprat.server import audit, roles

    audit.note(store.backend, roles.Caller(key_id="command", roles=frozenset()), act, key_id)


def _print_new(asked: Namespace, key: Key, text: str) -> int:
    """The key alone on stdout, so that it can go into a file or a variable."""
    if asked.json:
        document({**_public(key), "key": text})
        return DONE
    print(f"sprat: key {key.id} for {', '.join(key.roles)}; it is shown once:", file=sys.stderr)
    print(text)
    return DONE


def _public(key: Key) -> dict[str, Any]:
    return {name: value for name, value in key.as_dict().items() if name != "digest"}


ACTIONS = {"create": _create, "list": _list, "revoke": _revoke, "rotate": _rotate}
