"""The JSON Schema of midwatch's policy files, for editors. Its words come from the model. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from midwatch.agents.policies.base import ClauseKind, OnTimeLimit, PolicyMode
from midwatch.agents.policies.reader import DefaultAction, GuardAction

Schema = dict[str, object]

_DURATION = r"^[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d)$"


def policy_file_schema() -> Schema:
    """A draft 2020-12 schema of a whole file."""
    modes = _object({mode.value: {"$ref": "#/$defs/clause"} for mode in PolicyMode})
    properties: Schema = {
        "policy": {"type": "string", "description": "Its name, by which settings and jobs choose it."},
        "description": {"type": "string", "description": "What it is for, in a sentence."},
        "restart_cancelled": _flag("Whether a job that a person cancelled may restart."),
        "on_time_limit": _choice(
            OnTimeLimit, "After the scheduler's time limit. Without it the clause `timeout` decides."
        ),
        "modes": modes | {"description": "A clause for each way to end. Without one nothing restarts."},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "midwatch policy",
        **_object(properties, ["policy"]),
        "$defs": {"clause": _clause(), "guard": _guard(), "condition": _condition()},
    }


def _clause() -> Schema:
    restart_on = {
        "error_types": _texts("Kinds of failure, as rules name them."),
        "subsystems": _texts("Parts of the system."),
        "signals": _texts("Names of rules."),
    }
    return _object(
        {
            "kind": _choice(ClauseKind, "How the clause decides.") | {"default": "never"},
            "max_restarts": {
                "type": "integer",
                "minimum": 0,
                "default": 3,
                "description": "At most so many restarts.",
            },
            "unlimited": _flag("No limit of restarts, in place of `max_restarts`."),
            "default": _choice(DefaultAction, "What to do where nothing else decides.") | {"default": "stop"},
            "across_modes": _flag("Restarts after every mode count against the limit."),
            "restart_on": _object(restart_on) | {"description": "What `selective` restarts."},
            "exclude": _object({"error_types": _texts("Kinds of failure.")})
            | {"description": "What it does not restart, whatever `restart_on` says."},
            "restart_reason": _text("Words that follow the reason of a restart, in brackets."),
            "stop_reason": _text("Words that follow the reason of a stop, in brackets."),
            "guards": {
                "type": "array",
                "items": {"$ref": "#/$defs/guard"},
                "description": "Only for `guarded`: the first that applies and whose `when` holds.",
            },
        }
    )


def _guard() -> Schema:
    return _object(
        {
            "do": _choice(GuardAction, "What the guard asks for."),
            "rules": _texts("Names of rules, one of which must have a hit. Without them any rule."),
            "states": _texts("The scheduler's old and new state; `any` stands for every one.")
            | {"minItems": 2, "maxItems": 2},
            "when": {"$ref": "#/$defs/condition", "description": "What else must hold."},
            "reason": _text("Why, in words."),
        },
        ["do"],
    )


def _condition() -> Schema:
    several = {"type": "array", "items": {"$ref": "#/$defs/condition"}}
    fact = _object({"key": _text("Its name."), "is": _texts("The values that count.")}, ["key"])
    return _object(
        {
            "always": {"type": "boolean", "description": "It holds, or never."},
            "attempts_below": {
                "type": "integer",
                "description": "Fewer attempts were made; the first is 1.",
            },
            "cooldown": {
                "type": "string",
                "pattern": _DURATION,
                "description": "It holds, but a restart waits until so long after the last one.",
            },
            "fact": fact | {"description": "What is known of the end: its `key`, and the values that count."},
            "all": several | {"description": "Each of these holds."},
            "any": several | {"description": "One of these holds."},
            "not": {"$ref": "#/$defs/condition", "description": "This does not hold."},
            "not_asked": _text("A condition that midwatch never asks. The job is then held for a person."),
        }
    ) | {"minProperties": 1, "maxProperties": 1}


def _object(properties: Mapping[str, object], required: Iterable[str] = ()) -> Schema:
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": dict(properties)}
    return schema | ({"required": list(required)} if required else {})


def _choice(kind: type[StrEnum], description: str) -> Schema:
    return {"enum": [value.value for value in kind], "description": description}


def _flag(description: str) -> Schema:
    return {"type": "boolean", "default": False, "description": description}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


def _texts(description: str) -> Schema:
    return {"type": "array", "items": {"type": "string"}, "description": description}
