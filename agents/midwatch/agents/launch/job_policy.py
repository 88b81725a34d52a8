"""The policy of one job, from a file of the person who starts it. Shell.

`midwatch run` reads the file, and decide never sees it. The policy's text travels with the job's spec.
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
    """A policy as the job's spec carries it. `text` is empty where decide knows the policy by its name.

    `limits`: seconds of silence by phase, where the file sets them. `any_line`: any line ends a silence.
    """

    name: str = ""
    text: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    any_line: bool = False
    notes: tuple[Note, ...] = ()


def job_policy(name: str, settings: Settings) -> JobPolicy:
    """The policy of that name or file. The file is a policy of midwatch or a configuration of oellm-autoexp.

    The name may be that of a policy in the current bundle, which decide looks up itself.

    Raises:
        ConfigurationError: no policy has that name, or the file cannot be read.
        RuleErrors: the file has mistakes; the error lists all of them.
    """
    if not name or name in shipped_policies() or name == settings.policy:
        return JobPolicy(name)
    if Path(name).suffix not in (".yaml", ".yml") and name in _current_policies(settings):
        return JobPolicy(name)
    policy = load_policy(name, RetryCounting(settings.rules.retries))
    text = policy_text(policy)
    if not is_config(name, Path(name).read_bytes()):
        return JobPolicy(policy.name, text, notes=policy.notes)
    bundle = load_bundle(name)
    limits = {str(phase): seconds for phase, seconds in bundle.silence.items()} if bundle.any_line else {}
    return JobPolicy(
        policy.name, text, limits, bundle.any_line, tuple(dict.fromkeys((*policy.notes, *bundle.notes)))
    )


def _current_policies(settings: Settings) -> Collection[str]:
    """The names of the policies in the current bundle."""
    record = ask(settings).record if settings.kafka.bootstrap else None
    if record is None:
        return ()
    return {*record.policies, *(record.foreign.policies if record.foreign else ())}
