"""`midwatch rules score FILE.jsonl`: scores the diagnosis of `midwatch replay` on labelled logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import json_option
from midwatch.streams.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from midwatch.agents.replay.replayed import Replayed
    from midwatch.agents.replay.scoring import Judged, Prediction
    from midwatch.agents.rulesets.bundles import CompiledBundle


@click.command()
@click.argument("path", metavar="FILE.jsonl", type=click.Path(path_type=Path))
@click.option("--mistakes", "with_mistakes", is_flag=True, help="List the wrong verdicts, by id.")
@click.option("--lenient", is_flag=True, help="An action that the label lists in also_action is right, too.")
@json_option
def score(path: Path, with_mistakes: bool, lenient: bool, as_json: bool) -> None:
    """Score the diagnosis on a file of labelled logs.

    Each line is a JSON object with log, error_type ("none" for a healthy run), transient and root_line. It
    may have id and cascade. The lists also_root and also_type hold answers that are as right, also_action
    those that --lenient takes. Every log is judged as by `midwatch replay` without options.
    """
    from midwatch.agents.replay import scoring
    from midwatch.streams.records import codec

    rows = scoring.read_labelled(_rows(path), str(path))
    judge = judge_of_logs()
    judged = [(row, judge(row.log)) for row in rows]
    if lenient:
        judged = scoring.leniently(judged)
    if as_json:
        click.echo(codec.plain_to_json(_plain(judged)))
        return
    _show(judged)
    if with_mistakes:
        for wrong in scoring.mistakes(judged):
            click.echo(f"{wrong['id']}: is {wrong['is']}, verdict {wrong['said']}; wrong: {wrong['wrong']}")


def _rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    import json

    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise UsageError(
            f"the labelled logs cannot be read: {error.strerror}", where=str(path), remedy="give a file"
        ) from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"the line is not JSON: {error}", where=f"{path}:{number}", remedy="write one object a line"
            ) from error


def judge_of_logs() -> Callable[[str], Prediction]:
    """From the text of a log to what `midwatch replay` says of it without options."""
    from midwatch.agents.rulesets.bundles import watched_rules

    # Labelled logs are a few megabytes. To plan the scan would cost more than it saves on them.
    replayed = replay_of_logs(watched_rules(("default",), scan=False))
    return lambda log: prediction_of(replayed(log))


def replay_of_logs(watched: CompiledBundle) -> Callable[[str], Replayed]:
    """From the text of a log to what `midwatch replay` makes of it under these rules, without options."""
    from midwatch.agents.decide.decision import Rulebook
    from midwatch.agents.policies.loader import load_policy
    from midwatch.agents.replay.job_replay import replay
    from midwatch.agents.replay.reading.log_files import LogFile
    from midwatch.agents.replay.starts.appended_starts import replay_last
    from midwatch.rules.detectors.limits import WatchLimits

    policy = load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)
    return lambda log: replay_last(
        [LogFile("log", log.encode(), 0.0)],
        lambda files: replay("replay:file/log", files, watched, book, WatchLimits()),
    )


def prediction_of(done: Replayed) -> Prediction:
    """What is scored of a replay."""
    from midwatch.agents.replay.scoring import Prediction

    if done.verdict.state != "failed":
        return Prediction(action=done.decision.action)
    return Prediction(done.verdict.error_type, done.verdict.root_line, done.decision.action)


def _plain(judged: list[Judged]) -> dict[str, object]:
    from midwatch.agents.replay import scoring

    return {
        "version": 1,
        "excerpts": len(judged),
        "failures": sum(row.failed for row, _ in judged),
        "measures": {
            name: {"hits": ratio.hits, "of": ratio.of, "interval": ratio.interval()}
            for name, ratio in scoring.measure(judged).items()
        },
        "confusion": [
            {"true": true, "said": said, "count": count}
            for (true, said), count in sorted(scoring.confusion(judged).items())
        ],
        "mistakes": scoring.mistakes(judged),
    }


def _show(judged: list[Judged]) -> None:
    from midwatch.agents.replay import scoring

    failures = sum(row.failed for row, _ in judged)
    click.echo(f"{len(judged)} logs: {failures} failures, {len(judged) - failures} healthy")
    for name, ratio in scoring.measure(judged).items():
        click.echo(f"  {name:36}{ratio}")
    counts = scoring.confusion(judged)
    names = sorted({name for pair in counts for name in pair})
    click.echo("\nfamily: the true one down, the verdict's across")
    click.echo(f"  {'':10}" + "".join(f"{name:>10}" for name in names))
    for true in names:
        row = "".join(f"{counts.get((true, said), 0) or '.':>10}" for said in names)
        click.echo(f"  {true:10}{row}")
