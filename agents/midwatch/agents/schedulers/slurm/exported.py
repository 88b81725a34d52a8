"""Which variables sbatch sends along with a job, and how they are handed to it again. Pure.

sbatch takes `--export` from its command line, else from SBATCH_EXPORT, else from the script. ALL, also the
default, sends every variable. NONE and a list send those named and every SLURM_*; SLURM then loads the user's
login environment too, which SLURM_GET_USER_ENV asks for. NIL sends the SLURM_* alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from midwatch.agents.schedulers.slurm.sbatch_argv import Option

FOR_STEPS = "SLURM_EXPORT_ENV"
"""What srun in the script takes for its own `--export`. sbatch sets it where its option is not ALL."""

KEPT_BACK = "MIDWATCH_SENT_"
"""Stands before the name of a variable that sbatch or SLURM would drop or replace. The shim takes it off."""

UMASK = "SLURM_UMASK"
"""sbatch always sends its own umask. A later sbatch must therefore run with the person's."""

JOB_NAME = "SLURM_JOB_NAME"
"""sbatch sets it, and `%x` of an output is its value. Beside an `--export-file` it sets none."""

LEFT_OUT = ("DISPLAY",)
"""sbatch sends them from its environment, but does not take them from an `--export-file`."""
_LOGIN = "SLURM_GET_USER_ENV"
_ALL, _NONE, _NIL = "ALL", "NONE", "NIL"


def export_given(
    options: Sequence[Option], environment: Mapping[str, str], script: Sequence[Option]
) -> str | None:
    """The value of `--export` that sbatch would obey; None if nothing gives one."""
    of_line = [option.value for option in options if option.name == "export"]
    of_script = [option.value for option in script if option.name == "export"]
    for values in (of_line, [environment.get("SBATCH_EXPORT")], of_script):
        if values and values[-1]:
            return values[-1]
    return None


def restricts(export: str | None) -> bool:
    """Whether it keeps variables from the job."""
    return export is not None and export.upper() != _ALL


def with_ours(export: str, names: Iterable[str]) -> str:
    """The same `--export`, with these variables of ours. NIL takes no list beside it, so it stays."""
    if export.upper() == _NIL:
        return export
    return ",".join([*([] if export.upper() == _NONE else [export]), *names])


def sent(environment: Mapping[str, str], export: str | None) -> dict[str, str]:
    """The variables that sbatch sends from this environment."""
    if export is None or not restricts(export):
        return dict(environment)
    ours = {name: value for name, value in environment.items() if name.startswith("SLURM_")}
    steps = {FOR_STEPS: environment.get(FOR_STEPS, export)}
    if export.upper() == _NIL:
        return ours | steps
    found: dict[str, str] = {}
    for word in [] if export.upper() == _NONE else tokens(export):
        name, equals, value = word.partition("=")
        if equals:
            found[name] = value
        elif name.upper() == _ALL:
            found |= environment
        elif name in environment:
            found[name] = environment[name]
    return found | ours | steps | {_LOGIN: "1"}


def tokens(export: str) -> list[str]:
    """The words between its commas. Quotation marks keep a comma; a pair around a whole word goes away."""
    words, start, quotes = [], 0, {"'": False, '"': False}
    for place, letter in enumerate(f"{export},"):
        if letter in quotes:
            quotes[letter] = not quotes[letter]
        elif letter == "," and not any(quotes.values()):
            words.append(_bare(export[start:place]))
            start = place + 1
    rest = export[start:]
    return [word for word in [*words, rest] if word]


def for_file(
    variables: Mapping[str, str], over_slurm: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """The variables under names that sbatch takes from its `--export-file`.

    `over_slurm`: variables that SLURM sets itself, with the values that the job is to see.
    """
    plain = {name: value for name, value in variables.items() if name not in LEFT_OUT}
    kept_back = {name: variables[name] for name in LEFT_OUT if name in variables} | dict(over_slurm)
    return plain | {f"{KEPT_BACK}{name}": value for name, value in kept_back.items()}


def from_file(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables as the job is to see them: the inverse of `for_file`."""
    kept_back = {name: value for name, value in variables.items() if name.startswith(KEPT_BACK)}
    plain = {name: value for name, value in variables.items() if name not in kept_back}
    return plain | {name.removeprefix(KEPT_BACK): value for name, value in kept_back.items()}


def for_steps(variables: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables, so that srun in the script hands on those of these names too."""
    export = variables.get(FOR_STEPS)
    if export is None or not restricts(export):
        return dict(variables)
    return {**variables, FOR_STEPS: with_ours(export, names)}


def _bare(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word
