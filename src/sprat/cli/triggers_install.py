"""`sprat triggers install`: entries for what keeps time on a machine or in a cluster."""

from __future__ import annotations

import json

from sprat.cli.main import DONE, UsageError
from sprat.cli.output import document, number, talk
from sprat.manifests import triggers
from sprat.manifests.plan import SECRET, ManifestPlan, checked
from sprat.triggers import crontab, install, launchd, systemd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from sprat.cli.arguments import CommandParser
    from sprat.store.store import Store
    from sprat.triggers.install import Entry, Installed

PLACES = {"cron": crontab, "systemd": systemd, "launchd": launchd}


def add_options(parser: CommandParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--cron", action="store_true", help="lines of your crontab")
    where.add_argument("--systemd", action="store_true", help="timers of your user's systemd")
    where.add_argument("--launchd", action="store_true", help="agents of your user's launchd")
    where.add_argument("--kubernetes", action="store_true", help="print CronJobs for kubectl")
    parser.add_argument("--remove", action="store_true", help="take them away again")
    parser.add_argument("--print", action="store_true", help="show what it would write, only that")
    parser.add_argument(
        "--every-minute", action="store_true", help="one entry for all triggers, which wakes pools"
    )
    parser.add_argument(
        "--image", metavar="IMAGE", help="for Kubernetes: an image with sprat in it"
    )
    parser.add_argument(
        "--secret",
        default=SECRET,
        metavar="NAME",
        help="for Kubernetes: the Secret with the store's URL as `url`; default sprat",
    )


def main(store: Store, asked: Namespace) -> int:
    if asked.kubernetes:
        return _kubernetes(store, asked)
    place = next(name for name in PLACES if getattr(asked, name))
    if asked.remove and asked.print:
        raise UsageError("--remove and --print do not go together")
    if asked.remove:
        return _tell(asked, PLACES[place].remove(store.url), "removed from")
    found = install.on_a_machine(store, every_minute=asked.every_minute)
    if asked.print:
        return _print(asked, place, found, store.url)
    return _tell(asked, PLACES[place].add(found, store.url), "installed in")


def _kubernetes(store: Store, asked: Namespace) -> int:
    if asked.image is None:
        raise UsageError("CronJobs need --image: the name of an image with sprat in it")
    plan = checked(ManifestPlan(image=asked.image, secret=asked.secret))
    found = install.entries(store, every_minute=asked.every_minute)
    items = triggers.of_store(plan, found, store.url)
    print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2))
    step = "delete" if asked.remove else "apply"
    talk(f"{number(len(found), 'CronJob')}: pipe this into kubectl {step} -f -")
    return DONE


def _print(asked: Namespace, place: str, found: list[Entry], url: str) -> int:
    if place == "cron":
        files = {"crontab": "".join(f"{line}\n" for line in crontab.lines(found, url))}
    else:
        files = (systemd if place == "systemd" else launchd).files(found, url)
    if asked.json:
        document({"files": files, "environment_file": install.environment_file(url)[0]})
        return DONE
    for path, text in files.items():
        print(f"# {path}\n{text}")
    talk(f"they read the store's URL from {install.environment_file(url)[0]}")
    return DONE


def _tell(asked: Namespace, done: Installed, what: str) -> int:
    if asked.json:
        document(done)
        return DONE
    print(f"{number(len(done.entries), 'entry', 'entries')} {what} {done.where}")
    if done.entries == (install.AT_BOOT,) and not asked.remove:
        talk("there is no cron trigger: the entry checks all pools when the machine has started")
    for step in done.to_do:
        talk(f"now run: {step}")
    return DONE
