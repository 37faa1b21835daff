"""A pool's settings: every name, what it may be, and the sentence when it is not."""

from __future__ import annotations

from sprat.core import extensions, fields, payload
from sprat.core.errors import InvalidInput
from sprat.core.model import EVENTS, PoolSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sprat.core.fields import Field

ISOLATIONS = ("process", "none")
OF_JOBS = ("max_attempts", "max_retries")  # given with a push, not in a pool's settings


def changed(now: PoolSettings, changes: Mapping[str, object]) -> PoolSettings:
    """The settings after these changes, each checked, and then all of them together."""
    for name, value in changes.items():
        find(name, "a pool")(value, name)
    after = now.replace(**changes)
    if after.min_workers > after.max_workers:
        raise InvalidInput(
            f"min_workers {after.min_workers} is more than max_workers {after.max_workers}"
        )
    if (after.handler, after.command, after.machine).count(None) < 2:
        raise InvalidInput("a pool has a handler or a command or a machine, not two of them")
    if changes.keys() & {"policy", "policy_options", "min_workers", "max_workers"}:
        extensions.load("check", "policies").check(after)
    if changes.keys() & {"launcher", "launcher_options"}:
        extensions.load("check", "launchers").options(after.launcher, after.launcher_options)
    return after


def find(name: str, pool: str) -> Field:
    """The field of a setting; InvalidInput where a pool has none of this name."""
    if name in OF_JOBS:
        advice = "each job has its own: `sprat push --max-attempts`, @sprat.task(max_attempts=...)"
        raise InvalidInput(f"{pool} has no setting {name!r}: {advice}")
    return fields.find(FIELDS, name, f"{pool} has no setting")


def _is_handler(value: str) -> bool:
    module, colon, function = value.partition(":")
    parts = (*module.split("."), *function.split("."))
    return bool(colon) and all(part.isidentifier() for part in parts)


def _variable(value: str, name: str) -> None:
    variable, sign, _ = value.partition("=")
    if sign:  # the value may be a secret
        raise InvalidInput(f"{name} takes names without values: {variable}, not {variable}=...")


def _file(key: str, path: object, name: str) -> None:
    fields.text()(key, f"a name in {name}")
    fields.text()(path, f"{name}.{key}")


def _task(task: str, about: object, name: str) -> None:
    payload.task_name(task)
    if not isinstance(about, dict):
        raise InvalidInput(f"{name}.{task} must be a mapping with handler, file and host")
    HANDLER(about.get("handler"), f"{name}.{task}.handler")
    for key, value in about.items():
        fields.text()(value, f"{name}.{task}.{key}")


def _tenant(tenant: str, limit: object, name: str) -> None:
    payload.label(tenant, "tenant")
    TENANT_LIMIT(limit, f"the limit of tenant {tenant!r}")


def _event(event: str, triggers: object, name: str) -> None:
    if event not in EVENTS:
        raise InvalidInput(f"{name} must be a mapping from {' or '.join(EVENTS)} to triggers")
    fields.texts(fields.text())(triggers, name)


HANDLER = fields.text().also("module:function", _is_handler, pattern=r"^[^:\s]+:[^:\s]+$")
TENANT_LIMIT = fields.whole(0, 1_000_000)
VARIABLE = fields.text().then(_variable)
SOME_SECONDS = fields.more_than_zero(fields.seconds())

