"""`midwatch rules bench FILE`: how fast the rules match a log."""

from __future__ import annotations

import time
from pathlib import Path

import click

from midwatch.agents.cli.options import json_option
from midwatch.agents.cli.rules.sources import content, rules_option

_SHOWN = 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True))
@rules_option
@json_option
def bench(file: Path, names: tuple[str, ...], as_json: bool) -> None:
    """Measure how fast one core matches the lines of FILE (or -), and count the hits of each rule.

    It matches lines as a worker does. The time does not include normalising them.
    """
    from midwatch.agents.rulesets.bundles import watched_rules
    from midwatch.rules.matching.inspection import bench_text
    from midwatch.streams.lines.normalise import normalise
    from midwatch.streams.records import codec

    raw = click.get_binary_stream("stdin").read() if str(file) == "-" else content(file)
    watched = watched_rules(names)
    speed = bench_text(watched.rules, normalise(raw).text, time.thread_time)
    hits = sorted(speed.hits.items(), key=lambda pair: (-pair[1], pair[0]))
    if as_json:
        body = {
            "version": 1,
            "file": str(file),
            "rules": len(watched.rules.rules),
            "lines": speed.lines,
            "megabytes": speed.megabytes,
            "seconds": speed.seconds,
            "megabytes_per_second": speed.megabytes_per_second,
            "hits": dict(hits),
        }
        click.echo(codec.plain_to_json(body))
        return
    click.echo(
        f"{speed.megabytes:.1f} MB, {speed.lines} lines, {len(watched.rules.rules)} rules:"
        f" {speed.seconds:.3f} s, {speed.megabytes_per_second:.0f} MB/s"
    )
    if speed.megabytes < 1:
        click.echo("less than 1 MB: the speed says little", err=True)
    for name, count in hits[:_SHOWN]:
        click.echo(f"{count:10}  {name}")
    if len(hits) > _SHOWN:
        click.echo(f"            and {len(hits) - _SHOWN} more rules: --json lists them")
