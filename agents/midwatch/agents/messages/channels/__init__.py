"""Channels: each kind of way to people is one file, listed in `CHANNELS`.

Foreign channels come by the entry points `midwatch.channels`, and only those that the settings name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from midwatch.agents.messages.channels.apprise_urls import AppriseChannel
from midwatch.agents.messages.channels.base import Channel
from midwatch.agents.messages.channels.command import CommandChannel
from midwatch.agents.messages.channels.mail import MailChannel, MailServer
from midwatch.agents.messages.channels.slack import SlackBot, SlackWebhook
from midwatch.agents.messages.channels.webhook import WebhookChannel
from midwatch.streams.settings.messages import MessagesSettings

Make = Callable[[MessagesSettings], Channel | None]
"""Makes the channel from the settings; None where they do not name it."""


def _slack(settings: MessagesSettings) -> Channel | None:
    return SlackWebhook(settings.slack.url.reveal()) if settings.slack.url else None


def _slack_bot(settings: MessagesSettings) -> Channel | None:
    bot = settings.slack_bot
    return SlackBot(bot.token.reveal(), bot.to, bot.api) if bot.token and bot.to else None


def _webhook(settings: MessagesSettings) -> Channel | None:
    hook = settings.webhook
    return WebhookChannel(hook.url.reveal(), hook.token.reveal()) if hook.url else None


def _email(settings: MessagesSettings) -> Channel | None:
    mail = settings.email
    if not (mail.server and mail.to):
        return None
    host, _, port = mail.server.rpartition(":")
    server = MailServer(
        host.strip("[]"), int(port), mail.security, mail.username, mail.password.reveal(), settings.timeout
    )
    return MailChannel(server, mail.sender, mail.to)


def _command(settings: MessagesSettings) -> Channel | None:
    return CommandChannel(settings.command.argv) if settings.command.argv else None


def _apprise(settings: MessagesSettings) -> Channel | None:
    urls = tuple(line.strip() for line in settings.apprise.urls.reveal().splitlines() if line.strip())
    return AppriseChannel(urls) if urls else None


CHANNELS: Mapping[str, Make] = {
    "slack": _slack,
    "slack_bot": _slack_bot,
    "webhook": _webhook,
    "email": _email,
    "command": _command,
    "apprise": _apprise,
}
