"""The house's own checks: dead links, the shape of the tree, its rooms, plain words, the capabilities page."""

from __future__ import annotations

import sys

from house import capabilities, links, rooms, sentences, shape


def main(arguments: list[str]) -> int:
    """`links`, `shape`, `rooms`, `sentences` and `capabilities` check; `write-capabilities` renews the page."""
    if arguments == ["write-capabilities"]:
        capabilities.PAGE.write_text(capabilities.current_page(), encoding="utf-8")
        return 0
    checks = {
        "links": links.check,
        "shape": shape.check,
        "rooms": rooms.check,
        "sentences": sentences.check,
        "capabilities": capabilities.check,
    }
    problems = [problem for name in arguments or checks for problem in checks[name]()]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"house: {len(problems)} problems in {', '.join(arguments or checks)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
