"""All settings as one frozen value. Pure: `settings.reader` and `settings.file` make it.

Durations are seconds, and sizes are bytes. Each field carries its kind and its description for the reference
page, so a new setting is one line here and nothing elsewhere. Secrets print as `***`.
"""

# ruff: noqa: RUF009 (`setting` is dataclasses.field with a kind; its defaults are immutable)

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

from midwatch.streams.records import Phase
from midwatch.streams.settings import kinds
from midwatch.streams.settings.field import setting
from midwatch.streams.settings.kinds import (
    ForeignShipper,
    LogLevel,
    RetryCounting,
    SaslMechanism,
    TooSlow,
    WatchMode,
)
from midwatch.streams.settings.messages import MessagesSettings
from midwatch.streams.settings.secret import Secret
from midwatch.streams.topics import Topics, TopicSpec

HOME_STATE = Path("~/.local/state/midwatch")


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """Where Kafka is. Without `bootstrap`, commands use the Kafka of `midwatch up` on this machine."""

    bootstrap: tuple[str, ...] = setting(kinds.several(kinds.address()), (), "brokers to connect to first")
    username: str = setting(kinds.text(), "", "SASL user; empty for none")
    password_file: Path | None = setting(kinds.optional(kinds.path()), None, "file with the SASL password")
    password: Secret = setting(
        kinds.secret("kafka.password_file", "MIDWATCH_KAFKA__PASSWORD"), Secret(), "the SASL password"
    )
    mechanism: SaslMechanism = setting(
        kinds.choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), "PLAIN", "the SASL mechanism"
    )
    tls: bool = setting(kinds.flag(), False, "encrypt, and check the broker's certificate")
    ca_file: Path | None = setting(
        kinds.optional(kinds.path()), None, "certificate authorities to trust instead of the system's"
    )
    certificate_file: Path | None = setting(
        kinds.optional(kinds.path()), None, "midwatch's client certificate"
    )
    key_file: Path | None = setting(kinds.optional(kinds.path()), None, "the key of the client certificate")

    @property
    def security_protocol(self) -> str:
        """The protocol under the name that Kafka's clients use."""
        return ("SASL_" if self.username else "") + ("SSL" if self.tls else "PLAINTEXT")


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Where Redis is. Without `url`, commands use the Redis of `midwatch up` on this machine."""

    url: str = setting(kinds.redis_url(), "", "redis://, rediss:// for TLS, or unix://")
    password_file: Path | None = setting(kinds.optional(kinds.path()), None, "file with the password")
    password: Secret = setting(
        kinds.secret("redis.password_file", "MIDWATCH_REDIS__PASSWORD"), Secret(), "the password"
    )
    ca_file: Path | None = setting(
        kinds.optional(kinds.path()), None, "certificate authorities to trust instead of the system's"
    )


_partitions = kinds.integer(1, 10_000)


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """Partitions by topic. Fixed once a topic is made, because a job's key decides its partition for ever."""

    logs: int = setting(_partitions, 8, "the most match workers that can share the work")
    events: int = setting(_partitions, 8, "the most detect workers that can share the work")
    incidents: int = setting(_partitions, 8, "the most decide workers that can share the work")
    decisions: int = setting(_partitions, 4, "every decision, also those to do nothing")
    commands: int = setting(_partitions, 4, "commands to the executor")
    specs: int = setting(_partitions, 4, "how to start each job again")
    dead: int = setting(_partitions, 1, "dead letters: the records that workers refused")


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The names of the topics, and how midwatch makes them."""

    prefix: str = setting(
        kinds.name(),
        "midwatch",
        "the start of every topic's name; two prefixes let two installations share a Kafka",
    )
    partitions: PartitionSettings = field(default_factory=PartitionSettings)
    replication: int = setting(kinds.integer(1, 9), 1, "copies of each partition, when a topic is made")


@dataclass(frozen=True, slots=True)
class ShipSettings:
    """How the shipper reads files and sends lines."""

    interval: float = setting(kinds.duration(0.2, 3600), 5.0, "between two heartbeats; longer on many nodes")
    poll: float = setting(kinds.duration(0.01, 60), 0.2, "between two reads of the files")
    chunk_size: int = setting(
        kinds.size(4096, 512 * 1024), 256 * 1024, "the shipper sends a chunk of this size"
    )
    chunk_age: float = setting(kinds.duration(0.01, 60), 0.2, "the shipper sends a chunk of this age")
    in_flight: int = setting(
        kinds.size(1 << 20, 1 << 30), 8 << 20, "unacknowledged bytes at which the shipper pauses reading"
    )


_silence = kinds.duration(1, 7 * 86400)


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """How long a job may be silent in each phase before it is stalled."""

    startup: float = setting(_silence, 1800.0, "from the start to the first step")
    compile: float = setting(_silence, 1800.0, "while it compiles")
    training: float = setting(_silence, 600.0, "between two steps")
    evaluation: float = setting(_silence, 3600.0, "while it evaluates")
    checkpoint: float = setting(_silence, 1800.0, "while it writes a checkpoint")

    def by_phase(self) -> dict[Phase, float]:
        """The limits keyed by phase."""
        return {
            "startup": self.startup,
            "compile": self.compile,
            "training": self.training,
            "evaluation": self.evaluation,
            "checkpoint": self.checkpoint,
        }


@dataclass(frozen=True, slots=True)
class DetectSettings:
    """When a job counts as stalled, and when an incident is complete."""

    limits: SilenceLimits = field(default_factory=SilenceLimits)
    settle_grace: float = setting(
        kinds.duration(0, 600), 5.0, "a heartbeat this long after the end vouches for its node"
    )
    settle_max: float = setting(
        kinds.duration(1, 3600), 120.0, "an incident settles by then, complete or not"
    )


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """Whether midwatch may act at all."""

    mode: WatchMode = setting(
        kinds.choice("observe", "act"),
        "observe",
        "observe only reports what it would do; act does it for armed jobs",
    )


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """What the executor may touch, and how fast. An empty `users` allows only the user it runs as."""

    users: tuple[str, ...] = setting(kinds.several(kinds.name()), (), "users whose jobs it may start and end")
    partitions: tuple[str, ...] = setting(
        kinds.several(kinds.name()), (), "SLURM partitions that it may use; empty for all"
    )
    commands_per_hour: int = setting(
        kinds.integer(0, 100_000), 60, "commands accepted in an hour, over all jobs"
    )
    storm_jobs: int = setting(
        kinds.integer(2, 100_000), 10, "this many jobs that fail together trip the storm breaker"
    )
    storm_window: float = setting(
        kinds.duration(1, 86400), 300.0, "failures within this time count as together"
    )
    poll: float = setting(kinds.duration(0.1, 600), 10.0, "between two sweeps of the scheduler")


@dataclass(frozen=True, slots=True)
class RulesSettings:
    """The rules and policies of the first bundle. Later bundles come from `midwatch rules push`."""

    presets: tuple[str, ...] = setting(
        kinds.several(kinds.name()), ("default",), "presets that midwatch ships, by name"
    )
    directories: tuple[Path, ...] = setting(
        kinds.several(kinds.path()), (), "your rule files and directories"
    )
    retries: RetryCounting = setting(
        kinds.choice("documented", "compat"),
        "documented",
        "max_retries: N of an oellm-autoexp file allows N restarts a mode, or (compat) N - 1 in all",
    )
    too_slow: TooSlow = setting(
        kinds.choice("refuse", "quarantine", "accept"),
        "refuse",
        "user rules that slow the watch down: do not start, watch without them, or watch with them",
    )
    outcomes: Path | None = setting(
        kinds.optional(kinds.path()),
        None,
        "how your own restarts ended, as `midwatch outcomes` writes it; part of the bundle",
    )


@dataclass(frozen=True, slots=True)
class ForeignSettings:
    """Lines that another shipper writes to the topic `logs`, one JSON object per message."""

    shipper: ForeignShipper = setting(
        kinds.choice("none", "vector", "fluent-bit", "filebeat", "rsyslog"),
        "none",
        "the shipper of the lines; it sends no heartbeats, so midwatch finds no stall of such jobs",
    )
    line: str = setting(kinds.text(), "", "the field of the log line; a dot leads into an inner object")
    job: str = setting(
        kinds.text(), "", "the field of the job's name; only the shipper's configuration may set it"
    )
    node: str = setting(
        kinds.text(), "", "the field of the node; an empty field has the shipper's usual name"
    )
    path: str = setting(kinds.text(), "", "the field of the file's path")
    time: str = setting(
        kinds.text(), "", "the field of the time: ISO 8601 with its zone, or seconds since 1970"
    )
    user: str = setting(kinds.text(), "", "the user of jobs whose name has only a run")


@dataclass(frozen=True, slots=True)
class ExtensionSettings:
    """Foreign parts by name; no other one is looked for or imported (`docs/extending.md`)."""

    detectors: tuple[str, ...] = setting(
        kinds.several(kinds.name()), (), "detectors of installed packages that watch every job beside ours"
    )
    policies: tuple[str, ...] = setting(
        kinds.several(kinds.name()), (), "policies of installed packages that a job may name"
    )
    schedulers: tuple[str, ...] = setting(
        kinds.several(kinds.name()), (), "schedulers of installed packages that the executor acts on"
    )
    channels: tuple[str, ...] = setting(
        kinds.several(kinds.name()), (), "channels of installed packages that messages go to"
    )


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """Where metrics, traces and incident log records go. Both ways are off until an address is named."""

    otlp: str = setting(
        kinds.web_address(),
        "",
        "an OTLP/http receiver of metrics, traces and incident log records",
    )
    prometheus: str = setting(
        kinds.address(),
        "",
        "match answers scrapes here; detect, decide, executor and trace take the four ports above it",
    )
    interval: float = setting(kinds.duration(0.1, 3600), 15.0, "between two pushes of metrics by OTLP")
    forget: float = setting(kinds.duration(0, 7 * 86400), 900.0, "a job's series end so long after the job")
    runs: int = setting(kinds.integer(0, 2500), 500, "the most jobs with series, in each worker")
    nodes: int = setting(kinds.integer(0, 10_000), 2000, "the most nodes with series, in each worker")

    @property
    def on(self) -> bool:
        """Whether anything is exported at all."""
        return bool(self.otlp or self.prometheus)


@dataclass(frozen=True, slots=True)
class RaySettings:
    """The Ray head that the executor acts on. No spec and no command can name another one."""

    address: str = setting(
        kinds.http_url(), "", "the head's dashboard, http:// or https://; empty for no Ray"
    )
    token_file: Path | None = setting(kinds.optional(kinds.path()), None, "file with the head's token")
    token: Secret = setting(
        kinds.secret("ray.token_file", "MIDWATCH_RAY__TOKEN"), Secret(), "the head's token"
    )
    python: str = setting(
        kinds.text(), "python", "runs the sidecar on the cluster's nodes, where midwatch is installed"
    )


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How match, detect and decide run."""

    session_timeout: float = setting(
        kinds.duration(0.5, 300), 6.0, "the longest time that a killed worker's jobs go unwatched"
    )
    heartbeat_interval: float = setting(kinds.duration(0.1, 60), 0.5, "between two heartbeats to Kafka")
    within: float = setting(
        kinds.duration(0.001, 1), 0.02, "a batch waits this long for more records; it sets the latency"
    )
    batch: int = setting(kinds.integer(1, 10_000), 500, "the most records in one batch")
    commit_interval: float = setting(kinds.duration(0.1, 60), 1.0, "between two commits to Kafka")
    instance_id: str = setting(
        kinds.name(),
        "",
        "a stable id, unique to one worker (`up` makes one): after a kill the worker takes its place at once",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. `sources` names the files and variables that gave a value, for `doctor`."""

    cluster: str = setting(kinds.name(), "local", "the first part of every job's name")
    state_directory: Path = setting(
        kinds.path(), HOME_STATE, "keys, sockets, and the data of embedded servers"
    )
    policy: str = setting(kinds.text(), "verdict", "the policy of jobs that name none: a preset or a file")
    log_level: LogLevel = setting(
        kinds.choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "INFO",
        "the lowest level that the server processes log",
    )
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    redis: RedisSettings = field(default_factory=RedisSettings)
    topics: TopicSettings = field(default_factory=TopicSettings)
    ship: ShipSettings = field(default_factory=ShipSettings)
    detect: DetectSettings = field(default_factory=DetectSettings)
    watch: WatchSettings = field(default_factory=WatchSettings)
    executor: ExecutorSettings = field(default_factory=ExecutorSettings)
    rules: RulesSettings = field(default_factory=RulesSettings)
    foreign: ForeignSettings = field(default_factory=ForeignSettings)
    extensions: ExtensionSettings = field(default_factory=ExtensionSettings)
    messages: MessagesSettings = field(default_factory=MessagesSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    ray: RaySettings = field(default_factory=RaySettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    sources: tuple[str, ...] = field(default=(), metadata={"internal": True})

    @property
    def topic_names(self) -> Topics:
        """The names of the topics."""
        return Topics(self.topics.prefix)

    def topic_specifications(self) -> tuple[TopicSpec, ...]:
        """The specifications of the topics."""
        counts = {f.name: getattr(self.topics.partitions, f.name) for f in fields(self.topics.partitions)}
        return self.topic_names.specifications(counts)

    @property
    def armed(self) -> bool:
        """Whether midwatch may act at all. Each job must also be armed."""
        return self.watch.mode == "act"


def as_plain(section: object) -> dict[str, object]:
    """A settings section as JSON can hold it. A secret is `***`, or null if it is not set."""
    out: dict[str, object] = {}
    if not is_dataclass(section):
        raise TypeError(f"{type(section).__name__} is no settings section")
    for entry in fields(section):
        value = getattr(section, entry.name)
        if is_dataclass(value):
            out[entry.name] = as_plain(value)
        elif isinstance(value, Secret):
            out[entry.name] = "***" if value else None
        elif isinstance(value, Path):
            out[entry.name] = str(value)
        elif isinstance(value, tuple):
            out[entry.name] = [str(item) for item in value]
        else:
            out[entry.name] = value
    return out
