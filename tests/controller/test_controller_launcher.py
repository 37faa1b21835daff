"""Where and with what workers start is the controller's own file, not the pool's settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from controllers import POOL, Place, ask, eventually

from sprat.controller import limits
from sprat.controller.config_file import ControlledScaleSet
from sprat.controller.reconciler import planned
from sprat.core.model import PoolSettings
from sprat.launchers import option_checks
from sprat.launchers.docker import containers

SHOW = ["/bin/sh", "-c", 'printf "%s" "$CLOUD_SECRET-$CLOUD_REGION" >shown; mv shown seen']


@pytest.fixture
def tenants(place: Place) -> Place:
    """A real server with keys, and the pool `papers` of the tenant acme, with one job."""
    server = place._start(
        *("serve", "serve", "--port", str(place.port), "--linger", "0"), SPRAT_URL=place.url
    )
    server.until(r"serving .* on http")
    place.store.pool("acme.papers").push("a job")
    return place


def variables(place: Place) -> dict[str, str]:
    """Of a controller for the tenant: the environment says all that may be there."""
    return {
        "ORCHESTRATOR_URL": place.here,
        "SPRAT_API_KEY": key(place, "controller", "worker"),
        "TENANT_ID": "acme",
        "MACHINE_GROUP": "gpu",
        "CLOUD_SECRET": "the operator's",
        "CLOUD_REGION": "north",
    }


def key(place: Place, *roles: str) -> str:
    words = (*(f"--role={role}" for role in roles), "--tenant", "acme")
    return place.run("keys", "create", *words, SPRAT_URL=place.url).stdout.strip()


def set_by_the_tenant(place: Place, **settings: object) -> None:
    path = f"/api/v1/pools/{POOL}/settings"
    status, text = ask(place.port, path, "PATCH", {"settings": settings}, key(place, "admin"))
    assert status == 200, text


def test_without_a_launcher_in_its_file_a_controller_starts_nothing(tenants: Place) -> None:
    set_by_the_tenant(tenants, launcher="process", command=SHOW, directory=str(tenants.path))
    done = tenants.run("controller", "--once", **variables(tenants))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "sprat: worker-controller-config.yaml names no launcher: add launcher: process, docker or "
        "kubernetes to it; the pool's settings do not say where a controller starts workers\n"
    )
    assert tenants.store.workers.list(pool_id="acme.papers") == []


def test_the_file_says_which_variables_workers_get(tenants: Place) -> None:
    """`launcher: process` lets the tenant's command run here, with none of the controller's
    variables but those that the file names."""
    wanted = ["CLOUD_SECRET", "CLOUD_REGION"]
    set_by_the_tenant(tenants, command=SHOW, directory=str(tenants.path), environment=wanted)
    tenants.config("launcher: process\nenvironment: [CLOUD_REGION]\n")
    controller = tenants.controller(**variables(tenants))
    seen = tenants.path / "seen"
    eventually(seen.exists, controller.text)
    assert seen.read_text() == "-north"
    assert controller.stop() == 0


# -- containers ---------------------------------------------------------------------------------

REACH: Mapping[str, Any] = {
    "image": "theirs",
    "volumes": ["/:/host", "/var/run/docker.sock:/var/run/docker.sock"],
    "user": "0",
    "network": "host",
    "host": "tcp://elsewhere:2375",
    "environment": {"LD_PRELOAD": "/host/evil.so"},
    "command": ["chroot", "/host"],
}


class Client:
    """Stands for the SDK: returns what the host configuration is made from."""

    @staticmethod
    def create_host_config(**given: object) -> dict[str, object]:
        return given


def test_what_a_container_may_reach_is_not_in_the_pools_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLOUD_SECRET", "the operator's")
    pool = PoolSettings(
        launcher="docker", launcher_options=REACH, command=["sh"], environment=["CLOUD_SECRET"]
    )
    own = ControlledScaleSet(
        launcher="docker", launcher_options={"image": "ours", "network": "workers"}
    )
    plan = planned(pool, own, limits.ScaleSetLimits(), {})
    options = option_checks.options("docker", plan.launcher_options)
    order = containers.order("https://far", "p", settings=plan, options=options, engine="e")
    made = containers.specification(Client, order, "w1")
    assert options.host is None, "the engine is the controller's"
    assert (made["image"], made["user"], made["entrypoint"]) == ("ours", None, ["sprat"])
    assert made["host_config"]["binds"] == []
    assert made["host_config"]["network_mode"] == "workers"
    assert made["environment"].keys() == {"SPRAT_URL", "SPRAT_DIRECTORY", "SPRAT_PLACE"}
