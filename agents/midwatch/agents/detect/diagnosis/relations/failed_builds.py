"""Failed builds: torch builds an extension on one process; the others only find that it is missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, consequence
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.streams.records import Hit

_MISSED = re.compile(r"/(\w+?)(?:_v\d+)?\.so: cannot open shared object file")
_FAILED = re.compile(r"Error building extension '(\w+)'")


def misses_a_failed_build(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A process waited for the extension that another one built, in vain. The build's own error tells why."""
    missed = _MISSED.search(hit.line.text) if hit.error_type == "import_error" else None
    failed = None if missed is None else around.once(_failed_builds).get(missed[1])
    return None if failed is None else consequence(hit, NotRoot("not built", failed.line))


def _failed_builds(around: Surroundings) -> Mapping[str, Hit]:
    """The failed build of each extension."""
    return {found[1]: hit for hit in around.hits if (found := _FAILED.search(hit.line.text))}
