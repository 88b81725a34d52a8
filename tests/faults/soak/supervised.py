"""A worker under a supervisor that always starts it again, as systemd or Kubernetes would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESTART_AFTER_S = 0.3
TESTS = Path(__file__).resolve().parents[2]


class SupervisedWorker:
    """One name, many processes: whenever one ends by itself the next is started."""

    def __init__(self, name: str, options: Mapping[str, Any], directory: Path) -> None:
        self.name = name
        self.exit_codes: list[int] = []
        self._options = options
        self._directory = directory
        self._log = (directory / f"{name}.log").open("ab")
        self._starts = 0
        self._begun: list[int] = []  # the size of the log at each start
        self._ending = threading.Event()
        self._doom = ""
        self._process = self._spawn()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _spawn(self) -> subprocess.Popen[bytes]:
        self._starts += 1
        self._begun.append(os.fstat(self._log.fileno()).st_size)
        self.ready_file = self._directory / f"{self.name}-{self._starts}.ready"
        self._counters = self._directory / f"{self.name}-{self._starts}.counters"
        options = {
            **self._options,
            "ready_file": str(self.ready_file),
            "counters": str(self._counters),
            "directory": str(self._directory / self.name),
        }
        extra, self._doom = {"MIDWATCH_FAILPOINT": self._doom} if self._doom else {}, ""
        return subprocess.Popen(
            [sys.executable, "-m", "faults.soak.worker", json.dumps(options)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **extra, "PYTHONPATH": str(TESTS)},
        )

    def _watch(self) -> None:
        while True:
            code = self._process.wait()
            if self._ending.is_set():
                return
            if self._ending.wait(RESTART_AFTER_S):
                return
            self._process = self._spawn()
            self.exit_codes.append(code)  # whoever waits for it may rely on the next process

    def doom(self, failpoint: str) -> None:
        """The next process, and only that one, dies at this failpoint."""
        self._doom = failpoint

    def signal(self, number: signal.Signals) -> None:
        """To the present process; what is dead already cannot mind."""
        self._process.send_signal(number)

    def said(self, words: str) -> bool:
        """Whether the process before the present one said this."""
        begin, end = self._begun[-2:]
        return words.encode() in Path(self._log.name).read_bytes()[begin:end]

    def held(self) -> int:
        """How many partitions the present process says it reads, of both topics; a dead one reads none."""
        if self._process.poll() is not None:
            return 0
        try:
            told = json.loads(self.ready_file.read_text())
        except FileNotFoundError:
            return 0
        return sum(len(partitions) for partitions in told["partitions"].values())

    def counter(self, name: str) -> int:
        """A counter of the present process."""
        try:
            return int(json.loads(self._counters.read_text())[name])
        except FileNotFoundError:
            return 0

    def counters(self) -> dict[str, int]:
        """The counters of all processes of this name, as last seen."""
        total: dict[str, int] = {}
        for path in self._directory.glob(f"{self.name}-*.counters"):
            for name, value in json.loads(path.read_text()).items():
                total[name] = total.get(name, 0) + value
        return total

    def end(self, within_s: float = 30.0) -> int:
        """SIGTERM, and no further start; the exit code. Killed, and -9 told, if it does not end in time."""
        self._ending.set()
        process = self._process
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            process.wait(within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._watcher.join()
        if self._process is not process:  # the watcher had just started another one
            self._process.kill()
            self._process.wait()
        self._log.close()
        return process.returncode
