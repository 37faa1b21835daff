"""`sprat triggers`: look at the outside cues that run a pass, and be one."""

from __future__ import annotations

from sprat.cli import DONE, FAILED
from sprat.cli.arguments import Namespace, Parser, seconds
from sprat.cli.output import document, duration, number, table
from sprat.cli.target import known_pool, open_existing
from sprat.triggers import firing, registry
from sprat.triggers.tick import tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.store import Store
    from sprat.trigger import Trigger


def parser() -> Parser:
    made = Parser(prog="sprat triggers", has_json=False, has_url=False)
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
    if asked.json:
        document({"triggers": [{**t.as_dict(), "next_due": due[t.name]} for t in triggers]})
        return DONE
    if not triggers:
        print("no triggers")
        return DONE
    now = registry.now(store)
    table(
        ("NAME", "TYPE", "POOL", "WHEN", "NEXT", "WHAT"),
        ((t.name, t.type, t.pool, _when(t), _left(due[t.name], now), _what(t)) for t in triggers),
    )
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
    if asked.json:
        document(fired)
    else:
        print(_sentence(fired))
    return DONE if fired.ok else FAILED


def _sentence(fired: firing.Fired) -> str:
    return f"{fired.trigger}: {'' if fired.ok else 'failed: '}{fired.said}"


def _tick(store: Store, asked: Namespace) -> int:
    ticked = tick(store, asked.names, wait=asked.wait)
    if asked.json:
        document(ticked)
    else:
        for fired in ticked.fired:
            print(_sentence(fired))
        for pool in ticked.woken:
            print(f"{pool}: a scaling pass was started")
        if not ticked.fired and not ticked.woken:
            print("nothing is due")
    return DONE if all(fired.ok for fired in ticked.fired) else FAILED


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
    "remove": _remove,
}
