"""The settings of the messages to people: one section for each kind of channel. Pure.

What lets anybody post somewhere is a secret, also an address. It comes from a file or a variable.
"""

# ruff: noqa: RUF009 (`setting` is dataclasses.field with a kind; its defaults are immutable)

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from midwatch.streams.settings import kinds
from midwatch.streams.settings.field import setting
from midwatch.streams.settings.kinds import MailSecurity, MessageSeverity
from midwatch.streams.settings.secret import Secret

_severity: kinds.Kind[MessageSeverity] = kinds.choice("info", "warning", "critical")
_LEAST = "the least severe messages that go there"


def _secret(section: str, name: str) -> kinds.Kind[Secret]:
    variable = f"MIDWATCH_MESSAGES__{section}__{name}".upper()
    return kinds.secret(f"messages.{section}.{name}_file", variable)


def _file(what: str) -> Path | None:
    return setting(kinds.optional(kinds.path()), None, f"file with {what}")


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """An incoming webhook of Slack."""

    url_file: Path | None = _file("the address of the incoming webhook")
    url: Secret = setting(_secret("slack", "url"), Secret(), "the address of the incoming webhook")
    severity: MessageSeverity = setting(_severity, "info", _LEAST)


@dataclass(frozen=True, slots=True)
class SlackBotSettings:
    """A bot of Slack that writes to people."""

    token_file: Path | None = _file("the bot's token (xoxb-...)")
    token: Secret = setting(_secret("slack_bot", "token"), Secret(), "the bot's token")
    to: tuple[str, ...] = setting(
        kinds.several(kinds.text()), (), "people or channels: Slack's ids, or the people's mail addresses"
    )
    api: str = setting(kinds.text(), "https://slack.com/api", "Slack's API; another one for GovSlack")
    severity: MessageSeverity = setting(_severity, "info", _LEAST)


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """A service that takes JSON by POST."""

    url_file: Path | None = _file("the address")
    url: Secret = setting(_secret("webhook", "url"), Secret(), "the address")
    token_file: Path | None = _file("a bearer token for it")
    token: Secret = setting(_secret("webhook", "token"), Secret(), "a bearer token for it")
    severity: MessageSeverity = setting(_severity, "info", _LEAST)


@dataclass(frozen=True, slots=True)
class EmailSettings:
    """E-mail."""

    server: str = setting(kinds.address(), "", "the mail server, for example mail.example:587")
    security: MailSecurity = setting(
        kinds.choice("starttls", "tls", "none"), "starttls", "how the talk with the server is encrypted"
    )
    username: str = setting(kinds.text(), "", "user of the mail server; empty for none")
    password_file: Path | None = _file("the password")
    password: Secret = setting(_secret("email", "password"), Secret(), "the password")
    sender: str = setting(kinds.text(), "", "the sender's address")
    to: tuple[str, ...] = setting(kinds.several(kinds.text()), (), "the receivers' addresses")
    severity: MessageSeverity = setting(_severity, "info", _LEAST)


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """A command that gets each message as JSON on its standard input."""

    argv: tuple[str, ...] = setting(
        kinds.several(kinds.text()), (), "the command and its arguments; no shell runs"
    )
    severity: MessageSeverity = setting(_severity, "info", _LEAST)


@dataclass(frozen=True, slots=True)
class AppriseSettings:
    """All other services, by Apprise (`pip install 'midwatch[notify]'`)."""

    urls_file: Path | None = _file("Apprise's addresses, one a line")
    urls: Secret = setting(_secret("apprise", "urls"), Secret(), "Apprise's addresses, one a line")
    severity: MessageSeverity = setting(_severity, "info", _LEAST)


@dataclass(frozen=True, slots=True)
class MessagesSettings:
    """When people hear of something, and on which channels."""

    cooldown: float = setting(
        kinds.duration(1, 7 * 86400), 3600.0, "the same alarm is told again after this time at the earliest"
    )
    wait: float = setting(
        kinds.duration(0, 600), 10.0, "a finding waits this long for an incident that it belongs to"
    )
    timeout: float = setting(kinds.duration(0.1, 120), 10.0, "a channel must answer within this time")
    elsewhere: float = setting(
        kinds.duration(0, 86400), 120.0, "a channel that fails for so long is told of on another one"
    )
    give_up: float = setting(
        kinds.duration(1, 30 * 86400), 86400.0, "a message that no channel takes is dropped, and logged, then"
    )
    slack: SlackSettings = field(default_factory=SlackSettings)
    slack_bot: SlackBotSettings = field(default_factory=SlackBotSettings)
    webhook: WebhookSettings = field(default_factory=WebhookSettings)
    email: EmailSettings = field(default_factory=EmailSettings)
    command: CommandSettings = field(default_factory=CommandSettings)
    apprise: AppriseSettings = field(default_factory=AppriseSettings)

    @property
    def configured(self) -> bool:
        """Whether the settings name a channel of ours. Secrets need not be read for it."""
        return bool(
            self.slack.url
            or self.slack.url_file
            or self.slack_bot.to
            or self.webhook.url
            or self.webhook.url_file
            or self.email.to
            or self.command.argv
            or self.apprise.urls
            or self.apprise.urls_file
        )
