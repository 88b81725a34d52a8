"""Served on: a request of a web server raised an exception, and the server answered the next. Pure.

A server catches what a request raises, prints its traceback and waits for others. Only a good answer to the
same kind of request shows that it is well again. A page on its health answers whatever else is broken.
"""

from __future__ import annotations

import re
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind

_READ = 2000
"""Lines on each side of the failure in which answers are looked for."""
_LONGEST = 240  # lines of a traceback through the layers of a server
_OF_A_SERVER = re.compile(
    r"File \"[^\"]*/(?:uvicorn/protocols|hypercorn|gunicorn/workers|waitress|tornado|werkzeug|flask"
    r"|aiohttp/web_\w+|starlette|django/core/handlers)[\w/]*\.py\", line \d"
)
_HEADER = "Traceback (most recent call last):"
_ANSWER = re.compile(
    r"\"(?P<request>[A-Z]{3,7} [^\s?\"]+)[^\"]{0,400} HTTP/\d(?:\.\d)?\"[ :]{1,3}(?P<status>[1-5]\d\d)\b"
)


def served_on(file: LogFile, last: int) -> bool:
    """Whether line `last` ends the traceback of a request that was answered well later. Raises OSError."""
    first = max(last - _READ, 0)
    above = list(islice(lines_behind(file, first), last - first))
    if not _is_of_a_request(above[-_LONGEST:]):
        return False
    failed = [found["request"] for found in map(_ANSWER.search, above) if found and found["status"] >= "4"]
    if not failed:
        return False
    behind = filter(None, map(_ANSWER.search, islice(lines_behind(file, last), _READ)))
    return any(each["request"] == failed[-1] and each["status"] < "4" for each in behind)


def _is_of_a_request(lines: list[str]) -> bool:
    """Whether the last traceback of the lines goes through the layers of a server."""
    headers = [at for at, line in enumerate(lines) if _HEADER in line]
    return bool(headers) and any(_OF_A_SERVER.search(line) for line in lines[headers[-1] :])
