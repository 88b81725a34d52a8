"""What a driver can know of itself: its incarnation. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from midwatch.streams.records.identity import ray_incarnation

_CONFIGURATION = "RAY_JOB_CONFIG_JSON_ENV_VAR"


def driver_incarnation(environment: Mapping[str, str], outputs: Iterable[str]) -> str:
    """The incarnation of the driver with these variables, whose output goes to these files; "" for none.

    Ray tells a driver its submission id, and the session only by the folder that the output lies in.
    """
    try:
        configuration = json.loads(environment.get(_CONFIGURATION, ""))
        submission = configuration["metadata"]["job_submission_id"]
    except (ValueError, KeyError, TypeError):
        return ""
    parts = (part for path in outputs for part in PurePath(path).parts)
    session = next((part for part in parts if part.startswith("session_")), "")
    return ray_incarnation(submission, session) if session else ""
