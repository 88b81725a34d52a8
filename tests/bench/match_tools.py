"""Other people's programs that look for the same rules, each as a process of its own, where it is installed.

Each gets a stated sample, on one core; what it takes to start, measured on a single line, is taken off. None
of them tells which groups matched what, and ripgrep and grep not even which rule: they have less to do.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from midwatch.rules.model import Rule

_RIPGREP = ("rg", "-j1", "-a", "--no-unicode", "--no-mmap", "-c")
_LIMIT = 300.0
_LONGEST_OF_MTAIL = 1024
"""Bytes of a pattern; it refuses a longer one, and with it all others."""
_TURNS = 2
_IN_ERE = {"d": "[0-9]", "D": "[^0-9]", "s": "[[:space:]]", "S": "[^[:space:]]"}
_IN_BRACKETS = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]"}


@dataclass(frozen=True, slots=True)
class ToolSpeed:
    """Megabytes a second of one core's time, on how many megabytes."""

    speed: float
    megabytes: float


def measure_tools(text: bytes, rules: Sequence[Rule], megabytes: dict[str, float]) -> dict[str, ToolSpeed]:
    """The speed of every installed tool on the text's first megabytes, by its name."""
    found: dict[str, ToolSpeed] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for tool, (program, command) in _TOOLS.items():
            if which(program) is None:
                continue
            size = text.rfind(b"\n", 0, int(megabytes[tool] * 1e6)) + 1
            spent: list[float] = []
            for part in (text[:size], b"x\n"):
                (folder / "log").write_bytes(part)
                runs = [_cpu_seconds(command(folder, rules), _GOOD[tool]) for _ in range(_TURNS)]
                if any(seconds is None for seconds in runs):
                    break
                spent.append(min(seconds for seconds in runs if seconds is not None))
            else:
                found[tool] = ToolSpeed(size / 1e6 / max(spent[0] - spent[1], 1e-3), size / 1e6)
    return found


def tool_versions() -> dict[str, str]:
    """The first line of what each installed tool says of itself."""
    return {
        tool: subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False
        ).stdout.split("\n", 1)[0]
        for tool, (program, _) in _TOOLS.items()
        if which(program)
    }


def _cpu_seconds(command: Sequence[str], good: Sequence[int]) -> float | None:
    """None if it did not end in time, or not well."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            check=False,
            timeout=_LIMIT,
            env={**os.environ, "GOMAXPROCS": "1", "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return spent if done.returncode in good else None


def _mtail(folder: Path, rules: Sequence[Rule]) -> list[str]:
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    patterns = ((rule.name, _nameless(rule.pattern).replace("/", r"\/")) for rule in rules)
    counters = "".join(
        f'/{pattern}/ {{\n  hits["{name}"]++\n}}\n'
        for name, pattern in patterns
        if len(pattern) <= _LONGEST_OF_MTAIL
    )
    (programs / "rules.mtail").write_text("counter hits by rule\n" + counters)
    return ["mtail", "--one_shot", "--progs", str(programs), "--logs", str(folder / "log")]


def _ripgrep(folder: Path, rules: Sequence[Rule]) -> list[str]:
    (folder / "rust").write_text("\n".join(_nameless(rule.pattern) for rule in rules) + "\n")
    limits = ["--dfa-size-limit", "1G", "--regex-size-limit", "1G"]
    return [*_RIPGREP, *limits, "-f", f"{folder}/rust", f"{folder}/log"]


def _grep(folder: Path, rules: Sequence[Rule]) -> list[str]:
    (folder / "posix").write_text("\n".join(_posix(rule.pattern) for rule in rules) + "\n")
    return ["grep", "-a", "-c", "-E", "-f", str(folder / "posix"), str(folder / "log")]


def _nameless(pattern: str) -> str:
    return re.sub(r"\(\?P?<\w+>", "(?:", pattern)


def _posix(pattern: str) -> str:
    """The pattern in POSIX's extended syntax; greediness, which a count does not see, is lost."""

    def rewritten(match: re.Match[str]) -> str:
        text = match[0]
        if text.startswith("["):
            inner = re.sub(r"\\([dws])", lambda known: _IN_BRACKETS[known[1]], text)
            return re.sub(r"\\(.)", r"\1", inner)
        if text.startswith("(?"):
            return "("
        if text[0] == "\\":
            return _IN_ERE.get(text[1], text)
        return text[0]

    return re.sub(r"\[\^?\]?(?:\\.|[^]\\])*\]|\(\?(?::|P?<\w+>)|\\.|[*+?}]\?", rewritten, pattern)


_TOOLS: dict[str, tuple[str, Callable[[Path, Sequence[Rule]], list[str]]]] = {
    "mtail, counting by rule": ("mtail", _mtail),
    "ripgrep, counting lines": ("rg", _ripgrep),
    "grep -E, counting lines": ("grep", _grep),
}
_GOOD = {
    "mtail, counting by rule": (0,),
    "ripgrep, counting lines": (0, 1),  # 1: no line was found
    "grep -E, counting lines": (0, 1),
}
SAMPLES = {
    "mtail, counting by rule": 0.2,
    "ripgrep, counting lines": 8.0,
    "grep -E, counting lines": 4.0,
}
"""Megabytes that each is given: they are slow."""
