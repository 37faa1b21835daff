"""`sprat manifests`: what kubectl applies to run sprat in a cluster."""

from __future__ import annotations

import os

from sprat.cli.arguments import CommandParser, whole
from sprat.cli.main import DONE
from sprat.cli.output import document, number, talk
from sprat.cli.target import exists, open_existing, url_of
from sprat.config import project_file, text_file
from sprat.controller import config_file
from sprat.core.errors import InvalidInput
from sprat.launchers.kubernetes.names import has_password
from sprat.manifests import directory, parts, plan
from sprat.triggers import install, registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.cli.arguments import Namespace
    from sprat.config.trigger import Trigger
    from sprat.triggers.install import Entry


def parser() -> CommandParser:
    made = CommandParser(prog="sprat manifests")
    made.add_argument("parts", nargs="*", choices=parts.NAMES, default=parts.ALL)
    add = made.add_argument
    add(
        "--namespace",
        default=plan.NAMESPACE,
        metavar="NAME",
        help=f"where it shall run; default {plan.NAMESPACE}",
    )
    add("--image", default="", metavar="IMAGE", help="an image with sprat and your code in it")
    add(
        "--pool",
        action="append",
        default=[],
        metavar="POOL",
        help="a pool that gets workers in the cluster; may be repeated",
    )
    add("--config", metavar="FILE", help="of the controller, instead of one made for --pool")
    add(
        "--secret",
        default=plan.SECRET,
        metavar="NAME",
        help=f"the Secret with the store's URL and the keys; default {plan.SECRET}",
    )
    add(
        "--max-workers",
        type=whole(1, 100_000),
        metavar="N",
        help=f"of a pool; default as its settings say, with KEDA or an HPA {plan.MAX_WORKERS}",
    )
    add(
        "--egress",
        action="append",
        default=[],
        metavar="CIDR[:PORT]",
        help="what else workers may connect to; may be repeated",
    )
    add("--output", metavar="DIR", help="write files there, with a kustomization.yaml")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    named = asked.parts if isinstance(asked.parts, list) else [asked.parts]
    names = parts.chosen(named)
    wanted = _plan(asked)
    entries = _entries(asked) if parts.TRIGGERS in names else []
    if parts.TRIGGERS in named and not entries:
        raise InvalidInput("there is no cron trigger to make a CronJob of: name other parts")
    made = parts.build(wanted, names, entries)
    if asked.output is not None:
        return _write(asked, parts.files(wanted, made))
    if asked.json:
        document(parts.listed(wanted, made))
    else:
        print(parts.stream(wanted, made), end="")
    return DONE


def _plan(asked: Namespace) -> plan.ManifestPlan:
    text, url = (None, None) if asked.config is None else _configuration(asked.config)
    made = plan.ManifestPlan(
        namespace=asked.namespace,
        image=asked.image,
        pools=tuple(dict.fromkeys(asked.pool)),
        secret=asked.secret,
        max_workers=asked.max_workers,
        configuration=text,
        ways=tuple(plan.way(text) for text in asked.egress),
    )
    is_ours = url is None or url.rstrip("/") in (made.server_url, made.far_url)
    return plan.checked(made.replace(has_url=not is_ours))


def _configuration(path: str) -> tuple[str, str | None]:
    """A controller's file, which everybody may see, and where it says that the store is."""
    found = config_file.read(path)
    if found.store is not None and has_password(found.store):
        raise InvalidInput(f"{path}: the store's URL holds a password, which has to be in a Secret")
    text = text_file.read(path, config_file.MAX_BYTES, missing="")
    return text, found.orchestrator_url or found.store


def _entries(asked: Namespace) -> list[Entry]:
    return install.entries_of(_triggers(asked.url))


def _triggers(flag: str | None) -> Sequence[Trigger]:
    """Those of the store that was named, else of the sprat.yml that is here, else of the store
    that is here."""
    is_named = flag is not None or os.environ.get("SPRAT_URL")
    if not is_named and os.path.exists(project_file.FILE):
        return project_file.load(project_file.FILE).triggers
    if not exists(url_of(flag)) and not is_named:
        return ()
    with open_existing(flag) as store:
        return registry.every(store)


def _write(asked: Namespace, files: dict[str, str]) -> int:
    directory.write(asked.output, files)
    if asked.json:
        document({"directory": asked.output, "files": sorted(files)})
        return DONE
    talk(f"{number(len(files), 'file')} written: kubectl apply -k {asked.output}")
    return DONE
