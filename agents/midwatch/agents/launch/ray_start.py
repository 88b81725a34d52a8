"""Starts a job on the settings' Ray head, and publishes its spec. Shell: keeps submission and variables."""

from __future__ import annotations

import os
from dataclasses import replace

from midwatch.agents.launch.first_start import check_absent, submit_first
from midwatch.agents.launch.job_spec import (
    RunRequest,
    Started,
    before_the_start,
    check_room,
    name_of,
    owner_of,
    spec_event,
    spec_of,
)
from midwatch.agents.launch.ray_submission import EntrypointSidecar, keep_ray_submission
from midwatch.agents.launch.variables import allowed
from midwatch.agents.reporter import Reporter
from midwatch.agents.schedulers import cluster as cluster_of
from midwatch.agents.schedulers.base import StartSpec
from midwatch.agents.schedulers.calls import Caller
from midwatch.agents.schedulers.environment_file import keep_environment
from midwatch.agents.schedulers.ray.states import ANY_SESSION
from midwatch.agents.signing import ensure_keys
from midwatch.streams.services.reachable import check_kafka
from midwatch.streams.settings.schema import Settings


def start_on_ray(request: RunRequest, settings: Settings, caller: Caller) -> Started:
    """Starts the job once. Its submission id is known before the start, so its name is too.

    Raises as `midwatch.agents.launch.start.start` does.
    """
    sidecar = EntrypointSidecar(tuple(str(request.cwd / path) for path in request.log_paths), request.nodes)
    with before_the_start(settings):
        check_room(settings.state_directory)
        kept = keep_ray_submission(
            request.argv,
            cwd=request.cwd,
            folder=settings.state_directory / "submissions",
            address=settings.ray.address,
            environment=os.environ,
            secret_files=request.secrets,
            sidecar=sidecar if request.sidecar or request.log_paths else None,
        )
    head = cluster_of("ray", "ray", settings.state_directory, caller, settings.ray)
    check_absent(head, f"ray:{kept.submission_id}:{ANY_SESSION}")
    with before_the_start(settings):
        check_kafka(settings)
    reporter = Reporter(settings)
    try:
        with before_the_start(settings):
            signer = ensure_keys(settings.state_directory)
            name = name_of(request.job or kept.submission_id, owner_of(settings, "ray"))
            variables = _variables(request, settings)
            file = keep_environment(settings.state_directory, variables)
            spec = spec_of(replace(request, argv=kept.argv), settings, "ray", name)
            spec = signer.sign(replace(spec, environment_file=str(file)))
            reporter.spec(spec)
        first = StartSpec(spec.argv, spec.cwd, {**variables, "MIDWATCH_JOB": spec.job}, spec.user)
        incarnation = submit_first(head, first, kept.submission_id)
        event = spec_event(spec, incarnation)
        reporter.event(replace(event, policy_text=request.policy_text, any_line=request.any_line))
        return Started(spec, incarnation, warnings=kept.warnings)
    finally:
        reporter.close()


def _variables(request: RunRequest, settings: Settings) -> dict[str, str]:
    """What the job gets of our environment. Ray's API shows a job's variables to everybody.

    Ray's client sends none of the shell's. A shipper in the entrypoint needs those of the watch.
    """
    if not (request.sidecar or request.log_paths):
        return {name: os.environ[name] for name in request.variables if name in os.environ}
    ours = dict(request.settings or {}) | {
        "MIDWATCH_STATE_DIRECTORY": str(settings.state_directory.absolute())
    }
    return allowed(os.environ, request.variables) | ours
