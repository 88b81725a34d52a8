"""Slack: an incoming webhook for a channel, or a bot that writes to people."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from midwatch.agents.messages.channels.base import ChannelRefused
from midwatch.agents.messages.channels.escaping import slack
from midwatch.agents.messages.channels.http import parts_of, post
from midwatch.agents.messages.notice import Notice

_SIGN = {"critical": ":red_circle:", "warning": ":large_orange_circle:", "info": ":large_blue_circle:"}
_PASSING = ("ratelimited", "rate_limited", "internal_error", "fatal_error", "service_unavailable", "timeout")


def text_of(notice: Notice) -> str:
    """The notice in mrkdwn. Only the labels and the signs are markup: all else is escaped."""
    sign = ":white_check_mark:" if notice.state == "resolved" else _SIGN[notice.severity]
    lines = [f"{sign} *{slack(notice.heading.replace('*', ''))}*"]
    for label, text in notice.lines():
        shown = f"```{slack(text)}```" if label in ("Why", "Look further") else slack(text)
        lines.append(f"*{label}*: {shown}")
    return "\n".join([*lines, f"_message {notice.id}_"])


@dataclass(frozen=True, slots=True)
class SlackWebhook:
    """Posts to the channel to which the webhook belongs."""

    url: str

    @property
    def secrets(self) -> tuple[str, ...]:
        """Who knows the address may post."""
        return parts_of(self.url)

    async def send(self, notice: Notice) -> None:
        """One POST."""
        await post(self.url, {"text": text_of(notice), "unfurl_links": False, "unfurl_media": False})


@dataclass(frozen=True, slots=True)
class SlackBot:
    """Writes to people or channels: ids, or the mail addresses by which Slack knows the people.

    It needs the scopes `chat:write` and, for mail addresses, `users:read.email`.
    """

    token: str
    to: tuple[str, ...]
    api: str = "https://slack.com/api"
    found: dict[str, str] = field(default_factory=dict, compare=False)
    """The ids of mail addresses that were looked up."""
    taken: dict[str, str] = field(default_factory=dict, compare=False)
    """The last notice that each receiver has, so that a retry spares those who have it."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The token."""
        return (self.token,)

    async def send(self, notice: Notice) -> None:
        """One call for each receiver, all at once. The message's metadata holds key and id."""
        left = [each for each in self.to if self.taken.get(each) != notice.id + notice.note]
        done = await asyncio.gather(*(self._tell(each, notice) for each in left), return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                raise error

    async def _tell(self, receiver: str, notice: Notice) -> None:
        body = {
            "channel": await self._id(receiver),
            "text": text_of(notice),
            "metadata": {
                "event_type": "midwatch_message",
                "event_payload": {"key": notice.key, "id": notice.id, "state": notice.state},
            },
            "unfurl_links": False,
            "unfurl_media": False,
        }
        await self._call("chat.postMessage", body)
        self.taken[receiver] = notice.id + notice.note

    async def _id(self, receiver: str) -> str:
        if "@" not in receiver.lstrip("@"):
            return receiver
        if receiver not in self.found:
            # This method takes a form and no JSON.
            answer = await self._call("users.lookupByEmail", form={"email": receiver})
            self.found[receiver] = str(answer["user"]["id"])
        return self.found[receiver]

    async def _call(
        self, method: str, body: dict[str, Any] | None = None, form: dict[str, str] | None = None
    ) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = await post(f"{self.api.rstrip('/')}/{method}", body, headers, form)
        try:
            fields = json.loads(answer)
        except ValueError as error:
            raise ChannelRefused(f"{method} answered what is no JSON") from error
        if not fields.get("ok"):
            why = str(fields.get("error", "unknown"))
            raise ChannelRefused(f"{method}: {why}", lasting=why not in _PASSING)
        return dict(fields)
