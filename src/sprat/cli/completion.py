"""`sprat completion`: a script for bash, zsh or fish, made from the commands themselves."""

from __future__ import annotations

from sprat.cli import target
from sprat.cli.arguments import CommandParser
from sprat.cli.main import COMMANDS, DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

POOLS = "$(_sprat_pools)"  # among the words: the pools that there are when somebody asks

BASH = """\
# sprat completion for bash:  eval "$(sprat completion bash)"
_sprat_pools() { [[ $current == -* ]] || sprat completion pools 2>/dev/null; }
_sprat() {
    local current="${COMP_WORDS[COMP_CWORD]}" words
    case "$COMP_CWORD:${COMP_WORDS[1]}:${COMP_WORDS[2]}" in
%s
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sprat sprat
"""

ZSH = """\
#compdef sprat
# sprat completion for zsh:  eval "$(sprat completion zsh)"
_sprat_pools() { [[ $words[CURRENT] == -* ]] || sprat completion pools 2>/dev/null; }
_sprat() {
    local -a options
    case "$CURRENT:$words[2]:$words[3]" in
%s
    esac
    compadd -a options || _files
}
compdef _sprat sprat
"""

FISH = """\
# sprat completion for fish:  sprat completion fish | source
function _sprat_pools; sprat completion pools 2>/dev/null; end
complete -c sprat -n __fish_use_subcommand -f
%s
"""


def parser() -> CommandParser:
    made = CommandParser(prog="sprat completion", has_json=False, has_url=False)
    made.add_argument("shell", choices=("bash", "zsh", "fish"))
    return made


def main(arguments: Sequence[str]) -> int:
    if arguments == ["pools"]:  # what the scripts ask
        print("\n".join(_pools()))
        return DONE
    asked = parser().parse_args(arguments)
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[asked.shell](), end="")
    return DONE


def _pools() -> list[str]:
    """The names of the pools, if asking for them is cheap: from a file that is there. Somebody
    is typing, so whatever is wrong is not told now."""
    from sprat.core.errors import SpratError

    try:
        url = target.url_of(None)
        if target.sqlite_file(url) is None or not target.exists(url):
            return []
        with target.open_existing(None) as store:
            return store.pools()
    except SpratError:
        return []


def parser_of(command: str) -> CommandParser | None:
    """The parser of a command; the demo has none."""
    module = __import__(COMMANDS[command][0], fromlist=["parser"])
    found: CommandParser | None = module.parser() if hasattr(module, "parser") else None
    return found


def _words() -> Iterator[tuple[str, str, list[str]]]:
    """(command, action, what can follow), the most specific first."""
    for command in COMMANDS:
        made = parser_of(command)
        for action, inner in made.inner().items() if made else ():
            yield command, action, [*_choices(inner), *sorted(set(inner.options()))]
        if made and made.inner():
            yield command, "", [*made.inner()]
        else:
            yield (
                command,
                "",
                [*_choices(made), *sorted(set(made.options()))] if made else ["--help"],
            )


def _choices(made: CommandParser) -> list[str]:
    """The words that an argument of a command can be."""
    named = [action for action in made._actions if not action.option_strings]
    pools = [POOLS for action in named if action.dest == "pool"]
    return pools + [word for action in named for word in action.choices or ()]


def _cases(end: str, line: str) -> str:
    lines = [f"        {end}:*) {line % ' '.join([*COMMANDS, '--help', '--version'])} ;;"]
    for command, action, words in _words():
        place = f"*:{command}:{action}" if action else f"*:{command}:*"
        lines.append(f"        {place}) {line % ' '.join(words)} ;;")
    return "\n".join(lines)


def _bash() -> str:
    return BASH % _cases("1", 'words="%s"')


def _zsh() -> str:
    return ZSH % _cases("2", "options=(%s)")


def _fish() -> str:
    lines = [
        f"complete -c sprat -n __fish_use_subcommand -f -a {name} -d '{what}'"
        for name, (_, what) in COMMANDS.items()
    ]
    for command, action, words in _words():
        seen = f"__fish_seen_subcommand_from {command}"
        seen += f"; and __fish_seen_subcommand_from {action}" if action else ""
        for word in words:
            if word == POOLS:
                lines.append(f"complete -c sprat -n '{seen}' -f -a '(_sprat_pools)'")
                continue
            kind = "-l" if word.startswith("--") else "-s" if word.startswith("-") else "-f -a"
            lines.append(f"complete -c sprat -n '{seen}' {kind} {word.lstrip('-')}")
    return FISH % "\n".join(lines)
