"""The JSON Schema of our rule files, for editors: made from the model, so that the two cannot drift apart."""

from __future__ import annotations

from enum import StrEnum

from midwatch.rules.files.rule_reader import VERSION
from midwatch.rules.model import BlockKind, Mode, Phase, Role, Severity, Shows

_DURATION = r"^[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d)$"
_TEXTS = {"type": "array", "items": {"type": "string"}}


def rule_file_schema() -> dict[str, object]:
    """A draft 2020-12 schema. It cannot say what only reading proves: patterns, examples, includes."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "midwatch rules",
        "type": "object",
        "additionalProperties": False,
        "required": ["version"],
        "properties": {
            "version": {"const": VERSION},
            "description": {"type": "string"},
            "include": _TEXTS | {"description": "Packs or files, by name without ending."},
            "exclude": _TEXTS | {"description": "Names of included rules to leave out."},
            "silence": {
                "type": "object",
                "additionalProperties": False,
                "properties": {phase.value: {"type": "string", "pattern": _DURATION} for phase in Phase},
            },
            "any_line": {"type": "boolean", "description": "Every new line ends a silence."},
            "rules": {"type": "array", "items": _rule()},
        },
    }


def _rule() -> dict[str, object]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "pattern"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_.-]{0,63}$"},
            "pattern": {
                "type": "string",
                "description": "RE2 syntax, searched in one line at a time, or in a block.",
            },
            "role": _choice(Role),
            "error_type": {"type": "string"},
            "subsystem": {"type": "string"},
            "severity": _choice(Severity),
            "transient": {"type": "boolean", "description": "Leave it out where it depends."},
            "captures": {"type": "object", "additionalProperties": {"type": "string"}},
            "remedy": {"type": "string"},
            "match": _TEXTS | {"description": "Lines, or whole blocks, that must match."},
            "no_match": _TEXTS | {"description": "Lines that must not."},
            "metadata": {"type": "object"},
            "rate_limit": {
                "type": "object",
                "description": "So many hits count against the job in so much of its lines' time.",
                "additionalProperties": False,
                "required": ["hits", "per"],
                "properties": {
                    "hits": {"type": "integer", "minimum": 1},
                    "per": {"type": "string", "pattern": _DURATION},
                },
            },
            "stop_pattern": {"type": "string", "description": "A line that ends this rule's watch."},
            "fallback": {"type": "boolean", "description": "Counts only where no other rule was found."},
            "any_level": {"type": "boolean", "description": "Counts on lines that call themselves warnings."},
            "at_start": {"type": "boolean", "description": "Counts only where it begins the line."},
            "phase": _choice(Phase),
            "shows": _choice(Shows) | {"description": "What a line of a progress rule proves."},
            "mode": _choice(Mode),
            "block": _choice(BlockKind) | {"description": "Search whole blocks of lines, not single ones."},
            "source": {"type": "string"},
        },
    }


def _choice(kind: type[StrEnum]) -> dict[str, object]:
    return {"enum": [value.value for value in kind]}
