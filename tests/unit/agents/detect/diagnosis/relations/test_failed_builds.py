"""An extension that one rank could not build: the ranks that waited for it miss it, and say so loudly."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

COMMAND = "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1."
FAILED = "RuntimeError: Error building extension 'toy_adam': [1/2] nvcc -c toys.cu -o toys.cuda.o"


def raised(rank: int, *last: str) -> str:
    lines = [
        "Traceback (most recent call last):",
        '  File "/toy/train.py", line 7, in <module>',
        "    main()",
    ]
    return "".join(f"[rank{rank}]: {line}\n" for line in (*lines, *last))


def missing(name: str) -> str:
    return (
        f"ImportError: /toy/cache/py310/{name}.so: cannot open shared object file: No such file or directory"
    )


BUILD = raised(1, COMMAND) + "\n" + raised(1, FAILED, "ninja: build stopped: subcommand failed.")


@pytest.mark.parametrize("name", ["toy_adam/toy_adam", "toy_adam/toy_adam_v1"])
@pytest.mark.parametrize("first", [True, False])
def test_a_rank_that_misses_what_another_could_not_build_is_no_root(
    watch: Watch, name: str, first: bool
) -> None:
    parts = [raised(0, missing(name)), BUILD]
    done = watch("".join(parts if first else reversed(parts)))
    assert done.verdict.root_line == f"[rank1]: {COMMAND}"
    assert done.decision.action == "stop"


def test_a_library_that_nobody_built_is_the_root_itself(watch: Watch) -> None:
    lost = missing("gears/gears")
    assert watch(raised(0, lost) + BUILD).verdict.root_line == f"[rank0]: {lost}"
    assert watch(raised(0, missing("toy_adam/toy_adam"))).verdict.error_type == "import_error"
