"""What a person sees who writes midwatch.yaml or sets MIDWATCH_* variables."""

from __future__ import annotations

import pickle
import re
import traceback
from pathlib import Path

import pytest

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.mistakes import Mistakes
from midwatch.streams.settings.reader import Assignment, leaves, variable_name
from midwatch.streams.settings.schema import Settings, as_plain
from midwatch.streams.settings.secret import Secret


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Load(tmp_path)


class Load:
    """Writes a file and reads the settings of that directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, text: str = "", *options: Assignment, **variables: str) -> Settings:
        if text:
            (self.directory / "midwatch.yaml").write_text(text)
        environment = {f"MIDWATCH_{name}": value for name, value in variables.items()}
        return load_settings(options=options, environment=environment, here=self.directory)

    def mistakes(self, text: str = "", **variables: str) -> list[str]:
        with pytest.raises(Mistakes) as caught:
            self(text, **variables)
        return [str(m).replace(f"{self.directory}/", "") for m in caught.value.mistakes]


@pytest.mark.capability("S001-73")
def test_without_a_file_every_setting_has_its_default(load: Load) -> None:
    settings = load()
    assert settings.watch.mode == "observe"
    assert settings.detect.limits.by_phase() == {
        "startup": 1800, "compile": 1800, "training": 600, "evaluation": 3600, "checkpoint": 1800,
    }  # fmt: skip
    assert settings.state_directory == load.directory / "home/.local/state/midwatch"
    assert settings.sources == ()


def test_a_variable_wins_over_the_file_and_an_option_over_both(load: Load) -> None:
    text = "cluster: from-file\ndetect:\n  limits: {training: 5m}\n"
    assert load(text).cluster == "from-file"
    assert load(text).detect.limits.training == 300
    settings = load(text, CLUSTER="from-variable", DETECT__LIMITS__TRAINING="1h30m")
    assert (settings.cluster, settings.detect.limits.training) == ("from-variable", 5400)
    option = Assignment(("cluster",), "from-option", "--set cluster")
    assert load(text, option, CLUSTER="from-variable").cluster == "from-option"


def test_every_setting_can_be_given_by_its_variable(load: Load) -> None:
    assert len({variable_name(path) for path, _ in leaves()}) == len(list(leaves())) > 50
    settings = load(
        KAFKA__BOOTSTRAP="a:9092, b:9093",
        TOPICS__PARTITIONS__LOGS="12",
        SHIP__IN_FLIGHT="16MiB",
        RULES__DIRECTORIES="/a,/b",
    )
    assert settings.kafka.bootstrap == ("a:9092", "b:9093")
    assert settings.topics.partitions.logs == 12
    assert settings.ship.in_flight == 16 << 20
    assert settings.rules.directories == (Path("/a"), Path("/b"))
    assert {s.name: s.partitions for s in settings.topic_specifications()}["midwatch.logs"] == 12


def test_an_empty_variable_counts_as_not_set(load: Load) -> None:
    assert load(CLUSTER="").cluster == "local"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "kafka:\n  bootstap: [a:1]\n",
            "midwatch.yaml:2:3: unknown key 'bootstap' in kafka\n  did you mean 'bootstrap'?",
        ),
        ("bootstrap: [a:1]\n", "midwatch.yaml:1:1: unknown key 'bootstrap'\n  did you mean kafka.bootstrap?"),
        (
            "ship: {intervall: 5s}\n",
            "midwatch.yaml:1:8: unknown key 'intervall' in ship\n  did you mean 'interval'?",
        ),
        (
            "ship: {interval: 5}\n",
            "midwatch.yaml:1:18: ship.interval: 5 has no unit\n  write a number with its unit",
        ),
        ("ship: {interval: 5 parsecs}\n", "'parsecs' is no unit of a duration"),
        ("ship: {interval: 5KiB}\n", "'KiB' is no unit of a duration"),
        ("ship: {interval: soon}\n", "'soon' is not a duration"),
        ("ship: {interval: 10h}\n", "out of range\n  write a duration between 200ms and 1h"),
        ("ship: {chunk_size: 256}\n", "256 has no unit\n  write a number with its unit: 256KiB"),
        ("ship: {chunk_size: 5s}\n", "'s' is no unit of a size"),
        ("ship: {chunk_size: 1GiB}\n", "write a size between 4KiB and 512KiB"),
        ("worker: {batch: '12'}\n", "'12' is not a whole number"),
        ("worker: {batch: 1.5}\n", "1.5 is not a whole number"),
        ("worker: {batch: true}\n", "True is not a whole number"),
        ("worker: {batch: 0}\n", "0 is out of range\n  write a whole number between 1 and 10000"),
        ("kafka: {tls: yes}\n", "'yes' is neither true nor false"),
        ("kafka: {mechanism: GSSAPI}\n", "write one of: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ("kafka: {bootstrap: {a: 1}}\n", "is not a list\n  write [kafka.example:9092]"),
        ("kafka: {bootstrap: [a]}\n", "'a' is not host:port"),
        ("kafka: {bootstrap: ['a:99999']}\n", "99999 is not a port"),
        ("redis: {url: 'http://h'}\n", "is not a Redis address"),
        ("redis: {url: 'redis://h:port'}\n", "not a Redis address"),
        ("cluster: [a]\n", "is not text"),
        ("cluster: 12\n", "12 is not text\n  put it in quotes"),
        ("cluster: a/b\n", "is not a name"),
        ("cluster:\n", "the value is missing"),
        ("topics: 5\n", "topics is not a mapping\n  write its keys below it"),
        ("- a\n", "the settings are not a mapping"),
        ("detect: {settle_grace: 3m}\n", "midwatch.yaml:1:24: longer than detect.settle_max"),
        ("worker: {heartbeat_interval: 3s}\n", "too long for worker.session_timeout"),
        ("kafka: {username: u}\n", "midwatch.yaml:1:19: a user without a password"),
        ("kafka: {ca_file: ca.pem}\n", "a file for TLS, but TLS is off\n  set kafka.tls: true"),
        ("kafka: {tls: true, key_file: k}\n", "set kafka.certificate_file"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_place_and_remedy(load: Load, text: str, said: str) -> None:
    mistakes = load.mistakes(text)
    assert len(mistakes) == 1, mistakes
    assert said in mistakes[0]
    assert re.match(r"midwatch\.yaml:\d+:\d+: ", mistakes[0])


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"KAFKA_BOOTSTRAP": "a:1"}, "KAFKA_BOOTSTRAP: no such setting\n  did you mean MIDWATCH_KAFKA__B"),
        ({"KAFKA__BOOTSTRP": "a:1"}, "did you mean MIDWATCH_KAFKA__BOOTSTRAP?"),
        ({"NOWHERE__AT_ALL": "1"}, "two underscores separate the levels"),
        ({"WATCH__MODE": "dance"}, "variable MIDWATCH_WATCH__MODE: watch.mode: 'dance' is not a known value"),
        ({"SHIP__INTERVAL": "600"}, "variable MIDWATCH_SHIP__INTERVAL: ship.interval: 600 has no unit"),
        ({"KAFKA__PASSWORD": "x"}, "a password without a user"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_variable_names_it(load: Load, variables: dict[str, str], said: str) -> None:
    mistakes = load.mistakes(**variables)
    assert len(mistakes) == 1
    assert said in mistakes[0]


def test_variables_of_others_are_left_alone(load: Load) -> None:
    assert load(JOB="local:me/run", CACHE="somewhere", SOMETHING_ELSE="1") == load()


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file(load: Load) -> None:
    mistakes = load.mistakes(
        "ship: {interval: 5}\nkafka: {bootstap: a}\nworker: {batch: x}\ncluster: &a b\n", WATCH__MODE="x"
    )
    assert [m.split(":")[1] for m in mistakes[1:]] == ["1", "2", "3", "4"]
    assert mistakes[0].startswith("variable MIDWATCH_WATCH__MODE")


def test_a_settings_error_is_exit_code_3(load: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load("x: 1\n")
    assert caught.value.exit_code == 3


@pytest.mark.usefixtures("load")  # for its home directory
def test_relative_paths_start_at_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/night.yaml").write_text("rules: {directories: [rules, ~/mine]}\n")
    environment = {"MIDWATCH_STATE_DIRECTORY": "state"}
    settings = load_settings(Path("etc/night.yaml"), environment=environment, here=tmp_path)
    assert settings.rules.directories == (tmp_path / "etc/rules", tmp_path / "home/mine")
    assert settings.state_directory == tmp_path / "state"


def test_the_file_is_looked_for_in_its_order(load: Load, tmp_path: Path) -> None:
    usual = tmp_path / "home/.config/midwatch"
    usual.mkdir(parents=True)
    (usual / "midwatch.yaml").write_text("cluster: usual\n")
    assert load().cluster == "usual"
    assert load("cluster: here\n").cluster == "here"
    (tmp_path / "named.yaml").write_text("cluster: named\n")
    assert load(CONFIG=str(tmp_path / "named.yaml")).cluster == "named"
    asked = tmp_path / "asked.yaml"
    asked.write_text("cluster: asked\n")
    environment = {"MIDWATCH_CONFIG": str(tmp_path / "named.yaml")}
    assert load_settings(asked, environment=environment, here=tmp_path).cluster == "asked"


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        load_settings(tmp_path / "absent.yaml", environment={}, here=tmp_path)


CANARY = "hunter2-canary"


@pytest.mark.parametrize(
    "text",
    [
        f"kafka: {{password: {CANARY}}}\n",
        f"redis: {{password: {CANARY}}}\n",
        f"kafka: {{sasl_password: {CANARY}}}\n",
        f"token: {CANARY}\n",
        f"redis: {{url: 'redis://:{CANARY}@host:6379/0'}}\n",
        f"redis: {{url: 'nonsense://me:{CANARY}@host'}}\n",
        f"redis: {{url: 'me:{CANARY}@host:6379'}}\n",
        f"kafka: {{bootstrap: ['me:{CANARY}@host']}}\n",
    ],
)
def test_a_secret_in_the_file_is_an_error_that_does_not_repeat_it(load: Load, text: str) -> None:
    with pytest.raises(Mistakes) as caught:
        load(text)
    shown = f"{caught.value}{caught.value!r}{''.join(traceback.format_exception(caught.value))}"
    assert CANARY not in shown
    if "host']" not in text and "me:" not in text:
        assert "_file" in shown
        assert "MIDWATCH_" in shown


def test_secrets_come_from_files_and_variables_and_are_never_shown(load: Load, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{CANARY}\n")
    text = "kafka: {username: u, password_file: secret}\nredis: {url: 'redis://h'}\n"
    settings = load(text, REDIS__PASSWORD=f"{CANARY}-2")
    assert settings.kafka.password.reveal() == CANARY
    assert settings.redis.password.reveal() == f"{CANARY}-2"
    assert CANARY not in f"{settings} {settings!r} {as_plain(settings)} {settings.kafka.password:>5}"
    assert as_plain(settings.kafka)["password"] == "***"
    assert as_plain(Settings().kafka)["password"] is None


def test_a_variable_wins_over_the_file_of_a_secret(load: Load) -> None:
    settings = load("kafka: {username: u, password_file: /nowhere}\n", KAFKA__PASSWORD="x")
    assert settings.kafka.password == Secret("x")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"", "one line of text"),
        (b"a\nb\n", "one line"),
        (b"\xff", "one line of text"),
    ],
)
def test_a_file_that_holds_no_secret_is_told(
    load: Load, tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    mistakes = load.mistakes("kafka: {username: u, password_file: secret}\n")
    assert said in mistakes[0]
    assert "\n  " in mistakes[0]


def test_a_secret_does_not_travel_by_pickle() -> None:
    with pytest.raises(TypeError, match="plain text"):
        pickle.dumps(Secret("x"))
