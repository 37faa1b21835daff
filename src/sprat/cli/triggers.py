"""`sprat triggers`: look at the outside cues that run a pass, and be one."""

from __future__ import annotations

import os
import sys
import time

from sprat.cli import triggers_install
from sprat.cli.arguments import CommandParser, Namespace, address, seconds
from sprat.cli.main import DONE, FAILED
from sprat.cli.output import document, duration, number, say, table, talk
from sprat.cli.target import known_pool, open_existing
from sprat.config.trigger import WEBHOOK
from sprat.core.errors import InvalidInput
from sprat.triggers import firing, registry, webhook
from sprat.triggers.tick import tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.config.trigger import Trigger
    from sprat.store.store import Store


LISTEN = "127.0.0.1:8780"


def parser() -> CommandParser:
    made = CommandParser(prog="sprat triggers", has_json=False, has_url=False)
    family = made.family()
    what = "list the triggers, and when they are due"
    family.add_parser("list", help=what, what=what)
    what = "do now what a trigger is for, and wait for it"
    fire = family.add_parser("fire", help=what, what=what)
    fire.add_argument("name", metavar="NAME")
    fire.add_argument("--pool", metavar="POOL", help="for a trigger that names none")
    what = "fire what is due, and wake pools whose delayed jobs are"
    ticks = family.add_parser("tick", help=what, what=what)
    ticks.add_argument("names", metavar="NAME", nargs="*", help="only these; else all")
    ticks.add_argument(
        "--wait",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="what is due within so long is waited for",
    )
    what = "listen for signed requests that fire webhook triggers"
    serve = family.add_parser("serve", help=what, what=what)
    serve.add_argument(
        "--listen",
        type=address,
        default=LISTEN,
        metavar="HOST:PORT",
        help=f"default {LISTEN}; port 0 takes a free one",
    )
    what = "show the headers that sign a request, and how to send it"
    sign = family.add_parser("sign", help=what, what=what)
    sign.add_argument("name", metavar="NAME")
    sign.add_argument("--body", default="", metavar="TEXT", help="what the request carries")
    sign.add_argument(
        "--to", default=f"http://{LISTEN}", metavar="URL", help="where `serve` or a proxy listens"
    )
    what = "have cron, systemd, launchd or Kubernetes tick for cron triggers"
    triggers_install.add_options(family.add_parser("install", help=what, what=what))
    what = "forget triggers"
    remove = family.add_parser("remove", help=what, what=what)
    remove.add_argument("names", metavar="NAME", nargs="+")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        return ACTIONS[asked.action](store, asked)


def _list(store: Store, asked: Namespace) -> int:
    triggers = registry.every(store)
    due = {trigger.name: registry.next_due(store, trigger) for trigger in triggers}
    problems = {trigger.name: firing.problem(store, trigger) for trigger in triggers}
    if asked.json:
        more = ({"next_due": due[t.name], "problem": problems[t.name]} for t in triggers)
        document({"triggers": [{**t.as_dict(), **m} for t, m in zip(triggers, more, strict=True)]})
        return DONE
    if not triggers:
        print("no triggers")
        return DONE
    now = registry.now(store)
    table(
        ("NAME", "TYPE", "POOL", "WHEN", "NEXT", "WHAT"),
        ((t.name, t.type, t.pool, _when(t), _left(due[t.name], now), _what(t)) for t in triggers),
    )
    for name, problem in problems.items():
        if problem:
            talk(f"sprat: trigger {name} cannot run: {problem}")
    return DONE


def _when(trigger: Trigger) -> str:
    if trigger.schedule is None:
        return ", ".join(trigger.on) or "-"
    zone = "" if trigger.timezone == "UTC" else f" {trigger.timezone}"
    return f"{trigger.schedule}{zone}"


def _left(due: float | None, now: float) -> str:
    return "-" if due is None else f"in {duration(due - now)}"


def _what(trigger: Trigger) -> str:
    if trigger.command is not None:
        return " ".join(trigger.command)
    return trigger.machine or "check"


def _fire(store: Store, asked: Namespace) -> int:
    trigger = registry.find(store, asked.name)
    pool = None if asked.pool is None else known_pool(store, asked.pool)
    fired = firing.fire(store, trigger, pool=pool)
    if fired.refused:
        raise InvalidInput(f"trigger {trigger.name}: {fired.said}")
    if asked.json:
        document(fired)
    else:
        say(_sentence(fired))
    return DONE if fired.ok else FAILED


def _sentence(fired: firing.Fired) -> str:
    return f"{fired.trigger}: {'' if fired.ok else 'failed: '}{fired.said}"


def _tick(store: Store, asked: Namespace) -> int:
    ticked = tick(store, asked.names, wait=asked.wait)
    if asked.json:
        document(ticked)
    else:
        for fired in ticked.fired:
            say(_sentence(fired))
        for pool in ticked.woken:
            say(f"{pool}: a scaling pass was started")
        if not ticked.fired and not ticked.woken:
            print("nothing is due")
    return DONE if all(fired.ok for fired in ticked.fired) else FAILED


def _serve(store: Store, asked: Namespace) -> int:
    """Until SIGTERM or Ctrl-C."""
    import threading

    from sprat.triggers.listener import WebhookListener
    from sprat.worker.signals import Signals

    hooks = [trigger for trigger in registry.every(store) if trigger.type == WEBHOOK]
    for trigger in hooks:
        webhook.secret_of(trigger, os.environ)
    host, port = asked.listen
    with WebhookListener(store, host, port) as listener:
        where = f"http://{host}:{listener.port}"
        if asked.json:
            document({"listening": where, "triggers": [trigger.name for trigger in hooks]})
            sys.stdout.flush()
        else:
            talk(f"listening on {where} for {number(len(hooks), 'webhook')}; Ctrl-C ends it")
        stop = threading.Thread(target=listener.shutdown)
        with Signals(lambda: None if stop.ident else stop.start()):
            listener.serve_forever(poll_interval=0.1)
    return DONE


def _sign(store: Store, asked: Namespace) -> int:
    import shlex

    trigger = registry.find(store, asked.name)
    secret = webhook.secret_of(trigger, os.environ)
    now = int(time.time())
    headers = {
        webhook.TIMESTAMP: str(now),
        webhook.SIGNATURE: webhook.sign(
            secret, trigger.name, timestamp=now, body=asked.body.encode()
        ),
    }
    url = f"{asked.to.rstrip('/')}{webhook.PATH}{trigger.name}"
    if asked.json:
        document({"url": url, "headers": headers, "body": asked.body})
        return DONE
    said = " ".join(f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers.items())
    print(f"curl -X POST {said} --data-binary {shlex.quote(asked.body)} {shlex.quote(url)}")
    talk(f"good for {webhook.WINDOW_SECONDS:g} seconds, and once")
    return DONE


def _remove(store: Store, asked: Namespace) -> int:
    for name in asked.names:
        registry.find(store, name)  # all of them, or none
    for name in asked.names:
        registry.remove(store, name)
    if asked.json:
        document({"removed": asked.names})
    else:
        print(f"{number(len(asked.names), 'trigger')} removed")
    return DONE


ACTIONS: dict[str, Callable[[Store, Namespace], int]] = {
    "list": _list,
    "fire": _fire,
    "tick": _tick,
    "install": triggers_install.main,
    "serve": _serve,
    "sign": _sign,
    "remove": _remove,
}
