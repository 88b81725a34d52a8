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
        "description": _text("What it is for, in a sentence.", "restarts what the network did"),
        "restart_cancelled": _flag("Whether a job that a person cancelled may restart.", True),
        "on_time_limit": _choice(
            OnTimeLimit,
            "After the scheduler's time limit. Without it the clause `timeout` decides.",
            "continue",
        ),
        "modes": modes
        | {
            "description": "A clause for each way to end. Without one nothing restarts.",
            "examples": [{"crash": {"kind": "verdict"}}],
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "midwatch policy",
        **_object(properties, ["policy"]),
        "$defs": {"clause": _clause(), "guard": _guard(), "condition": _condition()},
    }


def _clause() -> Schema:
    restart_on = {
        "error_types": _texts("Kinds of failure, as rules name them.", "nccl_timeout", "communication"),
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
            "unlimited": _flag("No limit of restarts, in place of `max_restarts`.", True),
            "default": _choice(DefaultAction, "What to do where nothing else decides.") | {"default": "stop"},
            "across_modes": _flag("Restarts after every mode count against the limit.", True),
            "restart_on": _object(restart_on)
            | {"description": "What `selective` restarts.", "examples": [{"subsystems": ["slurm"]}]},
            "exclude": _object({"error_types": _texts("Kinds of failure.")})
            | {"description": "What it does not restart, whatever `restart_on` says."},
            "restart_reason": _text(
                "Words that follow the reason of a restart, in brackets.", "the network is back"
            ),
            "stop_reason": _text("Words that follow the reason of a stop, in brackets.", "see the runbook"),
            "costs": _object(
                {
                    "waiting": _length("Until a person looks.", "6h"),
                    "wasted_start": _length("Of a start that fails again.", "2h"),
                    "margin": {
                        "type": "number",
                        "minimum": 1,
                        "default": 3,
                        "description": "So many times a wasted start counts after a permanent failure.",
                    },
                }
            )
            | {
                "description": "Only for `expected_cost`: what it weighs.",
                "examples": [{"waiting": "6h", "wasted_start": "2h", "margin": 3}],
            },
            "guards": {
                "type": "array",
                "items": {"$ref": "#/$defs/guard"},
                "description": "Only for `guarded`: the first that applies and whose `when` holds.",
                "examples": [[{"do": "restart", "rules": ["nccl_ib_retries_exhausted"]}]],
            },
        }
    )


def _guard() -> Schema:
    return _object(
        {
            "do": _choice(GuardAction, "What the guard asks for.", "restart"),
            "rules": _texts(
                "Names of rules, one of which must have a hit. Without them any rule.",
                "nccl_ib_retries_exhausted",
            ),
            "states": _texts(
                "The scheduler's old and new state; `any` stands for every one.", "any", "NODE_FAIL"
            )
            | {"minItems": 2, "maxItems": 2},
            "when": {
                "$ref": "#/$defs/condition",
                "description": "What else must hold.",
                "examples": [{"attempts_below": 3}],
            },
            "reason": _text("Why, in words.", "a node was lost"),
        },
        ["do"],
    )


def _condition() -> Schema:
    several = {"type": "array", "items": {"$ref": "#/$defs/condition"}}
    fact = _object({"key": _text("Its name."), "is": _texts("The values that count.")}, ["key"])
    return _object(
        {
            "always": {"type": "boolean", "description": "It holds, or never.", "examples": [True]},
            "attempts_below": {
                "type": "integer",
                "description": "Fewer attempts were made; the first is 1.",
                "examples": [3],
            },
            "cooldown": {
                "type": "string",
                "pattern": _DURATION,
                "description": "It holds, but a restart waits until so long after the last one.",
                "examples": ["10m"],
            },
            "fact": fact
            | {
                "description": "`key`: `error_type`, `subsystem`, `rule`, `mode`, `severity` or a capture.",
                "examples": [{"key": "mode", "is": ["stall"]}],
            },
            "all": several
            | {
                "description": "Each of these holds.",
                "examples": [[{"attempts_below": 3}, {"cooldown": "10m"}]],
            },
            "any": several
            | {
                "description": "One of these holds.",
                "examples": [[{"attempts_below": 2}, {"fact": {"key": "severity"}}]],
            },
            "not": {
                "$ref": "#/$defs/condition",
                "description": "This does not hold.",
                "examples": [{"fact": {"key": "mode", "is": ["stall"]}}],
            },
            "not_asked": _text(
                "A condition that midwatch never asks. The job is then held for a person.", "disk_is_full"
            ),
        }
    ) | {"minProperties": 1, "maxProperties": 1}


def _object(properties: Mapping[str, object], required: Iterable[str] = ()) -> Schema:
    schema: Schema = {"type": "object", "additionalProperties": False, "properties": dict(properties)}
    return schema | ({"required": list(required)} if required else {})


def _choice(kind: type[StrEnum], description: str, *examples: object) -> Schema:
    return {"enum": [value.value for value in kind], "description": description} | _examples(*examples)


def _flag(description: str, *examples: object) -> Schema:
    return {"type": "boolean", "default": False, "description": description} | _examples(*examples)


def _text(description: str, *examples: object) -> Schema:
    return {"type": "string", "description": description} | _examples(*examples)


def _length(description: str, default: str) -> Schema:
    return {"type": "string", "pattern": _DURATION, "default": default, "description": description}


def _texts(description: str, *example: str) -> Schema:
    items = {"type": "array", "items": {"type": "string"}, "description": description}
    return items | (_examples(list(example)) if example else {})


def _examples(*examples: object) -> Schema:
    return {"examples": list(examples)} if examples else {}
