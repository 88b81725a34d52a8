"""The house's own checks: links, shape of the tree, rooms, plain words, pages that code writes."""

from __future__ import annotations

import sys

from house import capabilities, links, pages, rooms, sentences, shape

CHECKS = {
    "links": links.check,
    "shape": shape.check,
    "rooms": rooms.check,
    "sentences": sentences.check,
    "capabilities": capabilities.check,
    "pages": pages.check,
}


def main(arguments: list[str]) -> int:
    """Runs the named checks, or all of `CHECKS`; `write-capabilities` and `write-pages` renew pages."""
    if arguments == ["write-capabilities"]:
        capabilities.PAGE.write_text(capabilities.current_page(), encoding="utf-8")
        return 0
    if arguments == ["write-pages"]:
        pages.write()
        return 0
    problems = [problem for name in arguments or CHECKS for problem in CHECKS[name]()]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"house: {len(problems)} problems in {', '.join(arguments or CHECKS)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
