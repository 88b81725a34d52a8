"""A person's sbatch line, made into ours: held, with our key, after the old job. Pure.

sbatch takes the last of two equal options and ends options at the script, so ours must stand between the
person's options and the script: the line has to be understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from midwatch.agents.schedulers.slurm.text import KEY_PREFIX, NATIVE_ID
from midwatch.streams.errors import ConfigurationError

# Options without a value (an optional one is only taken with `=`); every other long option takes one.
_FLAGS = frozenset(
    {
        "contiguous",
        "exclusive",
        "get-user-env",
        "help",
        "hold",
        "ignore-pbs",
        "nice",
        "no-kill",
        "no-requeue",
        "requeue",
        "overcommit",
        "oversubscribe",
        "share",
        "parsable",
        "propagate",
        "quiet",
        "reboot",
        "spread-job",
        "stepmgr",
        "test-only",
        "usage",
        "use-min-nodes",
        "verbose",
        "version",
        "wait",
    }
)
_SHORT_FLAGS = frozenset("hHkKOQsvVW")
_SHORT_NAMES = {"a": "array", "d": "dependency", "H": "hold", "Q": "quiet", "W": "wait", "x": "exclude"}
_REPLACED = frozenset({"comment", "dependency", "hold", "parsable", "quiet", "wait"})


@dataclass(frozen=True, slots=True)
class Option:
    """One option as the person wrote it."""

    name: str  # long name, or the letter where it has no meaning for us
    value: str | None
    words: tuple[str, ...]


def restart_argv(
    argv: Sequence[str], effect_key: str, *, after: str = "", exclude_nodes: str = "", uid: str = ""
) -> list[str]:
    """The line that submits the same job again, held, carrying the key.

    A dependency of the first start was fulfilled by it and is left out, `--wait` would wait for the job's
    end, and of an array only the task that `after` names is started again.

    Raises:
        ConfigurationError: the line is no sbatch line, or one that submits nothing.
    """
    if not argv or PurePath(argv[0]).name != "sbatch":
        raise ConfigurationError(
            f"a job on SLURM is started by sbatch, not by {argv[0] if argv else 'nothing'!r}",
            remedy="start it with `midwatch run -- sbatch ...`",
        )
    options, rest = split(argv[1:])
    if any(option.name in ("test-only", "help", "usage", "version") for option in options):
        raise ConfigurationError("this sbatch line submits nothing", where=" ".join(argv))
    theirs = {option.name: option.value for option in options}
    task = after.partition("_")[2]
    dropped = (_REPLACED if after else _REPLACED - {"dependency"}) | ({"array"} if task else set())
    kept = [word for option in options if option.name not in dropped for word in option.words]
    comment = " ".join(filter(None, [KEY_PREFIX + effect_key, theirs.get("comment")]))
    ours = ["--parsable", "--hold", f"--comment={comment}"]
    if "open-mode" not in theirs:
        ours.append("--open-mode=append")  # a fixed --output must not wipe the evidence of the last attempt
    if after:
        if not NATIVE_ID.fullmatch(after):
            raise ConfigurationError(f"{after!r} is no job of SLURM")
        ours.append(f"--dependency=afterany:{after}")
    if task:
        ours.append(f"--array={task}")
    if exclude_nodes:
        ours.append(f"--exclude={','.join(filter(None, [theirs.get('exclude'), exclude_nodes]))}")
    if uid:
        ours.append(f"--uid={uid}")
    return [argv[0], *kept, *ours, *rest]


def split(words: Sequence[str]) -> tuple[list[Option], list[str]]:
    """Options, and what follows them: the script with its arguments."""
    options: list[Option] = []
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in ("-", "--"):
        word, after = words[index], words[index + 1 : index + 2]
        found = [_long(word, after)] if word.startswith("--") else _short(word, after)
        options += found
        index += 1 + (found[-1].words[1:] != ())
    return options, list(words[index:])


def _long(word: str, after: Sequence[str]) -> Option:
    name, equals, value = word[2:].partition("=")
    if equals:
        return Option(name, value, (word,))
    if name in _FLAGS or not after:
        return Option(name, None, (word,))
    return Option(name, after[0], (word, after[0]))


def _short(word: str, after: Sequence[str]) -> list[Option]:
    """The options of one word: `-Hv` is two flags, `-HN2` and `-HN 2` a flag and an option with a value."""
    found: list[Option] = []
    for place, letter in enumerate(word[1:], 1):
        name, glued = _SHORT_NAMES.get(letter, letter), word[place + 1 :]
        if letter in _SHORT_FLAGS:
            found.append(Option(name, None, (f"-{letter}",)))
            continue
        if glued:
            found.append(Option(name, glued.removeprefix("="), (f"-{letter}{glued}",)))
        else:
            found.append(Option(name, after[0] if after else None, (f"-{letter}", *after)))
        break
    return found
