"""What docs/messages.md shows: its settings are read, its commands run, its message is what a person gets."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foreign_package import forget, lay_out
from house.tree import ROOT
from midwatch.agents.cli import run
from midwatch.agents.local.up.processes import processes
from midwatch.agents.messages.channels.webhook import as_json
from midwatch.agents.messages.configured import channels_of, routes_of
from midwatch.agents.messages.retry import FIRST_PAUSE_S, LONGEST_ASKED_S, LONGEST_PAUSE_S
from midwatch.rules.detectors.loss_spike import LossSpikeDetector, LossWindow
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.messages import MessagesSettings
from midwatch.streams.settings.mistakes import Mistakes
from midwatch.streams.settings.schema import Settings, as_plain
from sinks import GONE, http_sink
from unit.agents.messages.records import Partition, decision, finding, incident

PAGE = (ROOT / "docs" / "messages.md").read_text()
SECRETS = {
    "slack-webhook": "https://hooks.slack.example/services/T0/secret-1",
    "slack-token": "xoxb-secret-2",
    "webhook": "https://hook.example/secret-3",
    "webhook-token": "secret-4",
    "mail": "secret-5",
    "apprise": "json://localhost/secret-6\njson://localhost/secret-7",
}


def _block(kind: str) -> str:
    (found,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE, re.M | re.S)
    return str(found)


def _settings(directory: Path) -> Settings:
    (directory / "midwatch.yaml").write_text(_block("yaml"))
    (directory / "secrets").mkdir()
    for name, text in SECRETS.items():
        (directory / "secrets" / name).write_text(f"{text}\n")
    return load_settings(None, environment={}, here=directory)


def test_its_settings_name_every_channel(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    channels = channels_of(settings)
    table = re.findall(r"^\| `(\w+)` \| (?:the|a|an|addresses)", PAGE, re.M)[:6]
    assert list(channels) == table
    least = {route.channel: route.least for route in routes_of(settings, tuple(channels))}
    assert (least["slack"], least["email"], least["webhook"]) == ("warning", "critical", "info")


def test_no_secret_is_shown_and_only_the_messages_read_their_files(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    assert not settings.messages.slack.url
    named = {
        "MIDWATCH_MESSAGES__SLACK__URL": SECRETS["slack-webhook"],
        "MIDWATCH_MESSAGES__APPRISE__URLS": SECRETS["apprise"],
        "MIDWATCH_MESSAGES__EMAIL__PASSWORD": SECRETS["mail"],
    }
    settings = load_settings(None, environment=named, here=tmp_path)
    shown = json.dumps(as_plain(settings)) + repr(settings)
    assert "secret-" not in shown
    assert as_plain(settings.messages.slack)["url"] == "***"


def test_a_secret_file_that_is_missing_is_named_with_its_remedy(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    (tmp_path / "secrets" / "slack-webhook").unlink()
    with pytest.raises(Mistakes, match="MIDWATCH_MESSAGES__SLACK__URL"):
        channels_of(settings)


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ("slack_bot: {to: [ada@x.example]}", "token_file"),
        ("email: {to: [ada@x.example], sender: m@x.example}", "server"),
        ("email: {server: 'mail.example:25', to: [ada@x.example]}", "sender"),
        ("slack: {url: 'https://hooks.slack.example/T0'}", "a secret does not belong in a settings file"),
    ],
)
def test_what_a_channel_lacks_is_a_mistake_of_the_settings(line: str, lacking: str, tmp_path: Path) -> None:
    (tmp_path / "midwatch.yaml").write_text(f"messages:\n  {line}\n")
    with pytest.raises(Mistakes, match=lacking):
        load_settings(None, environment={}, here=tmp_path)


def test_its_message_is_what_a_person_gets() -> None:
    partition = Partition()
    quantities = {"step": "4410", "loss": "5.2", "usual": "1.9"}
    partition.take(finding(attempt=2, quantities=quantities), 1)
    said = {"error_type": "oom", "root_line": "torch.OutOfMemoryError: CUDA out of memory."}
    partition.take(incident(2, **said, remedy="use a smaller batch"), 2)
    why = "oom is permanent: the same start would fail again"
    (notice,) = partition.take(decision(2, "stop", command="", reason=why), 2)
    assert f"{notice.heading}\n{notice.body()}\n" == _block("text")


def test_the_fields_of_its_table_are_those_of_the_json() -> None:
    partition = Partition()
    partition.take(incident(), 1)
    (notice,) = partition.take(decision(), 1)
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", PAGE[PAGE.index("| field | holds |") :], re.M)
    fields = set(re.findall(r"`(\w+)`", " ".join(rows)))
    assert fields == {*as_json(notice.with_note("another one failed"))}


def test_its_times_are_the_defaults() -> None:
    given = MessagesSettings()
    assert (given.wait, given.cooldown, given.timeout, given.elsewhere, given.give_up) == (
        10.0, 3600.0, 10.0, 120.0, 86_400.0,
    )  # fmt: skip
    assert (FIRST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_ASKED_S) == (1.0, 300.0, 3600.0)


def test_its_moving_average_is_what_the_detector_takes() -> None:
    """Nine losses, of which four are far above the others: a mean would follow them, a median does not."""
    detector = LossSpikeDetector()
    assert f"the median of the last {detector.window} healthy losses" in PAGE
    _, spike = detector.weigh(LossWindow((1.0,) * 5 + (1.9,) * 4), 10, 2.1)
    assert spike is not None
    assert spike.usual == 1.0


def test_its_commands_send_a_test_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with http_sink() as sink:
        monkeypatch.setenv("MIDWATCH_MESSAGES__SLACK__URL", f"{sink.url}/secret")
        for line in _block("sh").splitlines():
            assert run(shlex.split(line)[1:]) == 0
        assert capsys.readouterr().out == "slack: took it\n" * 2
        assert "a test message of the cluster local" in sink.requests[0].json["text"]
        sink.usual = GONE
        assert run(["messages", "test", "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert told == {"version": 1, "channels": {"slack": "HTTP 404 no_team"}}


def test_without_a_channel_the_command_says_where_to_look(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["messages", "test"]) == 2
    assert "docs/messages.md" in capsys.readouterr().err


def test_up_runs_the_messages_where_a_channel_is_named(tmp_path: Path) -> None:
    named = {"MIDWATCH_STATE_DIRECTORY": str(tmp_path)}
    without = processes(load_settings(None, environment=named, here=tmp_path), [], 0)
    assert "messages" not in [each.name for each in without]
    named["MIDWATCH_MESSAGES__COMMAND__ARGV"] = "logger"
    made = {
        each.name: each for each in processes(load_settings(None, environment=named, here=tmp_path), [], 0)
    }
    assert list(made) == ["match", "detect", "decide", "messages", "executor"]
    assert made["messages"].command[-3:-1] == ["worker", "messages"]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, str]], None]]:
    """Lays the package of docs/extending.md out for this process, with changes."""

    def lay(changes: dict[str, str]) -> None:
        monkeypatch.syspath_prepend(lay_out(tmp_path / "parts", changes))

    forget()
    yield lay
    forget()


def test_a_channel_of_a_package_gets_messages(
    parts: Callable[[dict[str, str]], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    parts({})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HORN_FILE", str(tmp_path / "horn"))
    assert run(["messages", "test", "--set=extensions.channels=horn"]) == 0
    assert capsys.readouterr().out == "horn: took it\n"
    assert "a test message of the cluster local" in (tmp_path / "horn").read_text()
    monkeypatch.delenv("HORN_FILE")
    assert run(["messages", "test", "--set=extensions.channels=horn"]) == 4
    assert "horn: no horn:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"async def send": "async def blow"}, "lacks `secrets` or `send`"),
        ({"horn =": "slack ="}, "midwatch itself uses"),
        ({"    secrets = ()\n": "    def __init__(self): raise ValueError('no')\n"}, "cannot be made"),
    ],
    ids=["shape", "shipped", "broken"],
)
def test_a_channel_that_cannot_be_used_is_a_mistake_of_the_settings(
    parts: Callable[[dict[str, str]], None], changes: dict[str, str], word: str, tmp_path: Path
) -> None:
    parts(changes)
    name = "slack" if "horn =" in changes else "horn"
    variables = {"MIDWATCH_EXTENSIONS__CHANNELS": name}
    with pytest.raises(ConfigurationError, match=word):
        channels_of(load_settings(None, environment=variables, here=tmp_path))
