"""The page of all shipped rules: `python -m midwatch.rules.catalogue > docs/catalogue.md`.

Pure, except that it reads the files of the shipped packs.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.files.rule_reader import read_rule_file
from midwatch.rules.loader import shipped_files
from midwatch.rules.model import Role, Rule, Shows

_HEAD = """# Catalogue of rules

Written by `python -m midwatch.rules.catalogue > docs/catalogue.md`; a test keeps it true.

The failures that midwatch knows, by pack. The heading names the mechanism. A *cause* may be the root of a
verdict. A *consequence* (a peer died, a watchdog fired, a launcher's summary) may be the root only where no
cause was seen. *Context* makes no failure; a verdict names it only when nothing else explains the end of a
run. A fallback counts only on a line where no other rule matches.
Transient: whether the same start may succeed with nothing changed. We wrote the examples ourselves; the
source says where the knowledge comes from.
"""
_TRANSIENT = {True: "transient", False: "lasting", None: "depends"}
_EXAMPLES = 2  # the messages of one mechanism differ between releases
_ORDER = (Role.CAUSE, Role.CONSEQUENCE, Role.CONTEXT, Role.SUCCESS, Role.PROGRESS)


def page(files: Mapping[str, bytes]) -> str:
    """The page for these rule files: their bytes by name. Raises RuleErrors, as no rule may be missing."""
    out = [_HEAD]
    errors: list[LocatedError] = []
    rule_count = 0
    sections: list[str] = []
    for name in sorted(files):
        file = read_rule_file(name, files[name], errors)
        if not file.rules:
            continue
        rule_count += len(file.rules)
        title = name.rpartition("/")[2].removesuffix(".yaml")
        sections += [f"## {title}", "", f"{file.description}.", ""]
        for rule in sorted(file.rules, key=lambda rule: _ORDER.index(rule.role)):
            sections += _entry(rule)
    if errors:
        raise RuleErrors(errors)
    out.append(f"{rule_count} rules.\n")
    return "\n".join(out + sections).rstrip("\n") + "\n"


def _entry(rule: Rule) -> list[str]:
    properties = [str(rule.role)]
    if rule.error_type:
        properties.append(f"`{rule.error_type}`")
    if rule.role in (Role.CAUSE, Role.CONSEQUENCE):
        properties.append(_TRANSIENT[rule.transient])
    if rule.phase and rule.role is Role.PROGRESS:
        properties.append(f"phase {rule.phase}")
    if rule.shows is not Shows.STEP:
        properties.append(f"shows {rule.shows}")
    if rule.fallback:
        properties.append("fallback")
    lines = [f"### {rule.name}", "", f"{', '.join(properties)} · {rule.source}", ""]
    lines += ["```text", *(example.strip("\n") for example in rule.match[:_EXAMPLES]), "```", ""]
    if rule.remedy:
        lines += [f"Remedy: {rule.remedy}", ""]
    return lines


if __name__ == "__main__":
    sys.stdout.write(page(shipped_files()))
