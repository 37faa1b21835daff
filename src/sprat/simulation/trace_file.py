"""Trace files: CSV with the columns arrival_s and service_s and perhaps others, gzipped or not."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterable
from pathlib import Path

from sprat.core.errors import InvalidInput
from sprat.simulation.trace import Trace

COLUMNS = ("arrival_s", "service_s")
MOST_SECONDS = 366 * 86400.0  # a pass is simulated every few seconds: a slip would take for ever


def read(path: Path) -> Trace:
    """The trace in a file, or InvalidInput that names the line."""
    import gzip

    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open(newline="") as lines:
            name = path.name.removesuffix(".gz").removesuffix(".csv")
            return parse(lines, name, str(path))
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InvalidInput(f"cannot read the trace {path}: {reason}") from error
    except UnicodeDecodeError:
        raise InvalidInput(f"the trace {path} is not text: a CSV file is expected") from None


def parse(lines: Iterable[str], name: str, source: str) -> Trace:
    rows = csv.reader(lines)
    header = [cell.strip() for cell in next(rows, [])]
    missing = [column for column in COLUMNS if column not in header]
    if missing:
        raise InvalidInput(
            f"{source}, line 1: no column {missing[0]} (there must be arrival_s and service_s)"
        )
    places = [header.index(column) for column in COLUMNS]
    arrivals, services = array("d"), array("d")
    try:
        for row in rows:
            if row:
                arrival, service = (_seconds(row, place, header) for place in places)
                if arrivals and arrival < arrivals[-1]:
                    raise InvalidInput("it arrives before the job above it: sort by arrival_s")
                arrivals.append(arrival)
                services.append(service)
    except (InvalidInput, csv.Error) as error:
        raise InvalidInput(f"{source}, line {rows.line_num}: {error}") from None
    if not arrivals:
        raise InvalidInput(f"{source} has no jobs: a line is arrival_s,service_s")
    return Trace(name=name, arrivals=arrivals, services=services)


def _seconds(row: list[str], place: int, header: list[str]) -> float:
    text = row[place].strip() if place < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        raise InvalidInput(f"{header[place]} must be a number, not {text!r}") from None
    if math.isnan(value) or value < 0.0:
        raise InvalidInput(f"{header[place]} must be a number that is not negative, not {text}")
    if value > MOST_SECONDS:
        raise InvalidInput(f"{header[place]} must be seconds within a year, not {text}")
    return value
