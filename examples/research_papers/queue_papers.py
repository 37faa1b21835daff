"""Queues the papers of a directory, each once, however often it is called."""

from __future__ import annotations

import argparse
import hashlib
import os
from pathlib import Path

import prose
import report

import sprat

PAPERS = prose.HERE / "papers"
HEAD = ["| paper | title | grade | about |", "|---|---|---|---|"]

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("directory", nargs="?", default=PAPERS, help="with *.txt files (papers)")
parser.add_argument("--wait", action="store_true", help="until all are done, then list them")


def papers(directory: str | Path) -> list[Path]:
    found = sorted(Path(directory).resolve().glob("*.txt"))
    if not found:
        raise SystemExit(f"there is no *.txt in {directory}")
    return found


def push(pool: sprat.WorkPool, path: Path) -> str:
    """The id of the paper's job. A text that has changed is another paper."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    payload = {"path": os.path.relpath(path, prose.HERE)}
    return pool.push(payload, key=f"{payload['path']} {digest[:16]}")


def row(store: sprat.Store, item_id: str) -> str:
    """One line of the list, as soon as the job is over."""
    try:
        found = sprat.result(item_id, store=store)
    except sprat.JobFailed as failed:
        path = store.get(item_id).data["path"]
        return f"| {path} | failed: {str(failed.error).partition(chr(10))[0]} | | |"
    if found["report"] is None:
        return f"| {found['name']} | nothing in it | | |"
    link = f"[{found['title']}]({found['name']}.md)"
    return f"| {found['name']} | {link} | {found['grade']} | {', '.join(found['terms'][:4])} |"


def main() -> None:
    asked = parser.parse_args()
    url = os.environ.get("SPRAT_URL") or f"sqlite:///{prose.HERE}/papers.db"
    with sprat.open_store(url) as store:
        pool = store.pool("papers")
        if pool.state().settings.machine is None:
            raise SystemExit("nobody would work on them: run `sprat apply` first")
        ids = [push(pool, path) for path in papers(asked.directory)]
        print(f"queued {len(ids)} papers")
        if asked.wait:
            rows = [row(store, item_id) for item_id in ids]
            report.put(report.OUT / "index.md", "\n".join([*HEAD, *rows]) + "\n")
            print("\n".join(rows))


if __name__ == "__main__":
    main()
