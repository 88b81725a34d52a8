"""The page of all shipped rules: `python -m midwatch.rules.catalogue > docs/catalogue.md`.

Pure but for the packs' own files, which it reads as everybody does.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from midwatch.rules.files.rule_reader import read_rule_file
from midwatch.rules.loader import shipped_files
from midwatch.rules.model import Role, Rule, Shows

_HEAD = """# Catalogue of rules

Written by `python -m midwatch.rules.catalogue > docs/catalogue.md`; a test keeps it true.

What midwatch knows of failures, by the pack that knows it. The heading names the mechanism. A *cause* may
be the root of a verdict; a *consequence* (a peer died, a watchdog fired, a launcher's summary) stands in
where no cause was seen; *context* makes no failure, and is named only where the bare end of a run is all
else that is known. A fallback gives way to every other rule on its line.
Transient: whether the same start may succeed with nothing changed. Examples are our own; the source says
where the knowledge comes from.
"""
_TRANSIENT = {True: "transient", False: "lasting", None: "depends"}
_EXAMPLES = 2  # the messages of one mechanism differ between releases
_ORDER = (Role.CAUSE, Role.CONSEQUENCE, Role.CONTEXT, Role.SUCCESS, Role.PROGRESS)


def page(files: Mapping[str, bytes]) -> str:
    """The page, from the bytes of rule files by their names."""
    out = [_HEAD]
    counted = 0
    sections: list[str] = []
    for name in sorted(files):
        file = read_rule_file(name, files[name], [])
        if not file.rules:
            continue
        counted += len(file.rules)
        title = name.rpartition("/")[2].removesuffix(".yaml")
        sections += [f"## {title}", "", f"{file.description}.", ""]
        for rule in sorted(file.rules, key=lambda rule: _ORDER.index(rule.role)):
            sections += _entry(rule)
    out.append(f"{counted} rules.\n")
    return "\n".join(out + sections).rstrip("\n") + "\n"


def _entry(rule: Rule) -> list[str]:
    said = [str(rule.role)]
    if rule.error_type:
        said.append(f"`{rule.error_type}`")
    if rule.role in (Role.CAUSE, Role.CONSEQUENCE):
        said.append(_TRANSIENT[rule.transient])
    if rule.phase and rule.role is Role.PROGRESS:
        said.append(f"phase {rule.phase}")
    if rule.shows is not Shows.STEP:
        said.append(f"shows {rule.shows}")
    if rule.fallback:
        said.append("fallback")
    lines = [f"### {rule.name}", "", f"{', '.join(said)} · {rule.source}", ""]
    lines += ["```text", *(example.strip("\n") for example in rule.match[:_EXAMPLES]), "```", ""]
    if rule.remedy:
        lines += [f"Remedy: {rule.remedy}", ""]
    return lines


if __name__ == "__main__":
    sys.stdout.write(page(shipped_files()))
