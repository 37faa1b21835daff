"""Draws what a command shows in a terminal: `python tools/picture.py docs/demo.svg sprat demo`.

Runs the command in a pseudo-terminal of 80 columns and writes its last screenful, with its colours,
as an SVG. `make picture` draws the one in the README.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from html import escape

COLUMNS, LINE, CHAR, PAD = 80, 17, 8.1, 16
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "2": "#8b949e"}
PLAIN, BACK, FRAME = "#d7dde4", "#0d1117", "#30363d"


def record(command: list[str]) -> str:
    """What the command prints when it believes to be watched."""
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdin=slave, stdout=slave, close_fds=True)
    os.close(slave)
    heard = b""
    while True:
        try:
            heard += os.read(master, 4096)
        except OSError:  # the other end is closed
            break
    if process.wait():
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return heard.decode().replace("\r\n", "\n")


def spans(line: str) -> list[tuple[str, str]]:
    """(colour, text) parts of a line with escape sequences."""
    first, *rest = line.split("\x1b[")
    parts = [(PLAIN, first)]
    for part in rest:
        code, _, text = part.partition("m")
        parts.append((COLOURS.get(code, PLAIN), text))
    return [(colour, text) for colour, text in parts if text]


def draw(prompt: str, text: str) -> str:
    lines = [f"\x1b[2m$\x1b[0m {prompt}", *text.rstrip("\n").split("\n")]
    width, height = COLUMNS * CHAR + 2 * PAD, len(lines) * LINE + 2 * PAD
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'width="{width:.0f}" height="{height}" font-family="ui-monospace, SFMono-Regular, '
        f'Menlo, Consolas, monospace" font-size="13.5">',
        f'<rect width="100%" height="100%" rx="8" fill="{BACK}" stroke="{FRAME}"/>',
    ]
    for number, line in enumerate(lines):
        y = PAD + LINE * (number + 0.75)
        inner = "".join(
            f'<tspan fill="{colour}">{escape(part)}</tspan>' for colour, part in spans(line)
        )
        rows.append(f'<text x="{PAD}" y="{y:.1f}" xml:space="preserve">{inner}</text>')
    return "\n".join([*rows, "</svg>", ""])


def main() -> None:
    path, *command = sys.argv[1:]
    text = record([sys.executable, "-m", *command])
    with open(path, "w", encoding="utf-8") as file:
        file.write(draw(" ".join(command), text))


if __name__ == "__main__":
    main()
