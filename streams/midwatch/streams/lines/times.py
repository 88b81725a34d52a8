"""The time that a log line prints. It is evidence only, and counts only if plausible. Pure."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from midwatch.streams.lines.forms import LONGEST_FORM, form_of

_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: i + 1 for i, name in enumerate(_NAMES)}
_CLOCK = r"(?P<H>[01]\d|2[0-3]):(?P<M>[0-5]\d):(?P<S>[0-5]\d|60)(?:[.,](?P<F>\d{1,9}))?"
_FORMATS = tuple(
    re.compile(pattern)
    for pattern in (
        # ISO 8601 and its kin: Megatron's [2026-11-20 07:32:05], Python's logging, loguru, TensorFlow, slurmd
        r"(?<!\d)(?P<y>\d{4})[-/](?P<m>\d\d)[-/](?P<d>\d\d)[T ]"
        rf"{_CLOCK}(?: ?(?P<zone>Z|[+-]\d\d:?\d\d))?(?!\d)",
        # glog and absl: E1120 07:32:05.123456, or with the year E20261120
        rf"(?<![A-Za-z0-9])[DIWEFC](?P<y>\d{{4}})?(?P<m>\d\d)(?P<d>\d\d) {_CLOCK}",
        # torch writes month and day as one number, so before October it has three digits: [E626 05:14:36.3930
        rf"(?<=\[)[DIWEFC](?P<m>[1-9])(?P<d>\d\d) {_CLOCK}(?=\d* [\w.]+:\d)",
        # logging as the Hugging Face examples set it up, rich: 11/20/2026 07:32:05, 11/20/26 07:32:05
        rf"(?<!\d)(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d{{4}}|\d\d),? {_CLOCK}",
        # syslog: Nov 20 07:32:05
        rf"(?P<month>{'|'.join(_MONTHS)}) {{1,2}}(?P<d>\d{{1,2}}) {_CLOCK}(?: (?P<y>\d{{4}})(?!\d))?",
        # UCX: [1795159925.123456]
        r"\[(?P<epoch>1\d{9})(?:\.(?P<F>\d{1,9}))?\]",
    )
)
# The first form in the line wins. At one place the first of these wins.
_ANY_FORM = re.compile("|".join(f"({re.sub(r'[(][?]P<[^>]+>', '(?:', form.pattern)})" for form in _FORMATS))
_HANDS = re.compile(rb":\d\d:\d\d")  # every form holds this, or begins with `_SECONDS`
_SECONDS = b"[1"
_SECONDS_FORM = form_of(_SECONDS)
# The most frequent form, at the head of the line: nothing in front of it can begin another form.
_USUAL = re.compile(
    rb"(?:[^0-9A-Z]{0,8}|\[(?:rank|default)\d{1,6}\]:? ?\[?)"
    rb"(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d):([0-5]\d)(?:[.,](\d{1,9}))?(?![\d.,]| ?(?:Z|[+-]\d\d:?\d\d))"
)
_C10 = re.compile(r"[DIWEFC]\d{3,4} \d\d:\d\d:\d\d\.\d{9} ")
# torch prints the nanoseconds of its monotonic clock after the second of the wall clock. Its lines report
# trouble, so they count as the last of their second, after the steps that the job still made in it.
_LAST_OF_SECOND = 0.999999
_REACH = 256  # bytes of a line's head that may hold a time, after at most some rank prefixes
_GUESS_WITHIN = 600.0  # seconds between two reads below which the minutes reveal the zone
_QUARTER = 900.0  # zones differ from UTC by multiples of it
_WEST_MOST, _EAST_MOST = -48 * _QUARTER, 56 * _QUARTER


_MINUTE = b"60"


_Printed = tuple[float, float, bool, float]
"""A time as it is printed: its seconds, its resolution, whether it is `fixed`, and how `late` it counts.

