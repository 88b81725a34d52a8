"""Any service that takes a JSON object by POST."""

from __future__ import annotations

from dataclasses import dataclass

from midwatch.agents.messages.channels.http import json_body, parts_of, post
from midwatch.agents.messages.notice import Notice


def as_json(notice: Notice) -> dict[str, object]:
    """The notice for programs. Fields may be added; those that are there keep their meaning."""
    return json_body(
        {
            "version": notice.version,
            "id": notice.id,
            "key": notice.key,
            "incident": notice.group,
            "state": notice.state,
            "severity": notice.severity,
            "job": notice.job,
            "at_ms": notice.at_ms,
            "title": notice.heading,
            "what": notice.what,
            "why": notice.why,
            "done": notice.done,
            "command": notice.look,
            "note": notice.note,
            "text": notice.body(),
        }
    )


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """POSTs each notice; the header `Idempotency-Key` is its id. `token` goes as a bearer token."""

    url: str
    token: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The address may hold a token."""
        return (*((self.token,) if self.token else ()), *parts_of(self.url))

    async def send(self, notice: Notice) -> None:
        """One POST. JSON escapes the texts."""
        headers = {"Idempotency-Key": notice.id}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        await post(self.url, as_json(notice), headers)
