"""Turns a person's sbatch line into ours: held, with our key, after the old job. Pure.

sbatch takes the last of two equal options, and the script ends the options. So our options must stand between
the person's options and the script, and this module must parse the line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from midwatch.agents.schedulers.slurm.text import KEY_PREFIX, NATIVE_ID, TASK_PREFIX
from midwatch.streams.errors import ConfigurationError

# Options without a value, or with an optional one after `=`. Every other long option takes a value.
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

    name: str  # the long name, or the letter where midwatch needs no long name
    value: str | None
    words: tuple[str, ...]


def restart_argv(
    argv: Sequence[str],
    effect_key: str,
    *,
    after: str = "",
    exclude_nodes: str = "",
    uid: str = "",
    export: str = "",
    export_file: str = "",
) -> list[str]:
    """The line that submits the same job again, held, carrying the key.

    It leaves out the first start's dependency, which is fulfilled, and `--wait`, which waits for the job's
    end. Of an array it starts only the task that `after` names. `export_file`: a file or a descriptor
    with all variables of the job, which outweighs every `--export` of the line and the script.

    Raises:
        ConfigurationError: the line is no sbatch line, or submits nothing, or `after` is not a job id.
    """
    if not argv or PurePath(argv[0]).name != "sbatch":
        raise ConfigurationError(
            f"a job on SLURM is started by sbatch, not by {argv[0] if argv else 'nothing'!r}",
            remedy="start it with `midwatch run -- sbatch ...`",
        )
    options, rest = split(argv[1:])
    if any(option.name in ("test-only", "help", "usage", "version") for option in options):
        raise ConfigurationError("this sbatch line submits nothing", where=" ".join(argv))
    given = {option.name: option.value for option in options}
    task = after.partition("_")[2]
    dropped = (_REPLACED if after else _REPLACED - {"dependency"}) | ({"array"} if task else set())
    kept = [word for option in options if option.name not in dropped for word in option.words]
    mark = TASK_PREFIX + task if task else ""
    comment = " ".join(filter(None, [KEY_PREFIX + effect_key, mark, given.get("comment")]))
    ours = ["--parsable", "--hold", f"--comment={comment}"]
    if "open-mode" not in given:
        ours.append("--open-mode=append")  # a fixed --output must not wipe the evidence of the last attempt
    if after:
        if not NATIVE_ID.fullmatch(after):
            raise ConfigurationError(f"{after!r} is not a SLURM job id")
        ours.append(f"--dependency=afterany:{after}")
    if task:
        ours.append(f"--array={task}")
    if exclude_nodes:
        ours.append(f"--exclude={','.join(filter(None, [given.get('exclude'), exclude_nodes]))}")
    if uid:
        ours.append(f"--uid={uid}")
    if export:
        ours.append(f"--export={export}")
    if export_file:
        ours += [f"--export-file={export_file}", "--export=ALL"]
    return [argv[0], *kept, *ours, *rest]


def split(words: Sequence[str]) -> tuple[list[Option], list[str]]:
    """The options, and the words after them: the script with its arguments."""
    options: list[Option] = []
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in ("-", "--"):
        word, after = words[index], words[index + 1 : index + 2]
        options_of_word = [_long(word, after)] if word.startswith("--") else _short(word, after)
        options += options_of_word
        index += 1 + (options_of_word[-1].words[1:] != ())
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
    options_of_word: list[Option] = []
    for place, letter in enumerate(word[1:], 1):
        name, glued = _SHORT_NAMES.get(letter, letter), word[place + 1 :]
        if letter in _SHORT_FLAGS:
            options_of_word.append(Option(name, None, (f"-{letter}",)))
            continue
        if glued:
            options_of_word.append(Option(name, glued.removeprefix("="), (f"-{letter}{glued}",)))
        else:
            options_of_word.append(Option(name, after[0] if after else None, (f"-{letter}", *after)))
        break
    return options_of_word
