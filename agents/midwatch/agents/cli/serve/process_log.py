"""The log of our server processes: one line for each record, on standard error, with the time in UTC."""

from __future__ import annotations

import logging
import sys
import time


def log_to_stderr(level: str = "INFO") -> None:
    """Sets up the root logger of this process; call it once, first."""
    formatter = logging.Formatter(
        "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S"
    )
    formatter.converter = time.gmtime
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # It warns of SASL without TLS at every connection. Loopback needs no TLS; elsewhere `doctor` warns.
    logging.getLogger("kafka.net.sasl.plain").setLevel(logging.ERROR)
