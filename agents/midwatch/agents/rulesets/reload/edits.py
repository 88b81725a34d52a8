"""Shell: the user files of a match worker, at its start and at each edit while it runs.

The files act only through the topic `rules`, so all workers judge by the same bundle. At the start the files
count as edited if the last worker of this state directory read others.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.rulesets.bundles import log_notes
from midwatch.agents.rulesets.content import Content
from midwatch.agents.rulesets.draft import Draft, admitted, edit, prepare, read_draft
from midwatch.agents.rulesets.reload.follower import Follower
from midwatch.agents.rulesets.reload.helper_process import HelperProcess
from midwatch.agents.rulesets.reload.topic import CurrentBundle, RulesTopic, RulesWriter, refusal_of, who
from midwatch.streams.errors import ConfigurationError, MidwatchError
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records import InForce
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.readiness import run_directory

_LOOK_EVERY_S = 0.1
_LOOK_AGAIN_S = 0.05
"""The watch reads an edit only if its files stay the same this long: somebody may still write them."""
_LONGEST_S = 15.0
_LOOKS_BEFORE = 10
"""So many looks after an edit a reader gets ready for the next. That takes most of a second of a core."""
_LOOKS_AT_FIRST = 100
"""So many looks more at the start, when the worker itself needs the core."""
_log = logging.getLogger(__name__)

Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The bundle in force at a start. `read` are the user files with all that they include.

    `before` is the signature of the files that the settings name, taken before they were read.
    """

    current: CurrentBundle
    content: Content
    read: tuple[str, ...]
    before: Signature


def begin(settings: Settings) -> Beginning:
    """The bundle that a match worker starts with. It publishes the user files' bundle if they are an edit.

    Raises:
        ConfigurationError: the files have mistakes, and no earlier bundle is in force.
        ServiceUnreachable: Kafka does not answer.
    """
    before, topic, read = signature(settings), RulesTopic(settings), tuple[str, ...]()
    try:
        topic.read_to_end()
        try:
            read = _publish_if_edited(settings, topic)
        except ConfigurationError as error:
            if topic.current is None:
                raise
            _refuse(settings, error)
        topic.read_to_end()
        if topic.current is None:
            raise AssertionError("a bundle was put in force, or it raised")
        return Beginning(topic.current, topic.bundle(topic.current.in_force.bundle), read, before)
    finally:
        topic.close()


def is_edit(draft: str, last_read: str, current: CurrentBundle | None, known: Iterable[str]) -> bool:
    """Whether a worker puts the files that it finds at its start in force.

    `draft` is their hash. `last_read` is the hash at the last start with this state directory, "" for none.
    A new worker follows the bundle in force. It puts its files in force only if that bundle came from files,
    and if the topic does not know its own. So an old image that starts beside a new one changes nothing.
    """
    if current is None:
        return True
    in_force = current.in_force
    if draft in (in_force.bundle, in_force.made_of, last_read):
        return False
    return bool(last_read) or (in_force.by == "files" and draft not in known)


