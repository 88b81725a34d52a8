"""The rest of a process that watches others; each test in a process of its own, for its signals."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import os, signal, subprocess, threading, time
from midwatch.agents.schedulers.local.wakeups import Wakeups
signal.signal(signal.SIGTERM, lambda *_: None)
wakeups = Wakeups()
began = time.monotonic()
"""
# A rest that nothing ends is one of an hour: the test's patience is over long before.
ENDED_BY = {
    "a child that ends meanwhile": "child = subprocess.Popen(['sleep', '0.2']); wakeups.rest(3600)",
    "a child that ended before": "subprocess.Popen(['true']).wait(); wakeups.rest(3600)",
    "a signal": "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start(); wakeups.rest(3600)",
    "its time": "wakeups.rest(0.2)",
}


def outcome(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("what", list(ENDED_BY))
def test_a_rest_is_ended_by(what: str) -> None:
    done = outcome(ENDED_BY[what])
    assert done.returncode == 0, done.stderr


def test_what_woke_it_once_does_not_wake_it_again() -> None:
    done = outcome(
        "for _ in range(3): os.kill(os.getpid(), signal.SIGTERM)\n"
        "wakeups.rest(3600); wakeups.rest(0.2); print(time.monotonic() - began)"
    )
    assert float(done.stdout) >= 0.2
