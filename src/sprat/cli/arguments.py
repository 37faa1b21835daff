"""Reading a command line: argparse, with every complaint as one sentence that we raise."""

from __future__ import annotations

import argparse
from argparse import Namespace

from sprat.cli.main import COMMANDS, Answered, UsageError
from sprat.config import project_file
from sprat.core import fields, payload
from sprat.core.did_you_mean import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

__all__ = ["HIDDEN", "CommandParser", "Namespace", "address", "seconds", "whole"]

HIDDEN = argparse.SUPPRESS  # for `help=`: an option that people need not know
JSON_HELP = "data as one JSON document on stdout, all talk on stderr"
URL_HELP = (
    f"the store; else SPRAT_URL, else `store` in ./{project_file.FILE}, "
    f"else {project_file.DEFAULT_URL}"
)


class CommandParser(argparse.ArgumentParser):
    """One command, with `--json` and `--url`. It raises UsageError instead of leaving."""

    def __init__(
        self,
        *,
        prog: str,
        what: str = "",
        has_json: bool = True,
        has_url: bool = True,
        **options: Any,  # newer Pythons hand some of their own down to the parsers of a family
    ) -> None:
        what = what or COMMANDS[prog.removeprefix("sprat ")][1]
        description = f"{what[0].upper()}{what[1:]}."
        super().__init__(prog=prog, description=description, allow_abbrev=False, **options)
        if has_json:
            self.add_argument("--json", action="store_true", help=JSON_HELP)
        if has_url:
            self.add_argument("--url", help=URL_HELP)

    def options(self) -> list[str]:
        """Every option, those of its inner commands too, but none that only programs use."""
        shown = [action for action in self._actions if action.help != HIDDEN]
        own = [option for action in shown for option in action.option_strings]
        return own + [option for parser in self.inner().values() for option in parser.options()]

    def inner(self) -> dict[str, CommandParser]:
        """The commands that this command consists of, each by its first name."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return {n: p for n, p in action.choices.items() if p.prog.endswith(f" {n}")}
        return {}

    def family(self) -> argparse._SubParsersAction[CommandParser]:
        """Makes this a command of commands: `add_parser(name, help=, what=)` adds one."""
        return self.add_subparsers(
            dest="action", metavar="ACTION", required=True, parser_class=CommandParser
        )

    def error(self, message: str) -> NoReturn:
        word = message.removeprefix("unrecognized arguments: ").split(" ")[0]
        others = [inner.prog for inner in self.inner().values() if word in inner.options()]
        if message.startswith("unrecognized") and others:
            raise UsageError(f"{word} is an option of `{'` and `'.join(others)}`, not of this")
        if message.startswith("unrecognized") and word.startswith("-"):
            near = did_you_mean(word.split("=")[0], dict.fromkeys(self.options()))
            raise UsageError(f"unknown option {word}{near}")
        if message.startswith("unrecognized"):
            message = f"{word!r} is one argument too many"
        raise UsageError(f"{message}: `{self.prog} --help` tells what it takes")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise Answered


def whole(low: int, high: int) -> Callable[[str], int]:
    """For `type=`: a whole number in these bounds."""

    def read(text: str) -> int:
        try:
            return payload.whole(int(text), "it", low, high)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"it must be a whole number from {low} to {high}, not {text!r}"
            ) from None

    return read


def address(text: str) -> tuple[str, int]:
    """For `type=`: where to listen, a host and a port."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise argparse.ArgumentTypeError(
            f"it must be HOST:PORT such as 127.0.0.1:8780, not {text!r}"
        )
    return host, int(port)


def seconds(text: str) -> float:
    """For `type=`: seconds as a number, or with a unit: 90, 1.5, 500ms, 5m, 2h, 1d."""
    value = fields.duration(f"{text}s" if text[-1:].isdigit() else text)
    if value is None or value > payload.MAX_DELAY_SECONDS:
        raise argparse.ArgumentTypeError(
            f"it must be a time such as 90, 500ms, 5m, 2h or 1d, not {text!r}"
        )
    return value
