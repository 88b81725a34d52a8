"""The JSON Schema of midwatch's rule files, for editors. It is made from the model, so the two agree."""

from __future__ import annotations

from enum import StrEnum

from midwatch.rules.files.rule_reader import VERSION
from midwatch.rules.model import BlockKind, Mode, Phase, Role, Severity

_DURATION = r"^[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d)$"
_TEXTS = {"type": "array", "items": {"type": "string"}}


def rule_file_schema() -> dict[str, object]:
    """A draft 2020-12 schema. It cannot check patterns, examples and includes: only the reader does."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "midwatch rules",
        "type": "object",
        "additionalProperties": False,
        "required": ["version"],
        "properties": {
            "version": {"const": VERSION},
            "description": {"type": "string"},
            "include": _TEXTS | {"description": "Packs or files to include, by name without ending."},
            "exclude": _TEXTS | {"description": "Names of included rules to leave out."},
            "silence": {
                "type": "object",
                "additionalProperties": False,
                "properties": {phase.value: {"type": "string", "pattern": _DURATION} for phase in Phase},
            },
            "any_line": {"type": "boolean", "description": "Every new line of the job ends its silence."},
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
                "description": "RE2 syntax. It is searched in one line at a time, or in a block.",
            },
            "role": _choice(Role),
            "error_type": {"type": "string"},
            "subsystem": {"type": "string"},
            "severity": _choice(Severity),
            "transient": {
                "type": "boolean",
                "description": "Whether the same start may succeed. Leave it out where that depends.",
            },
            "captures": {"type": "object", "additionalProperties": {"type": "string"}},
            "export": _TEXTS
            | {"description": "Captures, by meaning, whose numbers become metrics of the job."},
            "remedy": {"type": "string"},
            "match": _TEXTS | {"description": "Example lines, or whole blocks, that must match."},
            "no_match": _TEXTS | {"description": "Example lines, or whole blocks, that must not match."},
            "metadata": {"type": "object"},
            "rate_limit": {
                "type": "object",
                "description": "At most `hits` in `per` count against the job, by the times of its lines.",
                "additionalProperties": False,
                "required": ["hits", "per"],
                "properties": {
                    "hits": {"type": "integer", "minimum": 1},
                    "per": {"type": "string", "pattern": _DURATION},
                },
            },
            "stop_pattern": {
                "type": "string",
                "description": "A line that matches it ends the rule for the rest of the attempt.",
            },
            "fallback": {
                "type": "boolean",
                "description": "Counts only on lines that no other rule matches.",
            },
            "any_level": {
                "type": "boolean",
                "description": "Counts also on lines that call themselves warnings or less.",
            },
            "at_start": {"type": "boolean", "description": "Counts only where the match begins the line."},
            "phase": _choice(Phase),
            "mode": _choice(Mode),
            "block": _choice(BlockKind)
            | {"description": "Search whole blocks of lines instead of single lines."},
            "source": {"type": "string"},
        },
    }


def _choice(kind: type[StrEnum]) -> dict[str, object]:
    return {"enum": [value.value for value in kind]}
