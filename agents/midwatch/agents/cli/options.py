"""The options that every command with settings has: --config, --state-directory, --set."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midwatch.streams.errors import UsageError

if TYPE_CHECKING:
    from midwatch.streams.settings.reader import Assignment

Handler = Callable[..., Any]


def with_settings(
    *, connected: bool = False, arguments: bool = False, has_set: bool = True
) -> Callable[[Handler], Handler]:
    """Gives the command its `settings`, read from its options, environment variables and the settings file.

    With `connected`, a missing address of Kafka or Redis comes from the running `midwatch up` of the same
    state directory. Nothing is contacted yet. With `arguments`, the command also gets `settings_arguments`:
    the same options again, for child processes in the same directory and environment. Without `has_set` the
    command has a `--set` of its own.
    """

    def decorate(handler: Handler) -> Handler:
        @click.option(
            "--config", type=click.Path(path_type=Path), help="Settings file [default: midwatch.yaml]."
        )
        @click.option(
            "--state-directory", metavar="DIR", help="Keys and data [default: ~/.local/state/midwatch]."
        )
        @functools.wraps(handler)
        def command(
            *args: Any,
            config: Path | None,
            state_directory: str | None,
            changes: tuple[str, ...] = (),
            **kw: Any,
        ) -> Any:
            from midwatch.streams.settings.file import load_settings

            assignments = [_assignment(change) for change in changes]
            if state_directory:
                assignments.append(_assignment(f"state_directory={state_directory}", "--state-directory"))
            settings = load_settings(config, options=assignments)
            if connected:
                from midwatch.streams.services.connection import with_connection

                settings = with_connection(settings)
            if arguments:
                kw["settings_arguments"] = [
                    *([f"--config={config}"] if config else []),
                    *([f"--state-directory={state_directory}"] if state_directory else []),
                    *(f"--set={change}" for change in changes),
                ]
            return handler(*args, settings=settings, **kw)

        if has_set:
            one = click.option(
                "--set", "changes", metavar="KEY=VALUE", multiple=True, help="Change one setting."
            )
            command = one(command)
        return command

    return decorate


def _assignment(change: str, where: str = "") -> Assignment:
    import difflib

    from midwatch.streams.settings.reader import Assignment, leaves

    name, equals, text = change.partition("=")
    known = {".".join(path): entry for path, entry in leaves()}
    if name not in known or not equals:
        near = difflib.get_close_matches(name, known, n=1)
        raise UsageError(
            f"no such setting: {name}" if equals else f"{change!r} is not KEY=VALUE",
            where=where or "--set",
            remedy=f"did you mean {near[0]}=…?" if near else "write for example --set watch.mode=act",
        )
    if known[name].metadata["kind"].secret:
        raise UsageError(
            "every user of this machine can read a command line",
            where=f"--set {name}",
            remedy=f"name a file that holds the secret: --set {name}_file=FILE",
        )
    return Assignment(tuple(name.split(".")), text, where or f"--set {name}")


json_option = click.option("--json", "as_json", is_flag=True, help="Print versioned JSON.")

retries_option = click.option(
    "--retries",
    type=click.Choice(["documented", "compat"]),
    default="documented",
    show_default=True,
    help="How to read max_retries N of an oellm-autoexp file: N restarts for each mode, or N - 1 in all.",
)
