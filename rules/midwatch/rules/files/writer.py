"""Rules as the text of a rule file. The strict reader reads the same rules back. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import yaml

from midwatch.rules.files.rule_reader import VERSION, usual_severity
from midwatch.rules.model import Phase, Role, Rule, Shows
from midwatch.streams.strict_yaml import plain_scalar

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_NEVER_FOLDED = 1 << 20


def rules_text(
    rules: Sequence[Rule],
    *,
    description: str = "",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    silence: Mapping[Phase, float] | None = None,
    any_line: bool = False,
) -> str:
    """The text of the file, without keys that have their default value."""
    head: dict[str, object] = {
        "description": description,
        "include": list(include),
        "exclude": list(exclude),
        "silence": {phase.value: seconds_text(seconds) for phase, seconds in (silence or {}).items()},
        "any_line": any_line,
    }
    kept = {key: value for key, value in head.items() if value}
    return yaml_text({"version": VERSION, **kept, "rules": [plain_rule(rule) for rule in rules]})


def plain_rule(rule: Rule) -> dict[str, object]:
    """One rule as a mapping, without keys whose value is the reader's default."""
    default_phase = Phase.TRAINING if rule.role is Role.PROGRESS else None
    limit = rule.rate_limit
    written: dict[str, object] = {
        "role": rule.role.value,
        "error_type": rule.error_type,
        "subsystem": rule.subsystem,
        "severity": rule.severity.value if rule.severity is not usual_severity(rule.role) else "",
        "transient": rule.transient,
        "mode": rule.mode.value if rule.mode else "",
        "phase": rule.phase.value if rule.phase and rule.phase is not default_phase else "",
        "shows": rule.shows.value if rule.shows is not Shows.STEP else "",
        "captures": dict(rule.captures),
        "export": list(rule.export),
        "rate_limit": {"hits": limit.hits, "per": seconds_text(limit.seconds)} if limit else None,
        "stop_pattern": rule.stop_pattern,
        "block": rule.block.value if rule.block else "",
        "fallback": rule.fallback,
        "any_level": rule.any_level,
        "at_start": rule.at_start,
        "remedy": rule.remedy,
        "match": list(rule.match),
        "no_match": list(rule.no_match),
        "metadata": dict(rule.metadata),
        "source": rule.source,
    }
    always = ("transient",)
    kept = {key: value for key, value in written.items() if value or (key in always and value is not None)}
    return {"name": rule.name, "pattern": rule.pattern, **kept}


def seconds_text(seconds: float) -> str:
    """A duration as the reader expects it: with its unit, to the millisecond and never 0."""
    return f"{max(seconds, 0.001):.3f}".rstrip("0").rstrip(".") + "s"


def yaml_text(document: Mapping[str, object]) -> str:
    """YAML for the strict reader: no anchors, and quotes around text that YAML could read as another type."""
    text: str = yaml.dump(
        document,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_NEVER_FOLDED,
        default_flow_style=False,
    )
    return text


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  # PyYAML's signature
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    readable = _PLAIN.match(value) and plain_scalar(value) == value
    style = None if readable else '"' if "\n" in value or not value.isprintable() else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
