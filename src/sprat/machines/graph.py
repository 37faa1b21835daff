"""A machine as a Mermaid state diagram."""

from __future__ import annotations

from sprat.machines.definition import Machine, MachineState

MOST_LETTERS = 40


def mermaid(machine: Machine) -> str:
    """Every state with what it does, and every way between them."""
    ids = {name: f"s{place}" for place, name in enumerate(machine.states)}
    lines = ["stateDiagram-v2", f"    [*] --> {ids[machine.initial]}"]
    for name, state in machine.states.items():
        lines.append(f"    {ids[name]} : {_text(_title(state))}")
        for way in state.transitions:
            why = "" if way.condition is None else f" : {_text(way.condition.source)}"
            lines.append(f"    {ids[name]} --> {ids[way.to]}{why}")
        lines += [
            f"    {ids[name]} --> {ids[to]} : {_text('error' if kind == 'default' else kind)}"
            for kind, to in state.on_error.items()
        ]
        if state.is_final:
            lines.append(f"    {ids[name]} --> [*]")
    return "\n".join(lines)


def _title(state: MachineState) -> str:
    each = "each " if state.foreach is not None else ""
    for kind in ("action", "machine", "launch"):
        if getattr(state, kind) is not None:
            return f"{state.name} ({each}{kind} {getattr(state, kind)})"
    return f"{state.name} (wait)" if state.wait is not None else state.name


def _text(text: str) -> str:
    """One short line without what means something to Mermaid."""
    plain = " ".join(text.translate(str.maketrans(":;#", "   ")).split())
    return plain if len(plain) <= MOST_LETTERS else f"{plain[: MOST_LETTERS - 3]}..."
