"""Jobs that wait for the good end of another job: `afterok:44`. Pure: texts of squeue in, values out.

A job that failed never fulfils such a dependency, even where midwatch has started it again under a new id.
"""

from __future__ import annotations

import re

from midwatch.agents.schedulers.base import DependentJob

FIELDS = "JobArrayID:40|,State:24|,UserName:40|,Dependency:1024"
_TERM = re.compile(r"(?P<kind>[a-z]+):(?P<id>\d+(?:_(?:\d+|\*))?)(?P<delay>\+\d+)?(?:\([a-z ]*\))?")
_GOOD_END = ("afterok", "aftercorr")


def waiting(text: str, native: str) -> tuple[DependentJob, ...]:
    """The jobs in `squeue -h -r -O FIELDS` that wait for the good end of this job or of its whole array."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|", 3)]
        if len(parts) == 4 and parts[1] == "PENDING" and _waits(parts[3], native):
            found.append(DependentJob(parts[0], parts[2], parts[3]))
    return tuple(found)


def pointed_at(dependency: str, old: str, new: str) -> str:
    """The dependency with `new` in the place of `old`; "" if it names the whole array, or is cut off."""
    array = old.partition("_")[0]
    terms, separators = [], re.findall(r"[,?]", dependency)
    for word in re.split(r"[,?]", dependency):
        term = _TERM.fullmatch(word.strip())
        if term is None:
            if word.strip() != "singleton":
                return ""
            terms.append("singleton")
            continue
        good_end = term["kind"] in _GOOD_END
        if good_end and term["id"] != old and term["id"] in (array, f"{array}_*"):
            return ""
        native = new if good_end and term["id"] == old else term["id"].removesuffix("_*")
        terms.append(f"{term['kind']}:{native}{term['delay'] or ''}")
    return "".join(word + mark for word, mark in zip(terms, [*separators, ""], strict=True))


def _waits(dependency: str, native: str) -> bool:
    array = native.partition("_")[0]
    return any(
        term["kind"] in _GOOD_END and term["id"] in (native, array, f"{array}_*")
        for term in _TERM.finditer(dependency)
    )
