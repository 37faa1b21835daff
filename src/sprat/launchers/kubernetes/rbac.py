"""What a launcher must be allowed to do in its namespace, and no more: the rules of a Role.

The tests compare it with the requests that are really made.
"""

from __future__ import annotations

from typing import Any

from sprat.launchers.kubernetes.options import DEPLOYMENT, JOB, POD

# (API group, resource, verbs), by mode
NEEDS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    POD: (("", "pods", ("create", "delete", "list")),),
    JOB: (
        ("batch", "jobs", ("create", "delete", "list")),
        ("", "pods", ("list",)),
        ("", "events", ("list",)),  # where a quota is told
    ),
    DEPLOYMENT: (
        ("apps", "deployments", ("get",)),
        ("apps", "deployments/scale", ("patch",)),
        ("", "pods", ("list", "patch")),  # patch: its deletion cost
    ),
}
OWNER = ("apps", "deployments", ("get",))  # with the option `owner`, of that name only


def rules(
    mode: str, *, deployment: str | None = None, owner: str | None = None
) -> list[dict[str, Any]]:
    """The rules of a Role; rights on Deployments are on the named one only."""
    rules = [_rule(*need, named=deployment) for need in NEEDS[mode]]
    if owner is not None:
        rules.append(_rule(*OWNER, named=owner))
    return rules


def _rule(
    group: str, resource: str, verbs: tuple[str, ...], *, named: str | None
) -> dict[str, Any]:
    rule: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    if named is not None and resource.startswith("deployments"):
        rule["resourceNames"] = [named]
    return rule
