"""A rest that ends when a child of this process ends or a signal comes to it.

`Popen.wait(timeout=...)` polls every 0.5 to 50 ms, and starts over with each call. A process that only waits
would wake over a hundred times a second, on a node that trains.
"""

from __future__ import annotations

import os
import select
import signal


class Wakeups:
    """The wake-ups of this process. Make one, in the main thread, before the first child.

    A child that ended earlier wakes nobody.
    """

    def __init__(self) -> None:
        self._woken, written = os.pipe()
        for end in (self._woken, written):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # the default action would write nothing

    def rest(self, at_most: float) -> None:
        """Returns when a child ended or a signal came since the last rest, or after `at_most` seconds."""
        if select.select([self._woken], [], [], at_most)[0]:
            os.read(self._woken, 4096)
