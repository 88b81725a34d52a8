"""The transcript of a real demo, shortened: as a picture for the README, and as the text behind it.

`make picture` runs the demo, writes docs/demo.svg, and puts the same lines into README.md.
"""

from __future__ import annotations

import getpass
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from house.tree import ROOT

README, PICTURE = ROOT / "README.md", ROOT / "docs" / "demo.svg"

_KEPT = re.compile(
    r"toy: (?:unseen → RUNNING|incident → suspected, attempt 1|RUNNING → FAILED|decided → (?:restart|stop)"
    r"|restart → |attempt 2 resumed from|finding loss_spike → open|incident → settled, attempt 2)"
    r"|^(?:ok|FAIL) |every fact held"
)
_BLOCK = re.compile(r"(?<=```text\n)[^`]*every fact held\n(?=```)")
_LEFT_OUT = re.compile(
    r"\d{4}-\d\d-\d\dT|/\S+/(?=logs/)|, (?:command|revision) \w+| → none|, because \d+ is running"
    r"|(?<=, attempt 1) of \d(?=, id)|(?<=at step \d\d) \(.*"
    r"|(?<=one finding and no restart) .*|(?<=a decision says why) .*"
    r"|(?<=first step is \d\d); .*(?=\))"
)
_SUSPECTED = re.compile(r"(?<=suspected, attempt \d, )\w+")
_NUMBER = re.compile(r"\d[\d.:]*(?:E[+-]?\d+)?Z?")

_COLUMN, _LINE, _EDGE = 7.25, 19, 18  # pixels: of a letter, of a line, around the text
_FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_COLOURS = (
    (re.compile(r"^ok "), "#7ee787"),
    (re.compile(r"FAILED|^FAIL |crash by"), "#ff7b72"),
    (re.compile(r"decided →|restart →"), "#79c0ff"),
    (re.compile(r"resumed from|every fact held"), "#7ee787"),
    (re.compile(r"incident →|finding"), "#e3b341"),
)
_SPACE = "\N{NO-BREAK SPACE}"  # browsers keep it where two stand together
_PLAIN = "#c9d1d9"


def shortened(transcript: str, user: str) -> list[str]:
    """The lines that tell the rescue, without details; the person's name becomes ada."""
    kept: list[str] = []
    for line in map(str.strip, transcript.splitlines()):
        if not _KEPT.search(line):
            continue
        new_part = bool(kept) and line.startswith("ok ") and not kept[-1].startswith("ok ")
        if new_part or "every fact held" in line:
            kept.append("")
        kept.append(_LEFT_OUT.sub("", line).replace(f":{user}/", ":ada/"))
    return kept


def kinds(lines: Iterable[str]) -> list[str]:
    """The lines without what two runs differ by: numbers, and which line of a cascade was seen first."""
    return [_NUMBER.sub("0", _SUSPECTED.sub("a type", line)) for line in lines]


def block_of(readme: str) -> list[str]:
    """The transcript as the README holds it."""
    found = _BLOCK.search(readme)
    assert found, "README.md has no transcript of the demo"
    return found[0].splitlines()


def picture(lines: Sequence[str], command: str = "$ make demo") -> str:
    """The lines as an SVG of a terminal. Each letter has the same width, whatever font the reader has."""
    shown = [command, *lines]
    width = round(2 * _EDGE + _COLUMN * max(map(len, shown)))
    height = 2 * _EDGE + _LINE * len(shown)
    rows = [
        f'<text x="{_EDGE}" y="{_EDGE + _LINE * (row + 1) - 6}" fill="{_colour(line)}" '
        f'textLength="{_COLUMN * len(line):.2f}">{escape(line).replace(" ", _SPACE)}</text>'
        for row, line in enumerate(shown)
        if line
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{_FONT}" font-size="12">',
            f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


def _colour(line: str) -> str:
    return next((colour for pattern, colour in _COLOURS if pattern.search(line)), _PLAIN)


def main() -> int:
    """Runs the demo, and writes picture and text. Writes nothing if a fact of the demo does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "midwatch", "demo", f"--directory={folder}/demo"]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        return done.returncode
    lines = shortened(done.stdout, getpass.getuser())
    PICTURE.write_text(picture(lines))
    text = README.read_text()
    README.write_text(text.replace("\n".join(block_of(text)), "\n".join(lines)))
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
