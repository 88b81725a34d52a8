"""One POST with a JSON body, for the channels that speak HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from midwatch.agents.messages.channels.base import ChannelRefused
from midwatch.agents.messages.retry import retry_after_s

_ANSWER_LIMIT = 256 * 1024
_TOKEN_LEAST = 6
"""A shorter value is no token, and may stand in any text."""
_PASSING = (408, 425, 429)
"""Client errors that a later try may not meet."""


async def post(
    url: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
) -> bytes:
    """POST a JSON body or a form once, and return the answer. The caller bounds the time.

    Proxies of the environment are used. Redirects are not followed: they would carry the body elsewhere.

    Raises:
        ChannelRefused: the status is not 2xx.
        aiohttp.ClientError, OSError: there was no answer.
    """
    async with (
        aiohttp.ClientSession(trust_env=True) as session,
        session.post(url, json=body, data=form, headers=dict(headers or {}), allow_redirects=False) as answer,
    ):
        text = await answer.content.read(_ANSWER_LIMIT)
        if 200 <= answer.status < 300:
            return text
        lasting = answer.status < 500 and answer.status not in _PASSING
        reason = text.decode("utf-8", "replace")[:200]
        pause_s = retry_after_s(answer.headers.get("Retry-After"))
        raise ChannelRefused(f"HTTP {answer.status} {reason}".strip(), lasting=lasting, pause_s=pause_s)


def parts_of(url: str) -> tuple[str, ...]:
    """What of an address no log may show, the longest first.

    These are the whole, its path and its query, in which tokens stand, and each long value of the query.
    """
    split = urlsplit(url)
    path = split.path if len(split.path) > 1 else ""
    whole = f"{path}?{split.query}" if split.query else path
    values = (value for _, value in parse_qsl(split.query) if len(value) >= _TOKEN_LEAST)
    parts = {part for part in (url, whole, path, split.query, *values) if part}
    return tuple(sorted(parts, key=lambda part: (-len(part), part)))


def json_body(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """A body without the fields that say nothing."""
    return {name: value for name, value in pairs.items() if value not in ("", None)}
