"""Runs a machine from state to state. What a state does is the host's business: this is the order.

The position is handed to the host before each state (and each element of a foreach): whoever keeps
it can go on from there. The state that was interrupted is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sprat.core.errors import SpratError
from sprat.core.record import Record
from sprat.core.retry_rules import stopped_after
from sprat.machines.definition import Machine, MachineState
from sprat.machines.template import filled

DEFAULT = "default"  # in a map of on_error: every error that has no entry of its own


class MachineFailed(SpratError):
    """The machine ended with an error that none of its states catches."""


class Failed(SpratError):
    """An error that happened elsewhere (in a child process), by the names of its kinds."""

    def __init__(self, message: str, kinds: tuple[str, ...]) -> None:
        super().__init__(message)
        self.kinds = kinds


class StateTimeout(TimeoutError):
    """A state took longer than its `timeout`; what it did was stopped."""


class TimeIsUp(BaseException):
    """Stops all work up to the state whose limit it is; not an Exception, so that no state in
    between takes it for an error of its own."""

    def __init__(self, limit: object) -> None:
        self.limit = limit


class Position(Record):
    """How far a run has come. `finished` are the outputs of a foreach so far, `inner` is the
    position of the machine that the state runs."""

    machine: str
    state: str
    input: Mapping[str, Any]
    context: Mapping[str, Any]
    steps: int = 0
    finished: tuple[Any, ...] = ()
    inner: Mapping[str, Any] | None = None

    @classmethod
    def read(cls, kept: Any, machine: Machine) -> Position | None:
        """A position that was kept as JSON, if it is one of this machine."""
        if not isinstance(kept, dict) or kept.keys() - set(cls._names):
            return None
        try:
            found = cls(**kept)
        except TypeError:
            return None
        is_ours = found.machine == machine.name and found.state in machine.states
        return found.replace(finished=tuple(found.finished)) if is_ours else None


class Host:
    """What a run needs from the world."""

    def save(self, position: Position) -> None:
        """Keep the position, if positions are kept."""

    def check_time(self) -> None:
        """Raise TimeIsUp when a limit has been reached; a good moment for a sign of life."""

    def limit(self, seconds: float) -> object:
        """Allow this long from now on."""
        raise NotImplementedError

    def lift(self, limit: object) -> None:
        raise NotImplementedError

    def wait(self, seconds: float) -> None:
        raise NotImplementedError

    def perform(self, run: Run, action: str, given: Any, context: dict[str, Any]) -> Any:
        """Run an action; it may change the context that it gets. Its output."""
        raise NotImplementedError

    def invoke(
        self,
        run: Run,
        name: str,
        given: Mapping[str, Any],
        inner: Mapping[str, Any] | None,
        save: Callable[[Position], None],
    ) -> Any:
        """Run another machine to its end. Its output."""
        raise NotImplementedError

    def launch(self, run: Run, name: str, inputs: list[Any]) -> Any:
        """Start machines elsewhere and do not wait for them."""
        raise NotImplementedError

    def failed(self, run: Run, error: Exception) -> None:
        """A state failed."""


class Hooks:
    """What users may add to a run; each of these may be left out. Those that return None leave
    things as they are."""

    def on_machine_start(self, context: dict[str, Any]) -> dict[str, Any] | None: ...

    def on_state_enter(self, state: str, context: dict[str, Any]) -> dict[str, Any] | None: ...

    def on_state_exit(self, state: str, context: dict[str, Any], output: Any) -> Any: ...

    def on_transition(self, old: str, new: str, context: dict[str, Any]) -> str | None: ...

    def on_action(self, action: str, context: dict[str, Any]) -> Any: ...

    def on_error(self, state: str, error: Exception, context: dict[str, Any]) -> str | None: ...

    def on_machine_end(self, context: dict[str, Any], output: Any) -> Any: ...


class Run:
    """One run of one machine."""

    def __init__(
        self,
        machine: Machine,
        host: Host,
        given: Mapping[str, Any],
        *,
        hooks: Hooks,
        position: Position | None = None,
        save: Callable[[Position], None] | None = None,
    ) -> None:
        self.machine = machine
        self.hooks = hooks
        self._host = host
        self._save = save or host.save
        is_new = position is None
        if position is None:
            context = filled(dict(machine.context), {"input": given, "context": {}})
            position = Position(
                machine=machine.name, state=machine.initial, input=dict(given), context=context
            )
        self._is_new = is_new
        self._is_worth_keeping = True  # what has been done since the position was kept
        self.position = position
        self.context: dict[str, Any] = dict(position.context)

    @property
    def input(self) -> Mapping[str, Any]:
        return self.position.input

    def run(self) -> Any:
        """Go on until a final state; its output."""
        if self._is_new:
            self._changed(self.hooks.on_machine_start(self.context))
        while True:
            state = self.machine.states[self.position.state]
            self._check_steps()
            if self._is_worth_keeping:
                self._keep()
            self._host.check_time()
            try:
                output = self._worked(state)
                if state.is_final:
                    return self._ended(state, output)
                to = self._way_out(state)
            except Exception as error:  # noqa: BLE001  (whatever a state raises, on_error may catch)
                to = self._caught(state, error)
            self._go(state, to)

    # -- one state --------------------------------------------------------------------------

    def _worked(self, state: MachineState) -> Any:
        self._changed(self.hooks.on_state_enter(state.name, self.context))
        self._is_worth_keeping = state.kind not in ("pass", "final")
        output = self._in_time(state)
        seen = self.hooks.on_state_exit(state.name, self.context, output)
        output = output if seen is None else seen
        for name, value in state.output_to_context.items():
            self.context[name] = filled(value, self._names(output=output))
        return output

    def _in_time(self, state: MachineState) -> Any:
        if state.timeout is None:
            return self._work(state)
        seconds = _seconds(filled(state.timeout, self._names()), f"{state.name}.timeout")
        limit = self._host.limit(seconds)
        try:
            return self._work(state)
        except TimeIsUp as over:
            if over.limit is not limit:
                raise
            raise StateTimeout(f"{state.name} was {stopped_after(seconds)}") from None
        finally:
            self._host.lift(limit)

    def _work(self, state: MachineState) -> Any:
        if state.foreach is not None:
            return self._each(state)
        if state.wait is not None:
            self._host.wait(_seconds(filled(state.wait, self._names()), f"{state.name}.wait"))
            return {}
        if state.launch is not None:
            given = filled(state.launch_input, self._names())
            return self._host.launch(self, state.launch, [given])
        return self._one(state, {})

    def _each(self, state: MachineState) -> Any:
        elements = filled(state.foreach, self._names())
        if not isinstance(elements, list):
            raise MachineFailed(f"{state.name}.foreach is no list")
        names = [self._names(**{state.as_name: element}) for element in elements]
        if state.launch is not None:
            inputs = [filled(state.launch_input, one) for one in names]
            return self._host.launch(self, state.launch, inputs)
        for element in elements[len(self.position.finished) :]:
            output = self._one(state, {state.as_name: element})
            finished = (*self.position.finished, output)
            self.position = self.position.replace(finished=finished, inner=None)
            self._keep()
            self._host.check_time()
        outputs = list(self.position.finished)
        if state.key is None:
            return outputs
        keys = [filled(state.key, one) for one in names]
        return dict(zip(map(str, keys), outputs, strict=True))

    def _one(self, state: MachineState, element: dict[str, Any]) -> Any:
        """The action or machine of a state, once."""
        names = self._names(**element)
        if state.machine is not None:
            given = filled(state.input, names)
            inner = self.position.inner
            return self._host.invoke(self, state.machine, given, inner, self._save_inner)
        if state.action is None:
            return {}
        context = {**self.context, **element}
        given = filled(state.input, names) if state.input else None
        output = self._host.perform(self, state.action, given, context)
        self.context = {k: v for k, v in context.items() if k not in element or k in self.context}
        return output

    # -- from state to state ----------------------------------------------------------------

    def _way_out(self, state: MachineState) -> str:
        for transition in state.transitions:
            if transition.condition is None or transition.condition(self._names()):
                return transition.to
        raise MachineFailed(f"no transition of state {state.name} is open")

    def _caught(self, state: MachineState, error: Exception) -> str:
        kinds = kinds_of(error)
        self._host.failed(self, error)
        self.context |= {"error": str(error), "error_type": kinds[0]}
        self.context |= {"last_error": str(error), "last_error_type": kinds[0]}
        to = self.hooks.on_error(state.name, error, self.context)
        if to is None:
            to = next((state.on_error[k] for k in (*kinds, DEFAULT) if k in state.on_error), None)
        if to is None:
            raise error
        return to

    def _go(self, state: MachineState, to: str) -> None:
        to = self.hooks.on_transition(state.name, to, self.context) or to
        if to not in self.machine.states:
            raise MachineFailed(f"a hook wants to go to {to!r}: there is no such state")
        self.position = self.position.replace(
            state=to, steps=self.position.steps + 1, finished=(), inner=None
        )

    def _ended(self, state: MachineState, output: Any) -> Any:
        final = {} if state.output is None else filled(state.output, self._names(output=output))
        seen = self.hooks.on_machine_end(self.context, final)
        return final if seen is None else seen

    # -- what is kept -----------------------------------------------------------------------

    def _names(self, **more: Any) -> dict[str, Any]:
        return {"context": self.context, "input": self.position.input, **more}

    def _changed(self, context: dict[str, Any] | None) -> None:
        if context is not None:
            self.context = context

    def _keep(self) -> None:
        self.position = self.position.replace(context=self.context)
        self._save(self.position)

    def _save_inner(self, inner: Position) -> None:
        self.position = self.position.replace(inner=inner.as_dict())
        self._keep()

    def _check_steps(self) -> None:
        most = self.machine.settings.max_steps
        if most is not None and self.position.steps >= most:
            raise MachineFailed(f"{self.machine.name} has passed through {most} states: max_steps")


def kinds_of(error: BaseException) -> tuple[str, ...]:
    """The names under which on_error may catch it, its own first."""
    if isinstance(error, Failed):
        return error.kinds
    return tuple(kind.__name__ for kind in type(error).__mro__ if kind is not object)


def _seconds(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise MachineFailed(f"{what} must be a number of seconds, not {value!r}")
    return float(value)
