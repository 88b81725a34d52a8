"""E-mail over SMTP."""

from __future__ import annotations

import smtplib
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate
from hashlib import sha256
from typing import Literal

from midwatch.agents.messages.channels.base import ChannelRefused
from midwatch.agents.messages.channels.escaping import header
from midwatch.agents.messages.channels.in_thread import in_thread
from midwatch.agents.messages.notice import Notice

MailSecurity = Literal["starttls", "tls", "none"]


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where and how mail is handed over. `answer_s` bounds each step of the talk."""

    host: str
    port: int
    security: MailSecurity = "starttls"
    username: str = ""
    password: str = ""
    answer_s: float = 10.0


def mail_of(notice: Notice, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """The mail. All notices of an incident are one thread; a repeat has the same Message-ID."""
    mail = EmailMessage()
    mail["From"] = header(sender)
    mail["To"] = ", ".join(header(each) for each in to)
    mail["Subject"] = header(notice.heading)
    mail["Date"] = formatdate(notice.at_ms / 1000)
    mail["Message-ID"] = f"<{notice.id}@midwatch.invalid>"
    thread = f"<{sha256(notice.group.encode()).hexdigest()[:32]}@midwatch.invalid>"
    mail["References"] = thread
    mail["In-Reply-To"] = thread
    mail["X-Midwatch-Key"] = sha256(notice.key.encode()).hexdigest()[:32]
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{notice.heading}\n\n{notice.body()}\n")
    return mail


@dataclass(frozen=True, slots=True)
class MailChannel:
    """One mail to all receivers. One that the server refuses is a failure, though the others have it."""

    server: MailServer
    sender: str
    to: tuple[str, ...]

    @property
    def secrets(self) -> tuple[str, ...]:
        """The password."""
        return (self.server.password,) if self.server.password else ()

    async def send(self, notice: Notice) -> None:
        """Hand the mail over, in a thread."""
        mail = mail_of(notice, self.sender, self.to)
        await in_thread(lambda: self._hand_over(mail))

    def _connected(self, context: ssl.SSLContext) -> smtplib.SMTP:
        server = self.server
        if server.security == "tls":
            return smtplib.SMTP_SSL(server.host, server.port, timeout=server.answer_s, context=context)
        return smtplib.SMTP(server.host, server.port, timeout=server.answer_s)

    def _hand_over(self, mail: EmailMessage) -> None:
        server = self.server
        context = ssl.create_default_context()
        try:
            with self._connected(context) as talk:
                if server.security == "starttls":
                    talk.starttls(context=context)
                if server.username:
                    talk.login(server.username, server.password)
                refused = talk.send_message(mail, self.sender, list(self.to))
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(next(iter(error.recipients.values()))[0], f"all receivers: {error}") from error
        except smtplib.SMTPResponseException as error:
            raise _refusal(error.smtp_code, f"{error.smtp_code} {error.smtp_error!r}") from error
        if refused:
            raise ChannelRefused(f"the server refused {', '.join(refused)}", lasting=True)


def _refusal(code: int, reason: str) -> ChannelRefused:
    return ChannelRefused(f"the mail server refused: {reason}", lasting=500 <= code < 600)
