"""Workers as pods: what a pool may say about them."""

from __future__ import annotations

from sprat.errors import InvalidInput
from sprat.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Options(Record):
    image: str = ""  # has sprat and the user's code in it
    directory: str = "."  # inside the pod: where the handler is imported from


def _text(value: object, name: str) -> None:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a text, not {value!r}")


CHECKS: dict[str, Callable[[object, str], object]] = {"image": _text, "directory": _text}


def check(options: Options) -> None:
    if not options.image:
        raise InvalidInput("it needs an image: set launcher_options.image")
