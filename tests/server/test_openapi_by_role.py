"""The whole API against its own OpenAPI document, with requests that nobody would think of.

Whatever is sent, by whichever role: no answer is a server error, and each one has a status, a media
type and a shape that the document lists.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from houses import TENANTS, House
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from sprat.server import openapi, tables
from sprat.server.roles import ROLES

EXAMPLES = int(os.environ.get("SPRAT_SCHEMA_EXAMPLES") or 4)  # an operation, sent by each role


def no_bug(_: object, response: Any, __: object) -> bool | None:
    """A 503 that says when to come back is no bug; any other server error is."""
    is_later = response.status_code == 503 and "retry-after" in response.headers
    assert response.status_code < 500 or is_later, response.text
    return None


CHECKS = [
    no_bug,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@schemathesis.serializer("application/x-ndjson")
def lines(_: object, value: object) -> object:
    return str(value).encode("utf-8", "replace")


schema = schemathesis.openapi.from_dict(openapi.document(tables.all_routes()))


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    house = House()
    pusher, worker = house.client("pusher"), house.client("worker")
    for n in range(5):
        pusher("POST", "/api/v1/pools/0/jobs", {"data": n})
    worker("POST", "/api/v1/pools/0/workers", {"worker_id": "0"})
    worker("POST", "/work/request", {"worker_id": "1"})
    yield house
    house.close()


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="SPRAT_SCHEMA_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_is_documented(case: schemathesis.Case, house: House) -> None:
    for place, role in enumerate(ROLES):
        key = house.keys[role, TENANTS[place % 2]]
        if case.operation.label.endswith(("/wait", "/claim", "/exchange", "/request")):
            _do_not_wait(case)
        case.call_and_validate(
            base_url=house.served.url,
            headers={**(case.headers or {}), "Authorization": f"Bearer {key}"},
            checks=CHECKS,
        )


def _do_not_wait(case: schemathesis.Case) -> None:
    if isinstance(case.body, dict):
        for name in ("seconds", "wait_seconds"):
            if isinstance(case.body.get(name), int | float):
                case.body[name] = 0
