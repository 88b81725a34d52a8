"""Each channel against a local sink that takes, refuses, hangs, or asks for patience."""

from __future__ import annotations

import asyncio
import email
import email.policy
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from midwatch.agents.messages.channels.apprise_urls import AppriseChannel
from midwatch.agents.messages.channels.base import Channel, ChannelRefused
from midwatch.agents.messages.channels.command import CommandChannel
from midwatch.agents.messages.channels.mail import MailChannel, MailServer
from midwatch.agents.messages.channels.slack import SlackBot, SlackWebhook
from midwatch.agents.messages.channels.webhook import WebhookChannel
from midwatch.agents.messages.delivery.lanes import Lanes
from midwatch.agents.messages.notice import Notice
from midwatch.streams.errors import ConfigurationError
from processes import alive
from sinks import FAILS, GONE, HANGS, Answer, MailSink, busy, http_sink, mail_sink


async def _refusal(channel: Channel, notice: Notice) -> ChannelRefused:
    with pytest.raises(ChannelRefused) as caught:
        await channel.send(notice)
    return caught.value


def _mail(sink: MailSink, *, answer_s: float = 10.0, to: tuple[str, ...] = ("ada@x.example",)) -> MailChannel:
    host, _, port = sink.address.rpartition(":")
    return MailChannel(MailServer(host, int(port), "none", answer_s=answer_s), "midwatch@x.example", to)


async def test_a_webhook_gets_json_with_the_key_and_the_id(notice: Notice) -> None:
    with http_sink() as sink:
        await WebhookChannel(sink.url, "a-token").send(notice)
    (request,) = sink.requests
    assert request.headers["idempotency-key"] == notice.id == request.json["id"]
    assert request.headers["authorization"] == "Bearer a-token"
    assert (request.json["key"], request.json["severity"]) == (notice.key, "critical")
    assert request.json["command"] == "midwatch why local:ada/llm"
    assert request.json["why"] == notice.why, "JSON needs no other escaping"


async def test_slack_gets_the_text_without_mentions(notice: Notice) -> None:
    with http_sink() as sink:
        await SlackWebhook(sink.url).send(notice)
    text = sink.requests[0].json["text"]
    assert text.splitlines()[0] == ":red_circle: *[midwatch] CRITICAL: local:ada/llm failed: cuda_oom*"
    assert "*Why*: ```torch.OutOfMemoryError: CUDA &lt;!channel&gt; \u02cbrm -rf\u02cb &amp; more```" in text


@pytest.mark.capability("S000-21")
async def test_a_bot_of_slack_writes_to_a_person_by_the_mail_address(notice: Notice) -> None:
    found = Answer(body=b'{"ok": true, "user": {"id": "U0ADA"}}')
    with http_sink(found) as sink:
        bot = SlackBot("xoxb-secret", ("ada@x.example",), sink.url)
        await bot.send(notice)
        await bot.send(notice)
        await bot.send(replace(notice, number=2))
    paths = [request.path for request in sink.requests]
    assert paths == ["/users.lookupByEmail", "/chat.postMessage", "/chat.postMessage"]
    assert sink.requests[0].body == b"email=ada%40x.example"
    posted = sink.requests[1]
    assert posted.headers["authorization"] == "Bearer xoxb-secret"
    assert posted.json["channel"] == "U0ADA"
    assert posted.json["metadata"]["event_payload"]["key"] == notice.key


async def test_a_bot_that_slack_refuses_says_why(notice: Notice) -> None:
    with http_sink(Answer(body=b'{"ok": false, "error": "channel_not_found"}')) as sink:
        refused = await _refusal(SlackBot("t", ("U1",), sink.url), notice)
    assert (str(refused), refused.lasting) == ("chat.postMessage: channel_not_found", True)


@pytest.mark.parametrize(
    ("answer", "lasting", "pause_s"),
    [(FAILS, False, None), (GONE, True, None), (busy(7), False, 7.0), (Answer(302), True, None)],
)
async def test_an_http_answer_says_whether_to_try_again(
    answer: Answer, lasting: bool, pause_s: float | None, notice: Notice
) -> None:
    with http_sink(answer) as sink:
        refused = await _refusal(SlackWebhook(sink.url), notice)
    assert (refused.lasting, refused.pause_s) == (lasting, pause_s)
    assert f"HTTP {answer.status}" in str(refused)


async def test_a_bot_of_slack_that_is_too_fast_is_told_how_long_to_wait(notice: Notice) -> None:
    with http_sink(busy(7)) as sink:
        refused = await _refusal(SlackBot("t", ("U1",), sink.url), notice)
    assert (refused.lasting, refused.pause_s) == (False, 7.0)


