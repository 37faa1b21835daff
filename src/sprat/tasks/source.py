"""What can be a task, where workers find it, and which arguments it takes."""

from __future__ import annotations

import os
import sys

from sprat.core import model
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def check_function(function: Any) -> None:
    if type(function) is not type(check_function):
        raise InvalidInput(f"a task is a function, not {function!r}")
    if function.__name__ == "<lambda>":
        raise InvalidInput("a lambda has no name to find it by: write the task as a def")
    inside, _, _ = function.__qualname__.rpartition(".")
    if inside and not inside.endswith("<locals>"):
        raise InvalidInput(f"{function.__qualname__} is a method: a task is a function of a module")


def checked(chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    from sprat.config import settings

    reserved = ("handler", "command", "machine", "machines", "tasks")
    own = [name for name in reserved if name in chosen]
    if own:
        raise InvalidInput(f"a task sets {own[0]} by itself")
    settings.changed(model.PoolSettings(), chosen)
    return chosen


def home(task: Any) -> tuple[str, str, str]:
    """The path by which workers import the task, the directory in which they do, and the file."""
    called: str = task.__name__
    what = f"task {called!r}"
    if task.__qualname__ != called:
        raise InvalidInput(f"{what} is inside a function: move it to the top of its module")
    module: Any = sys.modules.get(task.__module__)
    file = getattr(module, "__file__", None)
    if module is None or not file or not os.path.exists(file):
        raise InvalidInput(f"{what} is in no file that workers could import: put it into one")
    if getattr(module, called, None) is not task:
        raise InvalidInput(
            f"{what} is not what {task.__module__} calls {called}: put @sprat.task above its def"
        )
    name = _importable_name(module, file, what)
    parents = name.count(".") + 1 + (os.path.basename(file) == "__init__.py")
    file = directory = os.path.realpath(file)
    for _ in range(parents):
        directory = os.path.dirname(directory)
    return f"{name}:{called}", directory, file


def _importable_name(module: Any, file: str, what: str) -> str:
    """The name to import a module by: for the main script that of its file."""
    if module.__name__ != "__main__":
        name: str = module.__name__
    elif module.__spec__ is not None:  # python -m package.module
        name = module.__spec__.name
    else:
        name, extension = os.path.splitext(os.path.basename(file))
        if extension != ".py" or not name.isidentifier():
            raise InvalidInput(
                f"{what} is in {os.path.basename(file)}, which workers cannot import: give the "
                "file a name of letters, digits and _ that ends with .py"
            )
    return name


# -- arguments ----------------------------------------------------------------------------------


def arguments(call: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if isinstance(call, tuple):
        return call, {}
    if isinstance(call, dict):
        return (), call
    return (call,), {}


def pushed(data: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """The arguments in a payload. `Task.push` stores a call as args and kwargs; a payload that came
    another way (`sprat push`, `WorkPool.push`) is an object of arguments by name, or the only
    argument."""
    if isinstance(data, dict) and data.keys() == {"args", "kwargs"}:
        args, kwargs = data["args"], data["kwargs"]
        if isinstance(args, list) and isinstance(kwargs, dict):
            return args, kwargs
    return arguments(data)


def twin(function: Any) -> Callable[..., object]:
    """A function that takes the same arguments and does nothing: Python itself says what is
    wrong with a call. (`inspect.signature` is 9 ms of start-up, for a job that pushes.)"""
    called = function.__name__
    function = unwrapped(function)
    code = function.__code__
    n, only = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    optional = n - len(function.__defaults__ or ())
    parts = [f"{name}=0" if at >= optional else name for at, name in enumerate(names[:n])]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    has_rest, has_named = bool(code.co_flags & 4), bool(code.co_flags & 8)
    if has_rest or only > n:
        parts.append(f"*{names[only]}" if has_rest else "*")
    defaults = function.__kwdefaults__ or {}
    parts += [f"{name}=0" if name in defaults else name for name in names[n:only]]
    if has_named:
        parts.append(f"**{names[only + has_rest]}")
    copy: Any = eval(f"lambda {', '.join(parts)}: None", {})
    copy.__qualname__ = called
    return copy  # type: ignore[no-any-return]  # it is what was just written


def unwrapped(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function
