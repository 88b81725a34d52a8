"""Shell of the demo: starts the watch and the training as child processes, and collects the facts."""

from __future__ import annotations

import getpass
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from midwatch.agents.local.demo.judge import Fact, TrainingLedger, judge, missing, read_ledger, settled
from midwatch.agents.local.demo.script import RAY_SUBMIT, RUN, Stage
from midwatch.agents.local.demo.shown_steps import ShownSteps
from midwatch.agents.local.demo.summary import report
from midwatch.agents.local.embedded.process.child import Child
from midwatch.agents.query.inquiry import ask_job
from midwatch.agents.query.timeline import Timeline
from midwatch.streams.errors import MidwatchError, ServiceUnreachable, UsageError
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records.codec import plain_to_json
from midwatch.streams.records.identity import job_name
from midwatch.streams.services.connection import with_connection
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import is_ready

Say = Callable[[str], None]
Without = Literal["nccl-rule", "executor", "redis"]

_READY_S = 300.0  # a first download included
_POLL_S = 0.25
_AFTERWARDS_S = 3.0  # a restart that should not come would come by then


@dataclass(frozen=True, slots=True)
class Options:
    """How to run the demo.

    `settings` are the user's options for every command, `up` those for `midwatch up` alone. `without` breaks
    one part, and the demo must then name the fact that fails.
    """

    directory: Path
    settings: tuple[str, ...] = ()
    up: tuple[str, ...] = ()
    without: Without | None = None
    cluster: Literal["local", "ray"] = "local"
    patience: float = 75.0  # seconds from the training's start until all facts must hold


def run(settings: Settings, options: Options, say: Say) -> int:
    """Runs the demo. Returns 0 if every fact held, else 1; the report names the facts that did not."""
    watch_began = time.monotonic()
    named = settings.cluster != Settings().cluster
    stage = _stage(options.directory, settings.cluster if named else options.cluster)
    with _cluster(stage, settings, options, say) as (placed, check), _watch(stage, placed, say):
        connected = with_connection(_of(settings, stage))
        if options.without == "redis":
            stopped = threading.Event()
            threading.Thread(target=_keep_redis_stopped, args=(connected, stopped), daemon=True).start()
            stopped.wait()
            say("Redis is stopped for good (--without redis)")
        training_began = time.monotonic()
        _start_training(stage, placed)
        say(f"the watch took {training_began - watch_began:.1f} s to start; now 8 ranks train, and will fail")
        timeline, ledger, facts = _observe(stage, connected, options.patience, say, check)
    _keep_verdicts(stage, timeline)
    for line in report(stage, timeline, ledger, facts, time.monotonic() - training_began):
        say(line)
    return 1 if missing(facts) else 0


def _stage(directory: Path, cluster: str) -> Stage:
    stage = Stage(directory.absolute(), job_name(RUN, cluster=cluster, user=getpass.getuser()))
    if stage.ledger.exists():
        raise UsageError(
            "the directory holds the training of an earlier demo, which would resume",
            where=str(stage.directory),
            remedy="remove the directory, or name another with --directory",
        )
    for each in (stage.state, stage.checkpoints, stage.logs):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
    return stage


@contextmanager
def _cluster(
    stage: Stage, settings: Settings, options: Options, say: Say
) -> Iterator[tuple[Options, Callable[[], None]]]:
    """The options with the Ray head that the training runs on: that of the settings, or one of this demo.

    The function raises ServerFailed once a head of this demo has ended. So does this, in place of the error
    that came of it.
    """
    if options.cluster != "ray" or settings.ray.address:
        yield options, lambda: None
        return
    from midwatch.agents.local.embedded.ray_head import EmbeddedRay

    say("a Ray head starts on this machine")
    ray = EmbeddedRay(stage.directory / "ray.log")
    token = stage.directory / "ray.token"
    token.touch(mode=0o600)
    token.write_text(ray.head.token)
    head = (f"--set=ray.address={ray.head.address}", f"--set=ray.token_file={token}")
    placed = replace(options, settings=(*options.settings, *head, f"--set=ray.python={sys.executable}"))
    try:
        yield placed, ray.check
    except MidwatchError:
        ray.check()
        raise
    finally:
        ray.stop()


def _of(settings: Settings, stage: Stage) -> Settings:
    return replace(
        settings,
        state_directory=stage.state,
        watch=replace(settings.watch, mode="act"),
        topics=replace(settings.topics, prefix=stage.prefix),
    )


def _common(stage: Stage, options: Options) -> tuple[str, ...]:
    """The options of every process of the demo. The topics' prefix keeps them apart on a shared Kafka."""
    return (*options.settings, f"--state-directory={stage.state}", f"--set=topics.prefix={stage.prefix}")


