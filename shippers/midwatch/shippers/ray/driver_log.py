"""The log of one driver, copied from the head's API into a file, which the sidecar then follows.

The head serves the log from its beginning at each connection, so what the file holds already is skipped. The
tail of a running job may miss its last words, so it is read once more after the end.
While the head or the agent beside the driver does not answer, the shipper is blind: it then vouches for no
silence. The API shows a status and no process, so a heartbeat never says that one is alive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from midwatch.shippers.files.followed import FollowedFiles, Start
from midwatch.shippers.files.sent_positions import Remembered
from midwatch.shippers.files.tail import Now
from midwatch.shippers.messages import Report
from midwatch.shippers.processes import JobProcess
from midwatch.shippers.ray.websocket import LogTail
from midwatch.streams.services.ray_jobs import LIVE, RayHead, call

FRESH_S = 5.0
"""Seconds for which one answer of head and agent vouches, from when it was asked for.

No longer than detect waits for the lines of an end: an answer from before the end must not vouch for them.
"""

_LOOK_S = 2.0
_CALL_S = 5.0
_AGAIN_S = 1.0
_ABSENT = 404


class DriverLog(threading.Thread):
    """Copies one driver's log into `file` until the job has ended and all is copied."""

    def __init__(self, head: RayHead, submission: str, file: Path, report: Report) -> None:
        super().__init__(name="driver-log", daemon=True)
        self._head = head
        self._path = f"/api/jobs/{quote(submission, safe='')}"
        self._submission = submission
        self._file = file
        self._report = report
        self._said = ""
        self._forgotten = False
        self._fresh_at = float("-inf")
        self.over = False
        """The job has ended, or the head has forgotten it."""
        self.complete = False
        """Nothing more will come."""

    def fresh(self, now: float) -> bool:
        """Whether the copy has all that the job printed until a moment ago; `now` is monotonic.

        An ended job prints no more, but its last words may still be on their way here.
        """
        return self.complete or (not self.over and now - self._fresh_at < FRESH_S)

    def run(self) -> None:
        """Copies, and connects again whenever the connection breaks."""
        looks = threading.Thread(target=self._look, name="driver-status", daemon=True)
        looks.start()
        while not self.complete:
            ended = self.over
            try:
                self._copy()
                self._look_once()
                # The agent looks at the file and then at the status: the driver may write and end in between.
                self.complete = ended and self.over
            except OSError as error:
                self._say(f"the log of {self._submission} cannot be read: {error}")
            self.complete = self.complete or self._forgotten
            if not self.complete:
                time.sleep(_AGAIN_S)

    def _copy(self) -> None:
        """Follows one connection to its end. Raises OSError when it breaks."""
        have = self._file.stat().st_size if self._file.exists() else 0
        tail = LogTail(self._head, f"{self._path}/logs/tail", _CALL_S)
        try:
            with self._file.open("ab") as file:
                while not tail.complete:
                    for text in tail.texts(_LOOK_S):
                        skipped = min(have, len(text))
                        have -= skipped
                        file.write(text[skipped:])
                    file.flush()
                    self._said = ""
        finally:
            tail.close()

    def _look(self) -> None:
        while not self.complete:
            self._look_once()
            time.sleep(_LOOK_S)

    def _look_once(self) -> None:
        asked = time.monotonic()
        answer = call(self._head, "GET", self._path, timeout=_CALL_S)
        if answer.status == _ABSENT:
            self.over = self._forgotten = True
            return
        try:
            job = answer.json() if answer.status == 200 else {}
        except ValueError:
            job = {}
        status = job.get("status") if isinstance(job, dict) else None
        if not status:
            self._say(f"the head does not answer: {answer.text}")
            return
        self.over = status not in LIVE
        if status == "PENDING" or self._agent_answers(job.get("driver_node_id")):
            self._fresh_at = asked

    def _agent_answers(self, node: object) -> bool:
        """Whether the agent that reads the driver's log answers: else silence would be the agent's own."""
        if not isinstance(node, str) or not node:
            return False
        glob = quote(f"job-driver-{self._submission}*", safe="")
        path = f"/api/v0/logs?node_id={quote(node, safe='')}&glob={glob}&timeout=4"
        return call(self._head, "GET", path, timeout=_CALL_S).status == 200

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._report(text)


class DriverLogFile(FollowedFiles):
    """The copied file as the sidecar's source of lines."""

    def __init__(self, log: DriverLog, file: Path, start: Start, remembered: Sequence[Remembered]) -> None:
        super().__init__((str(file),), start=start, remembered=remembered)
        self._log = log

    def poll(self, now: Now, *, rescan: bool = False) -> None:
        complete = self._log.complete  # before the look at the file, whose last bytes may just have come
        super().poll(now, rescan=rescan or complete)
        self.blind = self.blind or not self._log.fresh(now.monotonic)
        self.ended = complete


class DriverJob(JobProcess):
    """The driver as the sidecar waits for it. Nobody here sees its process."""

    def __init__(self, log: DriverLog) -> None:  # no process id: the driver is on the cluster
        self._log = log

    def running(self) -> bool:
        return not self._log.complete

    def alive(self) -> bool | None:
        return None
