"""A command of this machine: its argv is in the settings, the notice is JSON on its standard input."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import dataclass

from midwatch.agents.messages.channels.base import ChannelRefused
from midwatch.agents.messages.channels.webhook import as_json
from midwatch.agents.messages.notice import Notice

_TAIL = 300


@dataclass(frozen=True, slots=True)
class CommandChannel:
    """Runs the command once for each notice. Exit code 0 means that it is told.

    No text of a job is an argument, and no shell runs. midwatch's own variables are kept from the command,
    because they may hold secrets.
    """

    argv: tuple[str, ...]

    @property
    def secrets(self) -> tuple[str, ...]:
        """None: a command line is no place for one."""
        return ()

    async def send(self, notice: Notice) -> None:
        """Run it. Cancelled, it kills the command and all that the command started in its group."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MIDWATCH_")}
        try:
            process = await asyncio.create_subprocess_exec(
                *self.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )
        except OSError as error:
            raise ChannelRefused(f"{self.argv[0]}: {error.strerror}", lasting=True) from error
        try:
            output, _ = await process.communicate(json.dumps(as_json(notice)).encode() + b"\n")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode:
            tail = output[-_TAIL:].decode("utf-8", "replace")
            raise ChannelRefused(f"{self.argv[0]} ended with status {process.returncode}: {tail}")