async def test_no_log_and_no_other_channel_sees_what_an_address_holds_behind_its_path(notice: Notice) -> None:
    with http_sink(usual=Answer(404, body=b"no /hook?key=s3cret, nor key=s3cret")) as sink:
        channel = WebhookChannel(f"{sink.url}/hook?key=s3cret")
        refused = await Lanes({"webhook": channel}).attempt("webhook", notice)
    assert refused is not None
    assert refused.reason == "HTTP 404 no ***, nor ***"


async def test_a_mail_has_a_thread_and_an_id_that_a_repeat_keeps(notice: Notice) -> None:
    with mail_sink() as sink:
        await _mail(sink).send(notice)
        await _mail(sink).send(notice)
        await _mail(sink).send(replace(notice, state="resolved", number=2))
    first, again, over = (email.message_from_bytes(raw, policy=email.policy.default) for raw in sink.mails)
    assert first["Subject"] == "[midwatch] CRITICAL: local:ada/llm failed: cuda_oom"
    assert first["Message-ID"] == again["Message-ID"] != over["Message-ID"]
    assert first["References"] == over["References"]
    assert over["Subject"].startswith("[midwatch] RESOLVED")
    assert "Look further: midwatch why local:ada/llm" in first.get_content()


@pytest.mark.parametrize(("code", "lasting"), [("550 nobody here", True), ("451 later", False)])
async def test_a_mail_server_that_refuses_is_a_failure(code: str, lasting: bool, notice: Notice) -> None:
    with mail_sink(code) as sink:
        refused = await _refusal(_mail(sink), notice)
    assert refused.lasting == lasting
    assert sink.mails == []


async def test_a_mail_server_that_hangs_does_not_hold_up_the_loop(notice: Notice) -> None:
    with mail_sink(hangs=True) as sink:
        lanes = Lanes({"email": _mail(sink)}, answer_s=0.2)
        refused = await lanes.attempt("email", notice)
        assert refused is not None
        assert refused.reason == "no answer within 0.2 s"


async def test_a_command_gets_json_and_no_word_of_the_log_as_argument(notice: Notice, tmp_path: Path) -> None:
    script = (
        "import json, os, sys; json.dump([sys.argv, json.load(sys.stdin), dict(os.environ)], open('{}', 'w'))"
    )
    kept = tmp_path / "kept.json"
    await CommandChannel((sys.executable, "-c", script.format(kept), "page")).send(notice)
    argv, told, environment = json.loads(kept.read_text())
    assert (argv, told["id"], told["command"]) == (["-c", "page"], notice.id, notice.look)
    assert [name for name in environment if name.startswith("MIDWATCH_")] == []


async def test_a_command_that_fails_or_is_missing_says_so(notice: Notice) -> None:
    failed = await _refusal(CommandChannel(("sh", "-c", "echo no pager; exit 3")), notice)
    assert (str(failed), failed.lasting) == ("sh ended with status 3: no pager\n", False)
    missing = await _refusal(CommandChannel(("/no/such/command",)), notice)
    assert missing.lasting


async def test_a_command_that_hangs_is_killed_with_all_that_it_started(
    notice: Notice, tmp_path: Path
) -> None:
    kept = tmp_path / "pid"
    command = CommandChannel(("sh", "-c", f"sleep 60 & echo $! > {kept}; wait"))
    refused = await Lanes({"command": command}, answer_s=0.5).attempt("command", notice)
    assert refused is not None
    pid, deadline = int(kept.read_text()), time.monotonic() + 10
    while alive(pid):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)  # between two looks at the process


async def test_apprise_tells_its_services_without_mentions(notice: Notice) -> None:
    with http_sink() as sink:
        channel = AppriseChannel((sink.url.replace("http:", "json:"),))
        await channel.send(notice)
    told = sink.requests[0].json
    assert told["title"] == "[midwatch] CRITICAL: local:ada/llm failed: cuda_oom"
    assert "\u2039!channel\u203a" in told["message"]


async def test_apprise_whose_service_hangs_does_not_hold_up_the_loop(notice: Notice) -> None:
    with http_sink(usual=HANGS) as sink:
        lanes = Lanes({"apprise": AppriseChannel((sink.url.replace("http:", "json:"),))}, answer_s=0.2)
        refused = await lanes.attempt("apprise", notice)
    assert refused is not None
    assert refused.reason == "no answer within 0.2 s"


async def test_without_its_package_apprise_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'midwatch\[notify\]'"):
        AppriseChannel(("json://localhost",))


async def test_apprise_that_is_refused_says_so_and_an_unknown_address_is_a_mistake(notice: Notice) -> None:
    with http_sink(usual=FAILS) as sink:
        await _refusal(AppriseChannel((sink.url.replace("http:", "json:"),)), notice)
    with pytest.raises(ConfigurationError, match="does not know address 2"):
        AppriseChannel(("json://localhost", "nosuch://secret-token"))
