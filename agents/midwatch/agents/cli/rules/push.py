"""`midwatch rules push [PATH…]`: gives all running workers other rules and policies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.errors import ConfigurationError, MidwatchError

if TYPE_CHECKING:
    from midwatch.agents.rulesets.draft import Draft
    from midwatch.agents.rulesets.reload.topic import RulesTopic
    from midwatch.streams.records import RuleBundle
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("paths", metavar="[FILE|DIR]...", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--preset",
    "presets",
    multiple=True,
    metavar="NAME",
    help="Shipped rules, in place of the settings' presets.",
)
@click.option("--dry-run", is_flag=True, help="Check everything and show what would change; publish nothing.")
@json_option
@with_settings(connected=True)
def push(
    *, paths: tuple[Path, ...], presets: tuple[str, ...], dry_run: bool, as_json: bool, settings: Settings
) -> int:
    """Put rules and policies in force on all workers, as one bundle: the presets and the given files.

    Without a path it takes the files that the settings name. It checks and measures everything first. A
    mistake changes nothing (exit code 3). Match workers switch within two seconds. Detect and decide switch
    at one offset of each partition, and keep what they know of every job.
    """
    from midwatch.agents.rulesets.reload.topic import RulesTopic
    from midwatch.streams.services.reachable import kafka_log
    from midwatch.streams.services.topic_admin import check_topics

    try:
        draft = _read(settings, paths, presets)
        check_topics(settings)
    except ConfigurationError as error:
        if not dry_run:
            _publish_refusal(settings, error)
        raise
    with kafka_log():
        topic = RulesTopic(settings)
        try:
            topic.read_to_end()
            return _push(settings, draft, topic, dry_run=dry_run, as_json=as_json)
        finally:
            topic.close()


def _read(settings: Settings, paths: tuple[Path, ...], presets: tuple[str, ...]) -> Draft:
    from midwatch.agents.rulesets.draft import read_draft

    return read_draft(settings, paths or None, presets or None)


def _push(settings: Settings, draft: Draft, topic: RulesTopic, *, dry_run: bool, as_json: bool) -> int:
    from midwatch.agents.rulesets.draft import admitted
    from midwatch.agents.rulesets.reload.topic import RulesWriter, who
    from midwatch.streams.host.clock import now_ms
    from midwatch.streams.records import InForce

    before = topic.record(topic.current.in_force.bundle) if topic.current else None
    if draft.hash not in topic.known:
        patterns = {str(rule["pattern"]) for rule in before.rules} if before else set[str]()
        try:
            ready = admitted(draft, settings.rules.too_slow, patterns)
        except ConfigurationError as error:
            if not dry_run:
                _publish_refusal(settings, error)
            raise
    else:
        ready = draft  # it was admitted before it was published
    changed = ready.hash != (topic.current.in_force.bundle if topic.current else "")
    changes = _changes(before, ready.record)
    if changed and not dry_run:
        in_force = InForce(ready.hash, "push", who(), now_ms(), ready.files, draft.hash)
        writer = RulesWriter(settings)
        try:
            writer.publish(ready.record, in_force, known=ready.hash in topic.known)
        finally:
            writer.close()
    _show(ready, changes, changed=changed, dry_run=dry_run, as_json=as_json)
    return 0


def _changes(before: RuleBundle | None, after: RuleBundle) -> dict[str, list[str]]:
    """Names of rules and policies by kind of change."""
    old = {str(rule["name"]): _content(rule) for rule in before.rules} if before else {}
    new = {str(rule["name"]): _content(rule) for rule in after.rules}
    old_policies = dict(before.policies) if before else {}
    new_policies = dict(after.policies)
    return {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "changed": sorted(name for name in new.keys() & old.keys() if new[name] != old[name]),
        "policies": sorted(
            name
            for name in new_policies.keys() | old_policies.keys()
            if new_policies.get(name) != old_policies.get(name)
        ),
    }


def _content(rule: Any) -> dict[str, Any]:
    """The rule without its place, as JSON: there a list equals a tuple."""
    import msgspec

    whole: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(rule))
    return {name: value for name, value in whole.items() if name != "location"}


def _show(
    ready: Draft, changes: dict[str, list[str]], *, changed: bool, dry_run: bool, as_json: bool
) -> None:
    from midwatch.agents.cli.rules.sources import note_json
    from midwatch.streams.records import codec

    if as_json:
        body = {
            "version": 1,
            "bundle": ready.hash,
            "published": changed and not dry_run,
            "rules": len(ready.rules),
            "policies": sorted(ready.record.policies),
            "files": list(ready.files),
            "changes": changes,
            "notes": [note_json(note) for note in ready.notes],
        }
        click.echo(codec.plain_to_json(body))
        return
    for note in ready.notes:
        click.echo(note, err=True)
    for change, names in changes.items():
        if names:
            click.echo(f"{change:9}{', '.join(names[:20])}{' …' if len(names) > 20 else ''}")
    about = f"bundle {ready.hash[:12]}: {len(ready.rules)} rules, {len(ready.record.policies)} policies"
    if not changed:
        click.echo(f"{about}; it is in force already")
    elif dry_run:
        click.echo(f"{about}; it would be put in force")
    else:
        click.echo(f"{about}; it is in force now")


def _publish_refusal(settings: Settings, error: ConfigurationError) -> None:
    """A refused push shows in the logs and counts of the workers, and in `midwatch doctor`."""
    from midwatch.agents.rulesets.reload.topic import RulesWriter, refusal_of
    from midwatch.streams.services.reachable import kafka_log
    from midwatch.streams.services.topic_admin import check_topics

    try:
        check_topics(settings)
        with kafka_log():
            writer = RulesWriter(settings)
            try:
                writer.refuse(refusal_of("push", error))
            finally:
                writer.close()
    except MidwatchError:
        return  # the caller reports the mistake itself
