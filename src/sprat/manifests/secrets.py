"""Which Secrets the manifests refer to, and how a person makes them. We never print one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sprat.manifests.plan import CONTROLLER_KEY, URL_KEY, VIEWER_KEY, ManifestPlan

EXAMPLES = {
    URL_KEY: "postgresql://USER:PASSWORD@HOST/DATABASE",
    CONTROLLER_KEY: "KEY",
    VIEWER_KEY: "KEY",
}


def advice(plan: ManifestPlan, objects: Sequence[dict[str, Any]], *, has_workers: bool) -> str:
    """Comments with the commands that make the Secrets which these objects need; "" if none."""
    found = set(references(objects))
    wanted = {
        plan.secret: {key: said for key, said in EXAMPLES.items() if (plan.secret, key) in found}
    }
    if has_workers:
        wanted[plan.worker_secret] = {"SPRAT_URL": plan.server_url, "SPRAT_API_KEY": "KEY"}
    lines = [line for secret, keys in wanted.items() for line in _command(plan, secret, keys)]
    if not lines:
        return ""
    about = "Secrets that you make yourself; a KEY is from `sprat keys create --role ROLE`:"
    return "".join(f"# {line}\n" for line in [about, *lines])


def references(value: Any) -> Iterator[tuple[str, str | None]]:
    """(Secret, key, or None for all of it), wherever something names one."""
    if isinstance(value, list | tuple):
        for inner in value:
            yield from references(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ("secretKeyRef", "secretTargetRef"):
                for one in inner if isinstance(inner, list) else [inner]:
                    yield one["name"], one["key"]
            elif key == "secretRef":
                yield inner["name"], None
            else:
                yield from references(inner)


def _command(plan: ManifestPlan, secret: str, keys: dict[str, str]) -> list[str]:
    if not keys:
        return []
    said = [f"kubectl create secret generic {secret} --namespace {plan.namespace}"]
    said += [f"  --from-literal={key}={value}" for key, value in keys.items()]
    return [f"  {line} \\" for line in said[:-1]] + [f"  {said[-1]}"]