The seconds count from 1970 as if its zone were UTC. Fixed: the zone is known. Late: seconds to add where the
time is known only to the second. Each progress line has one, so it is a plain tuple.
"""


def printed_time(
    line: bytes, *, zone: tzinfo = UTC, read_at: float | None = None, form: bytes | None = None
) -> float | None:
    """The time at the head of the line in seconds since 1970, or None. It may be implausible.

    A time without a zone counts as one in `zone`. A time without a year (glog, syslog) counts as the last
    such day before `read_at`, and is None without `read_at`. `form` is that of the line, if it is known.
    """
    printed = _printed(line, read_at, form)
    if printed is None:
        return None
    seconds, _, fixed, late = printed
    return seconds + late - (0.0 if fixed else _offset(zone, seconds))


def line_time(
    line: bytes,
    read_before: float,
    read_at: float,
    zone: tzinfo | None = None,
    form: bytes | None = None,
) -> float:
    """When the line was written, in seconds since 1970.

    It is the printed time if that can lie between the previous and the current read of the file, else
    `read_at`. Both reads are by the node's clock, and `read_before` is 0 for the first. The result may lie
    outside the two reads by the digits that the line cuts off its time.

    `zone` is that of the node, or None if unknown. Then any zone counts that makes the time plausible, if the
    two reads are so close that only one can. `form` is that of the line, if it is known.
    """
    printed = _printed(line, read_at, form)
    if printed is None:
        return read_at
    moment, resolution, fixed, late = printed
    if fixed or (zone is None and read_at - read_before >= _GUESS_WITHIN):
        offsets: tuple[float, ...] = (0.0,)
    elif zone is not None:
        offsets = (_offset(zone, moment),)
    else:
        # The reads are closer than two quarters, so no other quarter than these brings the time between them.
        offsets = _zones_near(math.ceil((moment - read_at) / _QUARTER))
    for offset in offsets:
        seconds = moment - offset
        # A time is cut to its last digit, so the line may be younger by that much. The printed time still
        # counts, not that of the read: `replay` knows no reads and must order lines alike.
        if read_before < seconds + resolution and seconds <= read_at:
            return seconds + late
    return read_at


@lru_cache(maxsize=256)
def _zones_near(quarters: int) -> tuple[float, ...]:
    """The offsets of the zones so many quarters ahead of UTC, or one more or less; the nearest first."""
    offsets = (_QUARTER * near for near in (quarters, quarters - 1, quarters + 1))
    return tuple(offset for offset in offsets if _WEST_MOST <= offset <= _EAST_MOST)


def _offset(zone: tzinfo, seconds: float) -> float:
    if zone is UTC:
        return 0.0
    naive = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    delta = naive.replace(tzinfo=zone).utcoffset()
    return delta.total_seconds() if delta is not None else 0.0


def _printed(line: bytes, read_at: float | None, form: bytes | None) -> _Printed | None:
    """The time that a line prints. Lines of one form, which differ in digits only, print it at one place."""
    hands = _hands(form_of(line[:_REACH]) if form is None or len(form) > LONGEST_FORM else form)
    if hands is None:
        return _read(line, read_at)
    if not hands:
        return None
    start, end, behind, parts, resolution = hands
    second = line[end + 1 : end + 3]
    began = _minute(line[start:end]) if second < _MINUTE else None
    if began is None:
        return _read(line, read_at)
    part = int(line[end + 4 : behind]) / parts if parts else 0.0
    return began + int(second) + part, resolution, False, 0.0


@lru_cache(maxsize=1024)
def _hands(form: bytes) -> tuple[int, int, int, int, float] | tuple[()] | None:
    """Where lines of this form print a time in the usual form: its start, its minute's end, and its end.

    Then come the parts of a second that it counts (0 for none) and its resolution. () if no part of the form
    can be a time, and None if one may stand elsewhere. Each digit of the form is a zero.
    """
    form = form[:_REACH]
    usual = _USUAL.match(form)
    if usual is not None:
        digits = len(usual[3] or b"")
        parts = 10**digits if digits else 0
        return usual.start(1), usual.end(1), usual.end(), parts, 10.0**-digits
    return () if _HANDS.search(form) is None and _SECONDS_FORM not in form else None


@lru_cache(maxsize=256)
def _minute(text: bytes) -> float | None:
    """The beginning of a minute in the usual form. A log prints the same minute in many lines."""
    printed = _read(text + b":00", None)
    return None if printed is None else printed[0]


def _read(line: bytes, read_at: float | None) -> _Printed | None:
    head = line[:_REACH]
    if _HANDS.search(head) is None and _SECONDS not in head:
        return None
    text = head.decode("latin-1")
    found = _ANY_FORM.search(text)
    first = found and found.lastindex and _FORMATS[found.lastindex - 1].match(text, found.start())
    if not first:
        return None
    fields = first.groupdict()
    fraction = fields.get("F") or ""
    part, resolution = (int(fraction) / 10 ** len(fraction) if fraction else 0.0), 10.0 ** -len(fraction)
    if fields.get("epoch"):
        return int(fields["epoch"]) + part, resolution, True, 0.0
    seconds = _calendar(fields, read_at)
    if seconds is None:
        return None
    zone = fields.get("zone")
    if zone and zone != "Z":
        away = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        seconds -= (away if zone[0] == "+" else -away).total_seconds()
    if _C10.match(text, first.start()):
        return seconds, 1.0, False, _LAST_OF_SECOND
    return seconds + part, resolution, bool(zone), 0.0


def _calendar(fields: dict[str, str | None], read_at: float | None) -> float | None:
    name = fields.get("month")
    month = _MONTHS[name] if name else int(fields["m"] or 0)
    days = (month, int(fields["d"] or 0))
    # A leap second repeats the last second of its minute.
    clock = int(fields["H"] or 0) * 3600 + int(fields["M"] or 0) * 60 + min(int(fields["S"] or 0), 59)
    year = fields.get("y")
    if year:
        midnight = _midnight(int(year) + (2000 if len(year) == 2 else 0), *days)
        return None if midnight is None else midnight + clock
    if read_at is None:
        return None
    latest = read_at + 86_400.0  # the node's zone may be ahead of UTC
    this = datetime.fromtimestamp(read_at, UTC).year
    known = (_midnight(y, *days) for y in (this + 1, this, this - 1))
    return next((m + clock for m in known if m is not None and m + clock <= latest), None)


def _midnight(year: int, month: int, day: int) -> float | None:
    try:
        return datetime(year, month, day, tzinfo=UTC).timestamp()
    except ValueError:  # the thirtieth of February: digits that are no date
        return None