class EditWatch(threading.Thread):
    """Looks at the user files, and puts an edit without mistakes in force.

    A helper process reads and measures the edit. The watch starts it before the edit where it can.
    """

    def __init__(self, settings: Settings, follower: Follower, beginning: Beginning) -> None:
        super().__init__(name="edits", daemon=True)
        self._settings = settings
        self._follower = follower
        self._stop_requested = threading.Event()
        self._read = beginning.read
        # An edit since the files were read counts too.
        is_unchanged = signature(settings) == beginning.before
        self._handled = signature(settings, beginning.read) if is_unchanged else ()
        self._refused = False
        self._reader: HelperProcess | None = None
        self._prepared_for = ""
        self._looks = -_LOOKS_AT_FIRST

    def stop(self) -> None:
        """Ends the thread, and waits at most 15 s until it reads and measures nothing any more."""
        self._stop_requested.set()
        self.join(_LONGEST_S)

    def run(self) -> None:
        if not names_files(self._settings):
            return
        seen = self._handled
        while not self._stop_requested.wait(_LOOK_EVERY_S if seen == self._handled else _LOOK_AGAIN_S):
            now = signature(self._settings, self._read)
            self._keep_reader(edited=now != self._handled)
            if now == seen != self._handled:
                self._handled = now
                self._try_edit()
            seen = now
        self._close_reader()

    def _try_edit(self) -> None:
        try:
            self._publish_edit()
        except ConfigurationError as error:
            self._refused = True
            _refuse(self._settings, error)
        except (MidwatchError, OSError) as error:
            if not self._stop_requested.is_set():
                _log.error("an edit of the rules could not be published: %s", error)
            self._handled = ()  # try again
        else:
            self._handled = signature(self._settings, self._read)
        finally:
            self._close_reader()
            self._looks = 0

    def _publish_edit(self) -> None:
        current, settings = self._follower.current, self._settings
        hashes = frozenset((current.in_force.bundle, current.in_force.made_of) if current else ())
        reader = self._reader or HelperProcess()
        result_of = reader.begin(
            edit, settings.policy, settings.rules, settings.extensions, hashes, self._patterns_in_force()
        )
        with closing(RulesWriter(settings)) as writer:  # it connects while the helper reads the files
            found = result_of(self._stop_requested)
            self._read = found.draft.read
            if found.refused is not None:
                raise found.refused
            if found.ready is not None:
                _put_in_force(writer, found.ready, found.draft.hash, known=())
            elif self._refused:
                writer.nothing_refused()
        self._refused = False
        _remember(settings, found.draft.hash)

    def _patterns_in_force(self) -> frozenset[str]:
        current = self._follower.current
        content = self._follower.contents.get(current.in_force.bundle) if current else None
        return frozenset(rule.pattern for rule in content.rules) if content else frozenset()

    def _keep_reader(self, *, edited: bool) -> None:
        """Starts a reader that knows the bundle in force, once that is some looks old.

        After an edit it starts one at once, if there is none.
        """
        current = self._follower.current
        bundle = current.in_force.bundle if current else ""
        if bundle != self._prepared_for:
            self._prepared_for, self._looks = bundle, min(self._looks, 0)
        self._looks += 1
        if self._looks == _LOOKS_BEFORE and not edited:
            self._close_reader()
        elif not edited or self._reader is not None:
            return
        settings = self._settings
        with contextlib.suppress(OSError):  # the next look tries again
            self._reader = HelperProcess(
                prepare, settings.policy, settings.rules, settings.extensions, self._patterns_in_force()
            )

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def names_files(settings: Settings) -> bool:
    """Whether the settings name a file that becomes part of a bundle, and that somebody may edit."""
    rules = settings.rules
    return bool(rules.directories or _policy_file(settings) or rules.outcomes)


def signature(settings: Settings, read: Iterable[str] = ()) -> Signature:
    """A value that changes when a file changes that may hold rules or policies of the settings.

    It covers the named files, all YAML files beside them, and the files that were `read` last.
    """
    found: dict[str, tuple[int, int, int]] = {}
    named = (*settings.rules.directories, *_policy_file(settings))
    beside = (file for path in named for file in (path if path.is_dir() else path.parent).glob("*.y*ml"))
    for file in (*named, *beside, *map(Path, read)):
        with contextlib.suppress(OSError):
            status = file.stat()
            found[str(file)] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return tuple((file, *status) for file, status in sorted(found.items()))


def _policy_file(settings: Settings) -> tuple[Path, ...]:
    path = Path(settings.policy)
    return (path,) if path.suffix in (".yaml", ".yml") else ()


def _publish_if_edited(settings: Settings, topic: RulesTopic) -> tuple[str, ...]:
    """Publishes the user files' bundle if they are an edit. Returns all files that were read."""
    draft = read_draft(settings)
    if is_edit(draft.hash, _last_read(settings), topic.current, topic.known):
        ready = draft if draft.hash in topic.known else admitted(draft, settings.rules.too_slow)
        with closing(RulesWriter(settings)) as writer:
            _put_in_force(writer, ready, draft.hash, known=topic.known)
    elif topic.current is not None and draft.hash not in (
        topic.current.in_force.bundle,
        topic.current.in_force.made_of,
    ):
        in_force = topic.current.in_force
        _log.warning(
            "the rule files of this worker are not in force: bundle %s is, %s by %s; "
            "edit the files, or run `midwatch rules push`, to put them in force",
            *(in_force.bundle, "pushed" if in_force.by == "push" else "read from files", in_force.who),
        )
    _remember(settings, draft.hash)
    return draft.read


def _put_in_force(writer: RulesWriter, ready: Draft, made_of: str, *, known: Iterable[str]) -> None:
    log_notes(ready.notes)
    in_force = InForce(ready.hash, "files", who(), now_ms(), ready.files, made_of)
    writer.publish(ready.record, in_force, known=ready.hash in known)


def _refuse(settings: Settings, error: ConfigurationError) -> None:
    """Writes the refusal into the topic. Every follower logs it, also the one of this worker."""
    with closing(RulesWriter(settings)) as writer:
        writer.refuse(refusal_of("files", error))


def _last_read_file(settings: Settings) -> Path:
    return run_directory(settings.state_directory) / "rules.read"


def _last_read(settings: Settings) -> str:
    try:
        return _last_read_file(settings).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _remember(settings: Settings, hash_: str) -> None:
    _last_read_file(settings).write_text(hash_ + "\n", encoding="ascii")
