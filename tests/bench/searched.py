"""Which repositories a search for unread logs has used: `python -m bench.searched [--add] FILE`.

FILE holds labelled logs, one JSON object a line with a `source` (`owner/name#7`, `owner/name:path`), or names
of repositories, one a line. It prints those that an earlier search has used: logs of these are not unread.
`--add` notes all of them in bench/results/searched.txt, which holds the beginning of each name's SHA-256.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

NOTED = Path("bench/results/searched.txt")
_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_KEPT = 12  # hexadecimal digits


def main() -> None:
    """Print the names that are noted already, and note all of them if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--add", action="store_true")
    arguments = parser.parse_args()
    names = set(_names(arguments.file.read_text(encoding="utf-8").splitlines()))
    noted = set(NOTED.read_text(encoding="utf-8").split()) if NOTED.exists() else set()
    print(*sorted(name for name in names if _digest(name) in noted), sep="\n")
    if arguments.add:
        both = sorted(noted | set(map(_digest, names)))
        NOTED.write_text("\n".join([*both, ""]), encoding="utf-8")


def _names(lines: list[str]) -> Iterator[str]:
    for line in lines:
        text = str(json.loads(line).get("source", "")) if line.startswith("{") else line
        if found := _NAME.match(text.strip()):
            yield found[0].lower()


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_KEPT]


if __name__ == "__main__":
    main()
