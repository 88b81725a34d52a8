"""Whatever a job prints, it mentions nobody, begins no line and no mail header, and ends no block."""

from __future__ import annotations

import email
import email.policy
import html
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.messages.channels.escaping import header, plain, slack
from midwatch.agents.messages.channels.mail import mail_of
from midwatch.agents.messages.channels.slack import text_of
from midwatch.agents.messages.channels.webhook import as_json
from midwatch.agents.messages.notice import Notice

NASTY = (
    "<!channel>",
    "<!here|x>",
    "<@U123>",
    "<https://evil.example|log in>",
    "```",
    "&lt;!channel&gt;",
    "@everyone",
    "x\r\nBcc: eve@evil.example\r\n\r\nbody",
    "\u202egnp.exe",
    "\x1b[2J",
    "a\0b",
    "*bold*",
    "\u2028line",
    "\ud800",
)
texts = st.one_of(st.text(), st.sampled_from(NASTY), st.lists(st.sampled_from(NASTY)).map("".join))


def _with(notice: Notice, text: str) -> Notice:
    return replace(notice, title=text, what=text, why=text, done=text, look=text, note=text)


@settings(max_examples=cases(60))
@given(texts)
def test_slack_finds_no_mention_and_no_link_and_shows_the_text(text: str) -> None:
    assert not set("<>") & set(slack(text))
    assert "`" not in slack(text)
    assert html.unescape(slack(text)) == text.replace("`", "\u02cb")


@settings(max_examples=cases(60))
@given(text=texts)
@pytest.mark.parametrize("field", ["title", "what", "why", "done", "look", "note"])
def test_no_field_of_a_notice_brings_markup_into_slack(field: str, text: str) -> None:
    made = text_of(replace(NOTICE, **{field: text}))  # type: ignore[arg-type]  # fields of text
    assert not set("<>") & set(made)
    assert made.count("```") % 2 == 0
    assert len(made.splitlines()) <= 7


@settings(max_examples=cases(60))
@given(texts)
def test_a_mail_has_our_headers_and_no_others(text: str) -> None:
    raw = mail_of(_with(NOTICE, text), "midwatch@night.example", ("ada@night.example",)).as_bytes(
        policy=email.policy.SMTP
    )
    mail = email.message_from_bytes(raw, policy=email.policy.default)
    assert sorted(mail.keys()) == sorted(
        ["From", "To", "Subject", "Date", "Message-ID", "References", "In-Reply-To", "X-Midwatch-Key",
         "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding", "MIME-Version"]
    )  # fmt: skip
    assert mail["To"] == "ada@night.example"
    assert mail.get_content_type() == "text/plain"


@settings(max_examples=cases(60))
@given(texts)
def test_a_header_is_one_printable_line(text: str) -> None:
    assert header(text).isprintable()
    assert len(header(text)) <= 200


@settings(max_examples=cases(60))
@given(texts)
def test_a_plain_text_has_no_tag_no_code_and_no_mention(text: str) -> None:
    made = plain(text)
    assert not set("<>`") & set(made)
    assert all(not made[i + 1 : i + 2].isalnum() for i, c in enumerate(made) if c == "@")


@settings(max_examples=cases(60))
@given(texts)
def test_every_line_of_a_notice_is_one_printable_line(text: str) -> None:
    made = _with(NOTICE, text)
    assert made.heading.isprintable()
    assert all(line.isprintable() for _, line in made.lines())
    assert json.loads(json.dumps(as_json(made)))["id"] == made.id


NOTICE = Notice("k", 1, "g", "opened", "critical", "local:ada/llm", "title", 1_700_000_000_000)
