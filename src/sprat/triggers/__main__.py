"""`python -m sprat.triggers`: the function's handler as a plain command, an event on its input."""

from __future__ import annotations

import json
import sys

from sprat.core.errors import InvalidInput, SpratError
from sprat.core.jsontext import printable
from sprat.triggers.function import handler


def main() -> int:
    text = sys.stdin.read()
    try:
        answer = handler(_event(text))
    except SpratError as error:
        sys.stderr.write(f"sprat: {printable(str(error))}\n")
        return 2
    sys.stdout.write(json.dumps(answer) + "\n")
    return 1 if answer.get("batchItemFailures") or answer.get("statusCode", 200) >= 400 else 0


def _event(text: str) -> object:
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the event is not JSON: {error}") from None


if __name__ == "__main__":
    sys.exit(main())
