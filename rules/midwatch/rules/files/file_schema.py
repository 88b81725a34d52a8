"""The JSON Schema of midwatch's rule files, for editors. It is made from the model, so the two agree."""

from __future__ import annotations

from enum import StrEnum

from midwatch.rules.files.rule_reader import VERSION
from midwatch.rules.model import BlockKind, Mode, Phase, Role, Severity, Shows

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
            "version": {"const": VERSION, "description": "The version of this format."},
            "description": {"type": "string", "description": "What the file is for, in a sentence."},
            "include": _TEXTS | {"description": "Packs or files to include, by name without ending."},
            "exclude": _TEXTS | {"description": "Names of included rules to leave out."},
            "silence": {
                "type": "object",
                "description": "Longest time without progress, by phase. An including file's limits win.",
                "additionalProperties": False,
                "properties": {phase.value: {"type": "string", "pattern": _DURATION} for phase in Phase},
            },
            "any_line": {"type": "boolean", "description": "Every new line of the job ends its silence."},
            "rules": {"type": "array", "description": "The rules of this file.", "items": _rule()},
        },
    }


def _rule() -> dict[str, object]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "pattern"],
        "properties": {
            "name": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9_.-]{0,63}$",
                "description": "Its name in all files: small letters, digits, `_`, `-`, `.`.",
            },
            "pattern": {
                "type": "string",
                "description": "RE2 syntax. It is searched in one line at a time, or in a block. "
                "`^{{front}}` is the beginning of a line's own words, behind what launchers print there.",
            },
            "role": _choice(Role) | {"description": "What a hit proves. Only a failure's line is a cause."},
            "error_type": {"type": "string", "description": "The kind of failure, as policies name it."},
            "subsystem": {"type": "string", "description": "The part of the system that printed the line."},
            "severity": _choice(Severity) | {"description": "How prominently a hit is shown."},
            "transient": {
                "type": "boolean",
                "description": "Whether the same start may succeed. Leave it out where that depends.",
            },
            "captures": {
                "type": "object",
                "description": "The meaning of a named group, if it is not the group's name.",
                "additionalProperties": {"type": "string"},
            },
            "export": _TEXTS
            | {"description": "Captures, by meaning, whose numbers become metrics of the job."},
            "remedy": {"type": "string", "description": "What a person does about it."},
            "match": _TEXTS | {"description": "Example lines, or whole blocks, that must match."},
            "no_match": _TEXTS | {"description": "Example lines, or whole blocks, that must not match."},
            "metadata": {"type": "object", "description": "Your own notes; midwatch keeps them unread."},
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
            "phase": _choice(Phase) | {"description": "The phase that a progress line shows."},
            "shows": _choice(Shows) | {"description": "What a line of a progress rule proves."},
            "mode": _choice(Mode) | {"description": "How an attempt ends if this rule is its root."},
            "block": _choice(BlockKind)
            | {"description": "Search whole blocks of lines instead of single lines."},
            "source": {"type": "string", "description": "Where the knowledge comes from."},
        },
    }


def _choice(kind: type[StrEnum]) -> dict[str, object]:
    return {"enum": [value.value for value in kind]}
