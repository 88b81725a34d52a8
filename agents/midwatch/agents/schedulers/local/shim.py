"""Runs one job of the cluster `local`: `python -m midwatch.agents.schedulers.local.shim STATE KEY -- ARGV`.

It claims `effects/KEY` before it starts anything, so a second shim with the same key starts nothing (exit
code 75). It leads the job's session and process group and outlives the executor that started it. It records
how the script ended. On SIGTERM it lets the script finish, and after MIDWATCH_GRACE_S (10) seconds it sends
SIGKILL to the rest of the group. When the script has ended, it kills whatever is left of the group.
"""

from __future__ import annotations

import dataclasses
import getpass
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from midwatch.agents.schedulers.local.effect_file import KEY, Record, create, replace
from midwatch.agents.schedulers.local.wakeups import Wakeups
from midwatch.streams.host.process_table import boot_id, group_members, start_ticks

ALREADY_STARTED = 75  # EX_TEMPFAIL
USAGE = 2
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as in a shell
GRACE_S = 10.0
POLL_S = 0.05
_LOOK_S = 5.0  # seconds; only a bound, because a child's end or a signal wakes the shim


def main(arguments: list[str]) -> int:
    """Runs the script; returns its exit code in a shell's form, 128 + N after signal N."""
    if len(arguments) < 4 or arguments[2] != "--" or not KEY.fullmatch(arguments[1]):
        sys.stderr.write("usage: local_shim STATE_DIR KEY -- argv...\n")
        return USAGE
    directory, key, argv = Path(arguments[0]), arguments[1], tuple(arguments[3:])
    if os.getpgrp() != os.getpid():
        os.setsid()
    sigterms: list[float] = []
    signal.signal(signal.SIGTERM, lambda *_: sigterms.append(time.monotonic()))
    pid = os.getpid()
    record = Record(
        key=key,
        pid=pid,
        ticks=start_ticks(pid) or 0,
        boot=boot_id(),
        user=getpass.getuser(),
        argv=argv,
        cwd=os.getcwd(),
        started_at=time.time(),
    )
    if not create(directory, record):
        return ALREADY_STARTED
    code, reason = _run(argv, sigterms)
    _end_rest(pid)
    replace(
        directory,
        dataclasses.replace(record, code=code, cancelled=bool(sigterms), reason=reason, ended_at=time.time()),
    )
    return 128 - code if code < 0 else code


def _run(argv: tuple[str, ...], sigterms: list[float]) -> tuple[int, str]:
    grace = float(os.environ.get("MIDWATCH_GRACE_S", GRACE_S))
    wakeups = Wakeups()
    try:
        # restore the default signals: the script must not inherit what the shim ignores
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, restore_signals=True)
    except FileNotFoundError:
        return NOT_FOUND, f"{argv[0]} was not found"
    except OSError as error:
        return NOT_EXECUTABLE, f"{argv[0]} cannot be run: {error.strerror}"
    if sigterms:  # SIGTERM came before the script could receive it
        process.terminate()
    while (code := process.poll()) is None:
        left = sigterms[0] + grace - time.monotonic() if sigterms else _LOOK_S
        if left < 0:
            _end_rest(os.getpid())
        wakeups.rest(max(left, POLL_S))
    return code, ""


def _end_rest(group: int) -> None:
    """Sends SIGKILL to all of the group but this process, until none is left."""
    while others := [pid for pid in group_members(group) if pid != os.getpid()]:
        for pid in others:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(POLL_S)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
