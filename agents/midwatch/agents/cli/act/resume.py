"""`midwatch resume JOB`: a person starts a job again from its checkpoint, with a changed configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import with_settings
from midwatch.streams.errors import UsageError
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from midwatch.agents.rescue.plan import Plan
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("job")
@click.option(
    "--set", "values", multiple=True, metavar="KEY=VALUE", help="A value to change in the configuration."
)
@click.option(
    "--config-file",
    default="",
    metavar="NAME",
    help="The YAML file to change, where the job's command line names several.",
)
@click.option(
    "--resume-key",
    default=None,
    metavar="KEY",
    help='The key that gets the checkpoint [default: a known one that the file has]; "" for none.',
)
@click.option("--same", is_flag=True, help="Start it again as it was.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option(
    "--patience",
    type=click.FloatRange(1, 3600),
    default=120.0,
    show_default=True,
    help="Seconds to wait for the executor.",
)
@with_settings(connected=True, has_set=False)
def resume(
    job: str,
    settings: Settings,
    *,
    values: tuple[str, ...],
    config_file: str,
    resume_key: str | None,
    same: bool,
    yes: bool,
    patience: float,
) -> int:
    """Start JOB again, after it ended, from its latest complete checkpoint.

    It shows its plan and asks. The job need not be armed; only `disarm --all` forbids it. The restart goes
    through the executor, counts against the budget, and happens once.
    """
    from midwatch.agents.query.inquiry import ask_job
    from midwatch.agents.rescue.ordering import await_outcome, order
    from midwatch.agents.rescue.plan import make_plan
    from midwatch.agents.rescue.yaml_patch import setting

    if same and (values or config_file or resume_key is not None):
        raise UsageError(
            "--same changes nothing", where="midwatch resume", remedy="leave it out, or the other options"
        )
    wanted = tuple(setting(text) for text in values)
    timeline, _ = ask_job(settings, job, now_ms())
    plan = make_plan(
        timeline, now_ms(), wanted=wanted, config_file=config_file, resume_key=resume_key, same=same
    )
    for line in _shown(plan):
        click.echo(line)
    if not yes and not click.confirm("Execute?", default=True):
        click.echo("nothing was done")
        return 0
    command = order(plan, settings)
    outcome = await_outcome(settings, command, patience)
    click.echo(f"{command.job} is started again as {outcome.new_native_id}, attempt {command.attempt + 1}")
    return 0


def _shown(plan: Plan) -> Iterator[str]:
    from datetime import UTC, datetime

    from midwatch.agents.activity import printable
    from midwatch.agents.cli.printing import incident_phrase

    yield f"{plan.spec.job}: attempt {plan.incident.attempt}: {incident_phrase(plan.incident)}"
    for note in plan.notes:
        yield f"  {printable(note)}"
    point = plan.point
    if point is not None:
        when = datetime.fromtimestamp(point.written_ms / 1000, UTC).isoformat(" ", "seconds")
        ended_ms = plan.incident.ended_ms
        age = f", {max(ended_ms - point.written_ms, 0) // 1000} s before the end" if ended_ms else ""
        yield f"checkpoint: {point.unit} {point.step}, {printable(point.path)}, written {when}{age}"
    else:
        yield "checkpoint: none is complete, so it begins anew"
    yield "plan:"
    steps = []
    if plan.edit is not None:
        steps.append(f"clone {printable(plan.edit.config.name)} to {printable(plan.edit.clone.name)}")
        steps += [
            f"set {each.key}: {printable(each.old) or chr(34) * 2} → {printable(each.new)}"
            for each in plan.edit.changed
        ]
    if point is not None and not plan.sets_resume_key:
        steps.append("name the checkpoint by MIDWATCH_RESUME_FROM alone: no key of the file takes it")
    limit = plan.spec.max_restarts
    number = f"restart {plan.restarts + 1}" + (f" of {limit}" if limit is not None else "")
    steps.append(f"submit it to {plan.spec.cluster} as attempt {plan.incident.attempt + 1}, {number}")
    yield from (f"  {number}. {step}" for number, step in enumerate(steps, 1))
    if plan.edit is not None:
        yield plan.edit.diff
