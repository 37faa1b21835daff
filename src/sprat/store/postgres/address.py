"""What a postgresql:// URL says: where the server is, and the options that are ours."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sprat.core.errors import InvalidInput
from sprat.core.record import Record

SCHEMA = "sprat"
CONNECTIONS = 10
MAX_NAME = 40
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")


class PostgresAddress(Record):
    """`dsn` is for the driver, `shown` for people: without a password."""

    dsn: str
    shown: str
    host: str
    schema: str = SCHEMA
    pooled: bool | None = None  # behind PgBouncer or the like; None: find out
    connections: int = CONNECTIONS  # at most so many at once, one a thread that is in a verb


def parse(url: str) -> PostgresAddress:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInput(
            "the PostgreSQL URL cannot be read: write postgresql://user@host:5432/database"
        ) from None
    ours: dict[str, str] = {}
    theirs: list[tuple[str, str]] = []
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in ("schema", "pooled", "connections"):
            ours[name] = value
        else:
            theirs.append((name, value))
    hidden = [(name, value) for name, value in theirs if "password" not in name]
    host = unquote(dict(theirs).get("host") or parts.hostname or "the local server")
    return PostgresAddress(
        dsn=_dsn(f"postgresql://{parts.netloc}{parts.path}?{urlencode(theirs)}"),
        shown=_shown(parts.username, parts.hostname, port, parts.path, urlencode(hidden)),
        host=host if port is None else f"{host}:{port}",
        schema=_schema(ours.get("schema", SCHEMA)),
        pooled=_pooled(ours.get("pooled")),
        connections=_connections(ours.get("connections", str(CONNECTIONS))),
    )


def _dsn(dsn: str) -> str:
    """Refused here if the driver cannot read it: its own complaint may quote the password."""
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        said = str(error).strip()
        what = said if "query parameter" in said else "a special character is written as it is"
        raise InvalidInput(
            f"the PostgreSQL URL cannot be read ({what}): write postgresql://user@host/database, "
            "in a password %40 for @ and %25 for %, and after ? only options of libpq"
        ) from None
    return dsn


def _shown(user: str | None, host: str | None, port: int | None, path: str, query: str) -> str:
    who = f"{quote(unquote(user))}@" if user else ""
    where = f"{host or ''}{'' if port is None else f':{port}'}"
    return f"postgresql://{who}{where}{path or '/'}{'?' if query else ''}{query}"


def _schema(name: str) -> str:
    if not name or len(name) > MAX_NAME or not _NAME_CHARS.issuperset(name) or name[0].isdigit():
        raise InvalidInput(
            f"the schema {name!r} must be 1 to {MAX_NAME} of: small letters, digits, _"
        )
    return name


def _pooled(value: str | None) -> bool | None:
    if value not in (None, "yes", "no"):
        raise InvalidInput(f"pooled={value} in the URL: write pooled=yes or pooled=no")
    return None if value is None else value == "yes"


def _connections(value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= 1000:
        raise InvalidInput(f"connections={value} in the URL: write a number from 1 to 1000")
    return int(value)
