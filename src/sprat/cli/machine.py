"""`sprat machine`: looks at machines without running them."""

from __future__ import annotations

import os

from sprat.cli.arguments import CommandParser
from sprat.cli.main import DONE
from sprat.cli.output import document, number
from sprat.machines.graph import mermaid
from sprat.machines.library import Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.cli.arguments import Namespace


def parser() -> CommandParser:
    made = CommandParser(prog="sprat machine", has_json=False, has_url=False)
    actions = made.family()
    validate = actions.add_parser(
        "validate", help="check files", what="check the files of machines", has_url=False
    )
    validate.add_argument("files", metavar="MACHINE", nargs="+")
    graph = actions.add_parser(
        "graph", help="draw one", what="print a machine as a Mermaid diagram", has_url=False
    )
    graph.add_argument("file", metavar="MACHINE")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    return _validate(asked) if asked.action == "validate" else _graph(asked)


def _validate(asked: Namespace) -> int:
    library = Library()
    found = []
    for name in asked.files:
        machine = library.get(name, directory=os.getcwd())
        library.read_all(machine)
        found.append({"file": machine.path, "name": machine.name, "states": len(machine.states)})
        if not asked.json:
            print(f"{name}: {machine.name}, {number(len(machine.states), 'state')}, in order")
    if asked.json:
        document(found)
    return DONE


def _graph(asked: Namespace) -> int:
    drawn = mermaid(Library().get(asked.file, directory=os.getcwd()))
    if asked.json:
        document({"mermaid": drawn})
    else:
        print(drawn)
    return DONE
