"""API keys: made, proven, rotated, revoked; and a server without them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from houses import OPTIONS, Client, House
from servers.orchestrator import OPEN, serving

from sprat.core.errors import InvalidInput, Unknown
from sprat.server import keys
from sprat.server import serving as running
from sprat.store.memory.backend import MemoryBackend
from sprat.store.open_store import open_store


def test_only_a_digest_of_a_key_is_stored() -> None:
    backend = MemoryBackend()
    key, text = keys.create(backend, ("worker",), tenant="acme", label="gpu box")
    stored = backend.documents(keys.KIND, 10, None)[0].body
    assert text.split("_", 2)[2] not in stored
    assert len(text.split("_", 2)[2]) == 43, "256 bits"
    assert json.loads(stored)["digest"] == key.digest
    assert "digest" not in repr(key.caller())


def test_a_key_is_recognised_and_a_wrong_secret_is_not() -> None:
    backend = MemoryBackend()
    key, text = keys.create(backend, ("worker", "controller"), tenant="acme")
    ring = keys.Keyring(backend)
    for caller in (ring.look_up(text), ring.remembered(text)):
        assert caller is not None
        assert (caller.key_id, caller.tenant) == (key.id, "acme")
        assert caller.roles == {"worker", "controller"}
    for wrong in (text + "x", text[:-1], f"sprat_{key.id}_", "sprat__", "", "é" * 60):
        assert ring.look_up(wrong) is None
        assert ring.remembered(wrong) is None


def test_rotation_leaves_two_good_keys_for_a_while() -> None:
    now = 1000.0
    backend = MemoryBackend(clock=lambda: now)
    old, old_text = keys.create(backend, ("pusher",), tenant="acme", label="ci")
    new, new_text = keys.rotate(backend, old.id, seconds=60)
    assert (new.roles, new.tenant, new.label) == (old.roles, "acme", "ci")
    assert keys.Keyring(backend).look_up(old_text) is not None
    assert keys.Keyring(backend).look_up(new_text) is not None
    now = 1061.0
    assert keys.Keyring(backend).look_up(old_text) is None
    assert keys.Keyring(backend).look_up(new_text) is not None


def test_a_revoked_key_is_gone() -> None:
    backend = MemoryBackend()
    key, text = keys.create(backend, ("viewer",))
    keys.revoke(backend, key.id)
    assert keys.Keyring(backend).look_up(text) is None
    assert keys.listed(backend) == []
    with pytest.raises(Unknown):
        keys.revoke(backend, key.id)


@pytest.mark.parametrize("tenant", ["", "a.b", "a b", "x" * 65, "é", "sprat", "Sprat"])
def test_a_tenant_is_a_plain_word(tenant: str) -> None:
    with pytest.raises(InvalidInput):
        keys.create(MemoryBackend(), ("viewer",), tenant=tenant)


def test_without_keys_only_loopback_is_served() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(InvalidInput, match="without API keys"):
            running.check(OPTIONS.replace(host=host, auth=False))
    running.check(OPTIONS.replace(host="127.0.0.1", auth=False))
    running.check(OPTIONS.replace(host="0.0.0.0", auth=True))


def test_without_keys_a_web_page_of_another_name_is_refused(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/s.db") as store, serving(store, OPEN) as served:
        client = Client(served.port)
        assert client("GET", "/api/v1/pools").status == 200
        assert client("GET", "/api/v1/pools", headers={"Host": "evil.example"}).status == 403
        assert client("GET", "/api/v1/pools", headers={"Host": "localhost:1"}).status == 200
        form = {"Content-Type": "text/plain"}  # what a page may send without being asked
        assert client("POST", "/api/v1/pools/p/jobs", b'{"data": 1}', form).status == 415


def test_a_key_never_shows_in_an_answer_or_a_log(
    house: House, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    client = house.client("viewer")
    secret = (client.key or "").split("_", 2)[2]
    texts = [str(client("GET", path).body) for path in ("/api/v1/pools", "/nowhere", "/metrics")]
    said = capfd.readouterr()
    assert secret not in "".join([*texts, said.out, said.err, caplog.text])
