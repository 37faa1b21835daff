"""Writes what the reference says about settings from their declarations (sprat.core.fields).

    python tools/settings_reference.py

It fills the tables between `<!-- fields: NAME -->` and `<!-- end -->` in the pages of docs/, and
writes docs/reference/sprat.schema.json. tests/test_settings_reference.py fails while they are old.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sprat.config import probe_settings, project_file, settings, trigger
from sprat.controller import limits
from sprat.core import extensions
from sprat.core import fields as kinds
from sprat.core.fields import Field
from sprat.core.model import PoolSettings
from sprat.core.record import Record
from sprat.launchers.docker import options as docker
from sprat.launchers.kubernetes import options as kubernetes
from sprat.scaling import policies

DOCS = Path(__file__).parent.parent / "docs"
PAGES = (
    *("reference/settings.md", "operate/docker.md", "operate/kubernetes.md"),
    "operate/controller.md",
)
SCHEMA = DOCS / "reference" / "sprat.schema.json"
PLACE = re.compile(r"(<!-- fields: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
NAME = {"pattern": trigger.NAME["pattern"]}

TABLES: dict[str, tuple[Mapping[str, Field], type[Record]]] = {
    "pools": (settings.FIELDS, PoolSettings),
    "triggers": (trigger.FIELDS, trigger.Trigger),
    "worker_lifecycle": (probe_settings.FIELDS, probe_settings.Lifecycle),
    "docker": (docker.FIELDS, docker.Options),
    "kubernetes": (kubernetes.FIELDS, kubernetes.Options),
    "limits": (limits.FIELDS, limits.ScaleSetLimits),
}
# Defaults that the record does not know: where the file is read they are put in.
DEFAULTS = {
    ("pools", "directory"): "that of sprat.yml",
    ("pools", "start_on_push"): "true if it has a handler or a command",
    ("triggers", "directory"): "that of the file",
}


# -- tables -------------------------------------------------------------------------------------


def page(text: str) -> str:
    """A page with its tables as they should be."""
    return PLACE.sub(lambda place: f"{place[1]}{table(place[2])}{place[3]}", text)


def table(name: str) -> str:
    fields, record = TABLES[name]
    rows = ["| name | default | allowed | |", "|---|---|---|---|"]
    for key, field in fields.items():
        default = DEFAULTS.get((name, key)) or shown(record._defaults.get(key))
        allowed = field.allowed.replace(kinds.seconds().allowed, "seconds")
        cells = (f"`{key}`", default, allowed, field.meaning)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "".join(f"{row}\n" for row in rows)


def shown(default: Any) -> str:
    if default in (None, (), {}, ""):
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        return f"{default / 86400:g}d" if default >= 86400 else f"{default:g}"
    return f"[{', '.join(default)}]" if isinstance(default, tuple) else str(default)


# -- schema -------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """The JSON schema of sprat.yml. Draft 7 is what editors know best."""
    top = {
        "store": {"type": "string", "pattern": "://", "description": "the URL of the store"},
        "launcher": value(settings.FIELDS["launcher"]),
        "pools": {
            "type": ["object", "null"],
            "propertyNames": NAME,
            "additionalProperties": {"$ref": "#/definitions/pool"},
        },
        "triggers": {"type": ["array", "null"], "items": {"$ref": "#/definitions/trigger"}},
        "worker_lifecycle": {**closed(probe_settings.FIELDS), "type": ["object", "null"]},
    }
    assert list(top) == list(project_file.TOP)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "sprat.yml",
        "type": "object",
        "properties": top,
        "additionalProperties": False,
        "definitions": {
            "pool": pool(),
            "trigger": {**closed(trigger.FIELDS), "required": ["name", "type"]},
            **{f"policy_{name}": closed(policies.find(name).FIELDS) for name in policies.NAMES},
            **{f"launcher_{name}": closed(launcher_fields(name)) for name in LAUNCHERS},
        },
    }


def pool() -> dict[str, Any]:
    """The settings of a pool. Its policy and its launcher say which options there are; a pool that
    names no launcher has that of the file, which may be any."""
    written = {name: field for name, field in settings.FIELDS.items() if name != "events"}
    default = PoolSettings().policy
    any_launcher = {"anyOf": [{"$ref": f"#/definitions/launcher_{name}"} for name in LAUNCHERS]}
    return {
        **closed(written),
        "type": ["object", "null"],
        "allOf": [
            *(options("policy", name, is_default=name == default) for name in policies.NAMES),
            *(options("launcher", name) for name in LAUNCHERS),
            {
                "if": {"not": {"required": ["launcher"]}},
                "then": {"properties": {"launcher_options": any_launcher}},
            },
        ],
    }


LAUNCHERS = extensions.names("launcher")


def launcher_fields(name: str) -> Mapping[str, Field]:
    return TABLES[name][0] if name in TABLES else {}


def options(setting: str, name: str, *, is_default: bool = False) -> dict[str, Any]:
    chosen = {"properties": {setting: {"const": name}}}
    chosen |= {} if is_default else {"required": [setting]}
    allowed = {"$ref": f"#/definitions/{setting}_{name}"}
    return {"if": chosen, "then": {"properties": {f"{setting}_options": allowed}}}


def closed(fields: Mapping[str, Field]) -> dict[str, Any]:
    """A mapping with these keys and no others."""
    return {
        "type": "object",
        "properties": {name: value(field) for name, field in fields.items()},
        "additionalProperties": False,
    }


def value(field: Field) -> dict[str, Any]:
    return {**field.schema, "description": LINK.sub(r"\1", field.meaning)}


def schema_text() -> str:
    return json.dumps(schema(), indent=1) + "\n"


def main() -> None:
    for name in PAGES:
        path = DOCS / name
        path.write_text(page(path.read_text()))
    SCHEMA.write_text(schema_text())


if __name__ == "__main__":
    main()