FIELDS = {
    "handler": fields.optional(HANDLER).means(
        "called with the payload; what it returns is the result"
    ),
    "command": fields.optional(fields.texts(fields.text(), empty="must name a program")).means(
        "instead of a handler, a program and its arguments: payload as JSON on stdin, result as "
        "JSON on stdout, exit code 75 to be tried again uncharged"
    ),
    "machine": fields.optional(fields.text()).means(
        "instead of both, a [machine](../learn/machines.md): the payload is its input, its output "
        "the result"
    ),
    "machines": fields.mapping("from name to file", _file, values=fields.text().schema).means(
        "names that machines call each other by, and their files"
    ),
    "tasks": fields.mapping("from task to its handler", _task, values={"type": "object"}).means(
        "the tasks that the pool serves, with their handlers and files; set by the first push of a "
        "[task](../learn/tasks.md), not by hand"
    ),
    "directory": fields.optional(fields.text()).means(
        "where the handler is imported from and the command runs"
    ),
    "environment": fields.texts(VARIABLE).means(
        "names of variables that workers get, besides the usual ones and `SPRAT_*`"
    ),
    "isolation": fields.choice(*ISOLATIONS).means(
        "`process`: each job in a child process of its own, which can be stopped, may crash and "
        "leaves no memory behind; `none`: in the worker, faster"
    ),
    "claim_ahead": fields.whole(1, 1000).means(
        "with `isolation: none`, up to this many tiny jobs are claimed and settled in one write, "
        "if they are over within a twentieth of a second; if the worker is killed then, some of "
        "them run again"
    ),
    "timeout_seconds": fields.optional(SOME_SECONDS).means(
        "a job that takes longer is stopped, and has failed"
    ),
    "retry_base_seconds": fields.seconds().means(
        "pause before the second attempt, doubled for each one after it"
    ),
    "retry_cap_seconds": fields.seconds().means("the longest pause between two attempts"),
    "max_transient": fields.optional(fields.whole(0, 1_000_000)).means(
        "transient failures (timeouts, 429, 5xx) of one job that charge no attempt; later ones "
        "count like other failures; null: no limit"
    ),
    "on_lost_contact": fields.choice("continue", "stop").means(
        "what a worker does with its job while the store cannot be reached: `continue`: the job "
        "goes on; `stop`: it is stopped before its lease ends, for jobs that must never overlap"
    ),
    "heartbeat_seconds": SOME_SECONDS.means(
        "how often a worker sends a heartbeat; after two missed ones it is treated as dead"
    ),
    "launcher": fields.choice(*extensions.names("launcher")).means(
        "where workers are started: `process`, forked on this machine; `docker`, as containers; "
        "`kubernetes`, as pods. A [controller](../operate/controller.md#what-is-whose) takes this, "
        "the options and `environment` from its own file"
    ),
    "launcher_options": fields.mapping("from option to value").means(
        "what that launcher lets you set: [Docker](../operate/docker.md#options), "
        "[Kubernetes](../operate/kubernetes.md#options)"
    ),
    "min_workers": fields.workers().means("this many workers run even without work"),
    "max_workers": fields.workers().means("never more than this many are starting or active"),
    "policy": fields.custom(
        " or ".join(extensions.names("policy")),
        lambda value, name: extensions.load("check", "policies").find(value),
        enum=list(extensions.names("policy")),
    ).means(
        "the [rule](../learn/scaling.md#the-policies) that decides how many workers there should be"
    ),
    "policy_options": fields.mapping("from option to value").means(
        "what that policy lets you set: its [options](../learn/scaling.md#the-policies)"
    ),
    "max_jobs": fields.whole(0, 1_000_000_000).means(
        "a worker leaves after this many jobs; 0: when there is no work left"
    ),
    "idle_seconds": fields.seconds().means("a worker leaves after this long without work"),
    "start_deadline_seconds": SOME_SECONDS.means(
        "a launched worker that has not registered by then is lost"
    ),
    "start_on_push": fields.flag().means(
        "a push starts a scaling pass (false by default in Python)"
    ),
    "tenant_limit": fields.optional(TENANT_LIMIT).means(
        "how many jobs of one tenant may run at once; null: no limit"
    ),
    "tenant_limits": fields.mapping(
        "from tenant to number", _tenant, values=TENANT_LIMIT.schema
    ).means("exceptions to it, by tenant"),
    "keep_done_seconds": fields.optional(fields.seconds()).means(
        "how long done jobs are kept; null: for ever"
    ),
    "keep_poisoned_seconds": fields.optional(fields.seconds()).means(
        "the same for failed (poisoned) jobs"
    ),
    "keep_cancelled_seconds": fields.optional(fields.seconds()).means(
        "the same for cancelled jobs"
    ),
    "events": fields.mapping(f"from {' or '.join(EVENTS)} to triggers", _event).means(
        "the names of the triggers that each event fires; made from `triggers`, not written by hand"
    ),
}
