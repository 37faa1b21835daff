"""What echo_processor.yml cannot say in YAML."""

from __future__ import annotations


def fail(told: dict[str, str]) -> None:
    raise ValueError(f"told to fail at {told['message']}")
