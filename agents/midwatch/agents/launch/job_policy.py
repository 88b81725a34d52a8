"""The policy that one job brings along, from a file of the person who starts it. Shell.

The file is read where the job is started: decide never sees it. What it says travels with the job's spec.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.policies.oellm import RetryCounting
from midwatch.agents.policies.writer import policy_text
from midwatch.agents.rulesets.reload.status import ask
from midwatch.rules.loader import is_config, load_bundle
from midwatch.rules.model import Note
from midwatch.streams.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class JobPolicy:
    """What the watch is to know. `text` is empty where decide knows the policy by its name anyway.

    `limits`: seconds of silence by phase, where the file sets them; `any_line` then says what ends a silence.
    """

    name: str = ""
    text: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    any_line: bool = False
    notes: tuple[Note, ...] = ()


def job_policy(name: str, settings: Settings) -> JobPolicy:
    """The policy of that name, or of that file: ours, or a configuration of oellm-autoexp.

    A name may also be that of a policy in the bundle of rules in force, which decide looks up at the end.

    Raises:
        ConfigurationError: there is none of that name, or the file cannot be read.
        RuleErrors: everything that is wrong with the file.
    """
    if not name or name in shipped_policies() or name == settings.policy:
        return JobPolicy(name)
    if Path(name).suffix not in (".yaml", ".yml") and name in _in_force(settings):
        return JobPolicy(name)
    policy = load_policy(name, RetryCounting(settings.rules.retries))
    made = JobPolicy(policy.name, policy_text(policy), notes=policy.notes)
    if not is_config(name, Path(name).read_bytes()):
        return made
    bundle = load_bundle(name)
    limits = {str(phase): seconds for phase, seconds in bundle.silence.items()} if bundle.any_line else {}
    return JobPolicy(
        made.name, made.text, limits, bundle.any_line, tuple(dict.fromkeys((*made.notes, *bundle.notes)))
    )


def _in_force(settings: Settings) -> Collection[str]:
    """The names of policies that a push or an edit has put in force."""
    record = ask(settings).record if settings.kafka.bootstrap else None
    if record is None:
        return ()
    return {*record.policies, *(record.foreign.policies if record.foreign else ())}
