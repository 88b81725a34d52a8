"""Shell: finds a policy by name among the shipped ones, or in a user's file."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from midwatch.agents.policies.base import Policy
from midwatch.agents.policies.reader import read_policy
from midwatch.streams.errors import ConfigurationError


def shipped_policies() -> tuple[str, ...]:
    """The names that `--policy` takes without a file."""
    packs = files("midwatch.agents.policies").joinpath("packs")
    return tuple(sorted(entry.name[:-5] for entry in packs.iterdir() if entry.name.endswith(".yaml")))


def load_policy(name: str) -> Policy:
    """A shipped policy by its name, or one from the file of that path.

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
    return read_policy(name, content)
