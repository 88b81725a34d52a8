"""All tests, and each that failed once more, alone: `python -m house.second_try ROOT COMMAND...`.

Some tests fail only where much else runs beside them. If all that failed pass alone, the run is green, and
its last lines name them with their first causes. Nothing is played again where more than a test went wrong.
Tests of a file that never began for one cause share what could not be set up: they are one failure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from house import failures
from house.failures import Run

MOST = 3
"""Failures that are played again. Failures of chance come one at a time; many at once share a cause."""


def main(arguments: list[str]) -> int:
    """0 if all passed, at the latest when played alone; else 1. COMMAND runs pytest, in ROOT."""
    root, command = Path(arguments[0]), arguments[1:]
    with tempfile.TemporaryDirectory(prefix="second-try-") as folder:
        file = Path(folder) / "first.json"
        code = subprocess.run(command, cwd=root, env=_noting(file), check=False).returncode
        if code == 0:
            return 0
        first = failures.read(file)
        if why := reason_against(first):
            return _end(1, "The run is red, and no test was played again:", why)
        assert first is not None
        again: dict[str, str] = {}
        for tests in together(first):
            again |= _alone(tests, root, Path(folder) / "again.json")
    return _end(*judged(first.failed, again))


def reason_against(run: Run | None) -> list[str]:
    """Why a second try would show nothing; empty if the tests that failed are all that went wrong."""
    if run is None:
        return ["the run of the tests died, or never began"]
    if run.broken:
        return run.broken
    if run.exit_code != 1:  # pytest's own code for failed tests, and for nothing else
        return [f"pytest ended with exit code {run.exit_code}"]
    if not run.failed:
        return ["it failed, and no test did"]
    if (count := len(together(run))) > MOST:
        return [f"{count} tests failed, and more than {MOST} are no chance"]
    return []


def together(run: Run) -> list[list[str]]:
    """The failed tests, each by itself but for those of a file that one cause kept from beginning."""
    unready, found = set(run.unready), dict[tuple[str, ...], list[str]]()
    for test, cause in run.failed.items():
        key = (test.partition("::")[0], cause) if test in unready else (test,)
        found.setdefault(key, []).append(test)
    return list(found.values())


def judged(first: Mapping[str, str], again: Mapping[str, str]) -> tuple[int, str, list[str]]:
    """Exit code, headline and lines; `again` has an empty cause for a test that passed alone."""
    lasting = {test: cause for test, cause in again.items() if cause}
    lines: list[str] = []
    for test, cause in first.items():
        lines += [test, f"    failed first: {cause}"]
        lines += [f"    failed again, alone: {lasting[test]}" if test in lasting else "    held alone"]
    if lasting:
        return 1, f"The run is red: {len(lasting)} of {len(first)} failed again when played alone.", lines
    return 0, "The run is green, but what held only alone is to be mended before anything else:", lines


def _alone(tests: Sequence[str], root: Path, file: Path) -> dict[str, str]:
    """The cause for which each failed in a process of their own; empty if it passed. A skip is no pass."""
    file.unlink(missing_ok=True)
    command = [str(Path(sys.executable).with_name("pytest")), *tests]
    print(*(f"Once more, alone: {test}" for test in tests), sep="\n", flush=True)
    done = subprocess.run(
        command, cwd=root, env=_noting(file), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    run = failures.read(file)
    if run is not None and run.exit_code == 0 and run.passed == len(tests):
        return dict.fromkeys(tests, "")
    print(*(f"  | {line}" for line in done.stdout.decode(errors="replace").splitlines()), sep="\n")
    if run is None:
        return dict.fromkeys(tests, f"pytest died with exit code {done.returncode}")
    why = next(iter([*run.failed.values(), *run.broken]), "it did not run to its end")
    return {test: run.failed.get(test, why) for test in tests}


def _noting(file: Path) -> dict[str, str]:
    return os.environ | {failures.PLACE: str(file)}


def _end(code: int, headline: str, lines: Sequence[str]) -> int:
    print(f"\n{headline}", *(f"  {line}" for line in lines), sep="\n", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
