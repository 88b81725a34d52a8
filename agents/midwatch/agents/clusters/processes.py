"""What /proc says of processes. A pid alone names nothing: pids come again, start times do not."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None if it is gone or only waits to be reaped."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in ("Z", "X") else None


def group_members(group: int) -> list[int]:
    """Pids of the live processes of a process group."""
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
    return [p for p in pids if (f := _stat(p)) and int(f[2]) == group and f[0] not in ("Z", "X")]


def boot_id() -> str:
    """Names this boot of the machine: start times count from it."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _stat(pid: int) -> list[str]:
    """The fields of stat behind the command's name, which may itself hold blanks and brackets."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
