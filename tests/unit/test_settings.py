"""A pool's settings: what is taken, and the sentence for what is not."""

from __future__ import annotations

from typing import Any

import pytest

from sprat.config import settings
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings


def test_every_setting_is_checked() -> None:
    assert set(settings.FIELDS) == set(PoolSettings().as_dict())


def test_defaults_are_good_settings() -> None:
    assert settings.changed(PoolSettings(), PoolSettings().as_dict()) == PoolSettings()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tenant_limit": 0},
        {"tenant_limit": None},
        {"tenant_limits": {"a": 0, "b": 5}},
        {"keep_done_seconds": None, "keep_poisoned_seconds": 5},
        {"handler": "papers.read:analyze"},
        {"command": ["convert", "-"], "environment": ["API_KEY"]},
        {"min_workers": 3, "max_workers": 3},
        {"isolation": "none", "timeout_seconds": 0.5},
    ],
    ids=str,
)
def test_settings_are_changed_as_told(changes: dict[str, Any]) -> None:
    before = PoolSettings(tenant_limit=7)
    assert settings.changed(before, changes) == before.replace(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_worker": 3}, "did you mean max_workers"),
        ({"zzz": 3}, "use handler, command"),
        ({"min_workers": 4, "max_workers": 3}, "min_workers 4 is more than max_workers 3"),
        ({"min_workers": 11}, "min_workers 11 is more than max_workers 10"),
        ({"max_workers": True}, "max_workers must be a whole number"),
        ({"handler": "papers"}, "handler must be module:function"),
        ({"handler": "a b:c"}, "handler must be module:function"),
        ({"handler": "a:b", "command": ["c"]}, "a handler or a command or a machine"),
        ({"command": "rm -rf"}, "command must be a list of texts"),
        ({"command": []}, "command must name a program"),
        ({"command": [1]}, "command must be a text"),
        ({"environment": "API_KEY"}, "environment must be a list of texts"),
        ({"isolation": "thread"}, "isolation must be process or none"),
        ({"timeout_seconds": 0}, "timeout_seconds must be more than 0"),
        ({"retry_base_seconds": -1}, "retry_base_seconds must be seconds"),
        ({"start_on_push": 1}, "start_on_push must be true or false"),
        ({"tenant_limit": -1}, "tenant_limit must be a whole number"),
        ({"tenant_limits": [1]}, "tenant_limits must be a mapping"),
        ({"tenant_limits": {"a": True}}, "the limit of tenant 'a' must be a whole number"),
        ({"keep_done_seconds": "week"}, "keep_done_seconds must be seconds"),
    ],
    ids=str,
)
def test_refusal_says_what_is_wrong(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        settings.changed(PoolSettings(), changes)
