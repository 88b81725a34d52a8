"""The name by which workers of one `up` join Kafka's groups (static membership). Shell.

A killed worker without a name joins its group as a new member. The group then waits until the session of the
dead member ends. A worker with a name gets its partitions back at once.
"""

from __future__ import annotations

import re
import secrets
import socket
from pathlib import Path

from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.worker.readiness import run_directory

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_HOST = 100
_TOKEN = re.compile(r"[0-9a-f]{16}")


def instance_id(state_directory: Path) -> str:
    """The name for this host and state directory. It is the same at each start, and no other `up` has it.

    Call it under the directory's lock. Two workers of one name remove each other from the group for ever.
    """
    # The name holds the host, because somebody may copy a state directory to another host.
    host = _NOT_IN_A_NAME.sub("-", socket.gethostname())[:_LONGEST_HOST]
    return f"up-{host}-{_token(run_directory(state_directory) / 'instance')}"


def _token(file: Path) -> str:
    try:
        token = file.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        token = ""
    if not _TOKEN.fullmatch(token):
        token = secrets.token_hex(8)
        replace_file(file, f"{token}\n".encode())
    return token
