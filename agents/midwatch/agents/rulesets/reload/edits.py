"""Shell: rule files as a match worker finds them at its start, and edits of them while it runs.

A worker's own files act only through the topic `rules`, so that all workers judge by the same. What counts as
an edit at the start is told by what the worker with this state directory had read last.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from midwatch.agents.rulesets.bundles import tell
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
"""An edit is looked at once more before it is read: nobody should be in the midst of writing."""
_LONGEST_S = 15.0
_LOOKS_BEFORE = 10
"""So many looks later a reader is made ready for the next edit; it takes most of a second of a core."""
_LOOKS_AT_FIRST = 100
"""So many more at the start, when the worker itself needs the core."""
_log = logging.getLogger(__name__)

Signature = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Beginning:
    """The bundle in force at a start, the files that the worker's own rules were `read` from, and how those
    that the settings name stood `before`."""

    standing: CurrentBundle
    content: Content
    read: tuple[str, ...]
    before: Signature


def begin(settings: Settings) -> Beginning:
    """What a match worker starts with: it publishes its own files' bundle if that is to be in force.

    Raises:
        ConfigurationError: the files are broken, and no bundle is in force that could stay.
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
        return Beginning(topic.current, topic.bundle(topic.current.said.bundle), read, before)
    finally:
        topic.close()


def is_edit(draft: str, last_read: str, standing: CurrentBundle | None, known: Iterable[str]) -> bool:
    """Whether the files that a worker finds at its start are to be put in force.

    `draft` is their hash, `last_read` that of the last start with this state directory ("" for none). A
    worker that never ran before follows who is there: it puts its files in force only where files rule, and
    only if they were not in force before (an old image beside a new one).
    """
    if standing is None:
        return True
    said = standing.said
    if draft in (said.bundle, said.made_of, last_read):
        return False
    return bool(last_read) or (said.by == "files" and draft not in known)


class EditWatch(threading.Thread):
    """Looks at the worker's own files, and puts an edit in force that is without mistakes. A helper
    process reads and measures it; that is there before the edit is made, as far as can be."""

    def __init__(self, settings: Settings, follower: Follower, begun: Beginning) -> None:
        super().__init__(name="edits", daemon=True)
        self._settings = settings
        self._follower = follower
        self._over = threading.Event()
        self._read = begun.read
        # An edit of the seconds since then is one too.
        self._taken = signature(settings, begun.read) if signature(settings) == begun.before else ()
        self._refused = False
        self._reader: HelperProcess | None = None
        self._reads_beside = ""
        self._looks = -_LOOKS_AT_FIRST

    def stop(self) -> None:
        """Returns when nothing is read or measured any more."""
        self._over.set()
        self.join(_LONGEST_S)

    def run(self) -> None:
        if not self._settings.rules.directories and not _policy_file(self._settings):
            return
        seen = self._taken
        while not self._over.wait(_LOOK_EVERY_S if seen == self._taken else _LOOK_AGAIN_S):
            now = signature(self._settings, self._read)
            self._keep_ready(now != self._taken)
            if now == seen != self._taken:
                self._taken = now
                self._try()
            seen = now
        self._let_go()

    def _try(self) -> None:
        try:
            self._take()
        except ConfigurationError as error:
            self._refused = True
            _refuse(self._settings, error)
        except (MidwatchError, OSError) as error:
            if not self._over.is_set():
                _log.error("an edit of the rules could not be published: %s", error)
            self._taken = ()  # it is tried again
        else:
            self._taken = signature(self._settings, self._read)
        finally:
            self._let_go()
            self._looks = 0

    def _take(self) -> None:
        standing, settings = self._follower.standing, self._settings
        hashes = frozenset((standing.said.bundle, standing.said.made_of) if standing else ())
        reader = self._reader or HelperProcess()
        answer = reader.begin(
            edit, settings.policy, settings.rules, settings.extensions, hashes, self._patterns_in_force()
        )
        with closing(RulesWriter(settings)) as writer:  # made while the files are read
            found = answer(self._over)
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
        standing = self._follower.standing
        in_force = self._follower.contents.get(standing.said.bundle) if standing else None
        return frozenset(rule.pattern for rule in in_force.rules) if in_force else frozenset()

    def _keep_ready(self, wanted: bool) -> None:
        """Have a reader that knows what is in force, once that has stood for a moment; if it is `wanted`, any
        reader."""
        standing = self._follower.standing
        beside = standing.said.bundle if standing else ""
        if beside != self._reads_beside:
            self._reads_beside, self._looks = beside, min(self._looks, 0)
        self._looks += 1
        if self._looks == _LOOKS_BEFORE and not wanted:
            self._let_go()
        elif not wanted or self._reader is not None:
            return
        settings = self._settings
        with contextlib.suppress(OSError):  # then it is tried again
            self._reader = HelperProcess(
                prepare, settings.policy, settings.rules, settings.extensions, self._patterns_in_force()
            )

    def _let_go(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def signature(settings: Settings, read: Iterable[str] = ()) -> Signature:
    """What changes when a file does that the settings' rules and policies may be read from: those beside the
    named ones, and those that were `read` last."""
    found: dict[str, tuple[int, int, int]] = {}
    named = (*settings.rules.directories, *_policy_file(settings))
    beside = (file for path in named for file in (path if path.is_dir() else path.parent).glob("*.y*ml"))
    for file in (*named, *beside, *map(Path, read)):
        with contextlib.suppress(OSError):
            told = file.stat()
            found[str(file)] = (told.st_mtime_ns, told.st_size, told.st_ino)
    return tuple((file, *told) for file, told in sorted(found.items()))


def _policy_file(settings: Settings) -> tuple[Path, ...]:
    path = Path(settings.policy)
    return (path,) if path.suffix in (".yaml", ".yml") else ()


def _publish_if_edited(settings: Settings, topic: RulesTopic) -> tuple[str, ...]:
    """The files that were read."""
    draft = read_draft(settings)
    if is_edit(draft.hash, _last_read(settings), topic.current, topic.known):
        ready = draft if draft.hash in topic.known else admitted(draft, settings.rules.too_slow)
        with closing(RulesWriter(settings)) as writer:
            _put_in_force(writer, ready, draft.hash, known=topic.known)
    elif topic.current is not None and draft.hash not in (
        topic.current.said.bundle,
        topic.current.said.made_of,
    ):
        said = topic.current.said
        _log.warning(
            "this worker's own rule files are not in force: bundle %s is, %s by %s; "
            "an edit of them, or `midwatch rules push`, puts them in force",
            *(said.bundle, "pushed" if said.by == "push" else "read from files", said.who),
        )
    _remember(settings, draft.hash)
    return draft.read


def _put_in_force(writer: RulesWriter, ready: Draft, made_of: str, *, known: Iterable[str]) -> None:
    tell(ready.notes)
    said = InForce(ready.hash, "files", who(), now_ms(), ready.files, made_of)
    writer.publish(ready.record, said, known=ready.hash in known)


def _refuse(settings: Settings, error: ConfigurationError) -> None:
    """Everybody hears of it by the topic, this worker's log included."""
    with closing(RulesWriter(settings)) as writer:
        writer.refuse(refusal_of("files", error))


def _memory(settings: Settings) -> Path:
    return run_directory(settings.state_directory) / "rules.read"


def _last_read(settings: Settings) -> str:
    try:
        return _memory(settings).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _remember(settings: Settings, hash_: str) -> None:
    _memory(settings).write_text(hash_ + "\n", encoding="ascii")
