"""The name by which the workers of one `up` take their place in Kafka's groups again. Shell.

A worker without a name that is killed and started at once joins its group as a stranger, and the group waits
for the dead one until that one's session ends. One that is known by its name has its partitions back at once.
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
    """The same at each start on this host with this state directory, and nobody else's. Call it under the
    directory's lock: two workers of one name put each other out of their group for ever.
    """
    # The host is in it because a state directory may be copied to another one.
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
