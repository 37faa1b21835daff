"""What the scripts share: flags, the store in one SQLite file, and the machines in config/."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import sprat

HERE = Path(__file__).resolve().parent
POOL = "echo"


def arguments(about: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--pool", default=POOL, help="the name of the pool (%(default)s)")
    return parser


def open_store() -> sprat.Store:
    """The store beside the scripts, unless SPRAT_URL names another."""
    (HERE / "data").mkdir(exist_ok=True)
    return sprat.open_store(os.environ.get("SPRAT_URL") or f"sqlite:///{HERE}/data/worker.sqlite")


def run(machine: str, execution_id: str | None = None, **given: object) -> None:
    """Run a machine to its end and print its output."""
    with open_store() as store:
        path = str(HERE / "config" / f"{machine}.yml")
        print(json.dumps(sprat.run_machine(store, path, given, execution_id=execution_id)))
