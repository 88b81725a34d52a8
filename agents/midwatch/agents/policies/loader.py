"""Shell: loads a policy by its name if midwatch ships it, or from a user file."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.oellm import RetryCounting, policy_of
from midwatch.agents.policies.reader import read_policy
from midwatch.rules.loader import is_config, load_config
from midwatch.streams.errors import ConfigurationError


def shipped_policies() -> tuple[str, ...]:
    """The names that `--policy` takes without a file."""
    packs = files("midwatch.agents.policies").joinpath("packs")
    return tuple(sorted(entry.name[:-5] for entry in packs.iterdir() if entry.name.endswith(".yaml")))


def load_policy(name: str, counting: RetryCounting = RetryCounting.DOCUMENTED) -> Policy:
    """A shipped policy by its name, or a policy from a file. The file is midwatch's or oellm-autoexp's.

    `counting` says what `max_retries` means in a file of oellm-autoexp.

    Raises:
        ConfigurationError: no such policy, an unreadable file, or errors in it.
    """
    if name in shipped_policies():
        pack = files("midwatch.agents.policies").joinpath("packs", f"{name}.yaml")
        return read_policy(f"{name}.yaml", pack.read_bytes())
    path = Path(name)
    if path.suffix not in (".yaml", ".yml"):
        raise ConfigurationError(
            f"there is no policy called {name!r}",
            where="--policy",
            remedy=f"take one of {', '.join(shipped_policies())}, or the path of a YAML file",
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the policy cannot be read: {error.strerror}", where=name, remedy="check the path and its rights"
        ) from error
    if is_config(name, content):
        return _foreign(name, counting)
    return read_policy(name, content)


def _foreign(path: str, counting: RetryCounting) -> Policy:
    config = load_config(path)
    if config.policy is not None and config.policies is None and config.policy.name in shipped_policies():
        shipped = load_policy(config.policy.name)
        return replace(shipped, notes=config.notes)
    return policy_of(config, counting)