@contextmanager
def _watch(stage: Stage, options: Options, say: Say) -> Iterator[None]:
    command = [
        sys.executable,
        "-P",
        "-m",
        "midwatch",
        "up",
        "--act",
        *_common(stage, options),
        "--set=executor.poll=0.5s",
        "--set=ship.interval=0.5s",
        *options.up,
    ]
    if options.without == "nccl-rule":
        command += ["--set=rules.presets=", f"--rules={_rules_without_timeouts(stage)}"]
    if options.without == "executor":
        command.append("--no-executor")
    log = stage.directory / "up.log"
    up = Child("midwatch up", command, directory=Path.cwd(), log=log)
    try:
        deadline = time.monotonic() + _READY_S
        shown = 0
        while not is_ready(stage.state, "up", up.pid):
            shown = _pass_on(log, shown, say)
            if up.exit_status is not None:
                raise ServiceUnreachable("the watch did not come up", where=str(log), remedy=_last_lines(log))
            if time.monotonic() > deadline:
                raise ServiceUnreachable(
                    f"the watch was not ready within {_READY_S:.0f} s",
                    where=str(log),
                    remedy=_last_lines(log),
                )
            time.sleep(_POLL_S)
        yield
    finally:
        up.stop()


def _start_training(stage: Stage, options: Options) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "midwatch",
        "run",
        *_common(stage, options),
        f"--job={stage.job}",
        f"--log={stage.logs}",
        f"--checkpoint-dir={stage.checkpoints}",
        "--policy=verdict",
        "--act",
        "--",
        *(RAY_SUBMIT if options.cluster == "ray" else ()),
        *stage.training(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MidwatchError(
            f"the training could not be started: {done.stderr.strip() or done.stdout.strip()}",
            where="midwatch run",
            remedy="run the command by hand to see more",
        )


def _observe(
    stage: Stage, settings: Settings, patience: float, say: Say, check: Callable[[], None]
) -> tuple[Timeline | None, TrainingLedger, list[Fact]]:
    """Watches until every fact has held for `_AFTERWARDS_S`, or for `patience` seconds at most.

    `check` raises if what the training runs on has ended: no fact would come any more.
    """
    deadline = time.monotonic() + patience
    timeline: Timeline | None = None
    shown = ShownSteps()
    held_since: float | None = None
    while True:
        with suppress(UsageError):  # the job is not in the topics yet
            timeline = ask_job(settings, str(stage.job), now_ms())[0]
        ledger = _ledger(stage)
        facts = judge(timeline, ledger, _read_line)
        now = time.monotonic()
        held_since = None if missing(facts) else held_since or now
        over = now > deadline or (held_since is not None and now > held_since + _AFTERWARDS_S)
        for line in shown.lines(timeline, last=over) if timeline else ():
            say(f"  {line}")
        if over:
            return timeline, ledger, facts
        check()
        time.sleep(_POLL_S)


def _keep_verdicts(stage: Stage, timeline: Timeline | None) -> None:
    """Writes the verdicts by attempt, for a comparison with `midwatch replay`."""
    verdicts = {
        str(attempt.number): asdict(incident.verdict)
        for attempt in (timeline.attempts if timeline else ())
        if (incident := settled(attempt)) is not None
    }
    (stage.directory / "verdicts.json").write_text(plain_to_json(verdicts))


def _ledger(stage: Stage) -> TrainingLedger:
    return read_ledger(stage.ledger.read_text()) if stage.ledger.exists() else TrainingLedger()


def _read_line(path: str, number: int) -> str:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return next((line for at, line in enumerate(file, 1) if at == number), "")
    except OSError:
        return ""


def _rules_without_timeouts(stage: Stage) -> Path:
    """The default rules without those of the error type that ends the first attempt."""
    from midwatch.rules.loader import load_bundle

    names = [rule.name for rule in load_bundle("default").rules if rule.error_type == "nccl_timeout"]
    file = stage.directory / "without_timeouts.yaml"
    file.write_text(f"version: 1\ninclude: [default]\nexclude: [{', '.join(names)}]\n")
    return file


def _keep_redis_stopped(settings: Settings, stopped: threading.Event) -> None:
    """Stops Redis whenever it answers, because `up` starts a dead Redis again.

    Sets `stopped` once Redis has been stopped.
    """
    from redis.exceptions import RedisError

    from midwatch.streams.services.reachable import redis_client

    while True:
        with suppress(RedisError, OSError):
            redis_client(settings).shutdown(nosave=True, now=True, force=True)
            stopped.set()
        time.sleep(_POLL_S)


def _pass_on(log: Path, shown: int, say: Say) -> int:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    for line in lines[shown:]:
        say(f"  {line}")
    return len(lines)


def _last_lines(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "the end of its log: " + (" | ".join(lines[-4:]) or "none")


def default_directory() -> Path:
    """A directory for this process alone, so that two demos can run side by side."""
    return Path(os.environ.get("TMPDIR", "/tmp")) / f"midwatch-demo-{os.getpid()}"  # noqa: S108  # made 0700
