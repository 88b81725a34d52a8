"""What a collector wraps around each line hides no step, no traceback and no failure from a replay."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from unit.agents.conftest import Watch

STEPS = [
    f"step: {n:5d}  loss:  3.2438  grad_norm:  0.9945  memory: 61.22GiB(77.40%)  tps: 7,560"
    for n in range(10, 900, 10)
]
FRAMES = [
    "Traceback (most recent call last):",
    '  File "/toy/train.py", line 9, in <module>',
    "    toys[key]",
]
RAISED = [*FRAMES, "KeyError: 'toy'"]
TIME = "2026-03-02T11:52:40.1Z"

WRAPPED: dict[str, Callable[[str], str]] = {
    "docker": lambda line: json.dumps({"log": line + "\n", "stream": "stderr", "time": TIME}),
    "google": lambda line: json.dumps({"insertId": "a", "textPayload": line, "severity": "ERROR"}),
    "payload": lambda line: json.dumps({"insertId": "a", "jsonPayload": {"message": line}}),
    "fluent": lambda line: json.dumps({"message": line, "stream": "stderr", "@timestamp": TIME}),
    "cloudwatch": lambda line: json.dumps({"timestamp": 1772452381000, "message": line}),
    "logfmt": lambda line: f"level=info ts={TIME} msg={json.dumps(line)}",
    "loki": lambda line: f'{TIME} {{container="toy",pod="toy-0"}} {line}',
    "stern": lambda line: f"toy-worker-0 pytorch {line}",
    "vertex": lambda line: f"ERROR 2026-03-02 11:52:40 +0000 workerpool0-0 {line}",
}


def wrapped(how: str, *lines: str) -> str:
    return "".join(WRAPPED[how](line) + "\n" for line in lines)


@pytest.mark.parametrize("how", WRAPPED)
def test_an_exception_is_found_behind_what_a_collector_writes(watch: Watch, how: str) -> None:
    done = watch(wrapped(how, *STEPS, *RAISED))
    assert (done.verdict.error_type, done.verdict.step) == ("exception", 890)
    assert done.verdict.root_line.endswith("KeyError: 'toy'")
    assert done.verdict.root_line_number == len(STEPS) + len(RAISED)


@pytest.mark.parametrize("how", WRAPPED)
def test_a_job_that_goes_on_is_healthy_behind_what_a_collector_writes(watch: Watch, how: str) -> None:
    done = watch(wrapped(how, *STEPS[:40], *RAISED, *STEPS[40:]))
    assert (done.verdict.state, done.verdict.step) == ("healthy", 890)
    assert watch(wrapped(how, *STEPS, "WARNING: KeyError: 'toy' is skipped")).verdict.state == "healthy"


def test_the_lines_of_one_record_are_a_traceback(watch: Watch) -> None:
    done = watch(wrapped("google", *STEPS, "\n".join(RAISED)))
    assert done.verdict.root_line == "KeyError: 'toy'"
    assert done.verdict.root_line_number == len(STEPS) + 1


def test_a_log_that_ends_within_a_collected_traceback_waits_for_a_person(watch: Watch) -> None:
    done = watch(wrapped("docker", *STEPS, *FRAMES))
    assert (done.verdict.state, done.decision.action) == ("failed", "hold")
    assert done.verdict.root_line == FRAMES[-1]
    assert watch(wrapped("docker", *STEPS)).verdict.state == "healthy"


def test_another_program_behind_the_end_of_a_collected_script_is_no_work(watch: Watch) -> None:
    words = [f"the {first}{second} of the toy is painted" for first in "abcdefgh" for second in "stuvwxyz"]
    assert watch(wrapped("docker", *STEPS, *RAISED, *words)).verdict.state == "failed"


def test_a_warning_of_its_own_logger_is_no_failure(watch: Watch) -> None:
    warned = json.dumps({"severity": "WARNING", "textPayload": "KeyError: 'toy'"})
    assert watch(wrapped("google", *STEPS) + warned + "\n").verdict.state == "healthy"


@pytest.mark.parametrize(
    ("line", "state"),
    [
        (
            "[2026-03-02 11:52:40] [INFO] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate",
            "failed",
        ),
        ("[2026-03-02 11:52:40] [INFO] OutOfMemoryError: CUDA out of memory. Tried to allocate", "unknown"),
        ("[2026-03-02 11:52:40] [INFO] batch 8: CUDA out of memory. Tried to allocate", "unknown"),
    ],
)
def test_only_python_names_the_module_of_an_exception_so_a_wrapper_s_level_is_not_its_own(
    watch: Watch, line: str, state: str
) -> None:
    assert watch(f"{line} 2.50 GiB. GPU 3 has a total capacity of 79.11 GiB\n").verdict.state == state


_TOO_LARGE = [
    *FRAMES,
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB. GPU 0 has 79.10 GiB.",
]
# What loggers of JSON write: python-json-logger, structlog, Elastic's, Google's and loguru's.
LOGGERS: dict[str, Callable[[str, str, str], dict[str, object]]] = {
    "json_logger": lambda level, text, raised: {"levelname": level, "message": text, "exc_info": raised},
    "structlog": lambda level, text, raised: {"exception": raised, "event": text, "level": level.lower()},
    "elastic": lambda level, text, raised: {
        "log.level": level.lower(),
        "message": text,
        "error": {"type": "OutOfMemoryError", "stack_trace": raised},
    },
    "google": lambda level, text, raised: {"severity": level, "message": f"{text}\n{raised}"},
    "loguru": lambda level, text, raised: {
        "text": f"12:00:00 | {level} | toy:main:7 - {text}\n{raised}\n",
        "record": {"level": {"icon": "x", "name": level, "no": 40}, "message": text},
    },
}


@pytest.mark.parametrize("how", LOGGERS)
def test_a_traceback_in_a_record_of_a_logger_is_read_as_its_lines(watch: Watch, how: str) -> None:
    logger, raised = LOGGERS[how], "\n".join(_TOO_LARGE)
    steps = [json.dumps(logger("INFO", f"step {n} loss 2.31", "")) for n in range(1, 9)]
    done = watch("\n".join((*steps, json.dumps(logger("ERROR", "the training ended", raised)))) + "\n")
    assert (done.verdict.error_type, done.verdict.step) == ("oom", 8)
    assert (done.verdict.root_line, done.verdict.root_line_number) == (_TOO_LARGE[-1], 9)


@pytest.mark.parametrize("how", LOGGERS)
def test_a_traceback_that_a_logger_warns_of_ends_nothing(watch: Watch, how: str) -> None:
    logger, raised = LOGGERS[how], "\n".join(_TOO_LARGE)
    lines = [logger("INFO", "step 1 loss 2.31", ""), logger("WARNING", "no plot was drawn", raised)]
    assert watch("".join(json.dumps(line) + "\n" for line in lines)).verdict.state == "healthy"


def test_a_traceback_in_the_results_of_an_evaluation_is_no_failure_of_the_run(watch: Watch) -> None:
    items = [{"task_id": n, "passed": n != 3, "error": "\n".join(RAISED)} for n in range(6)]
    log = "".join(line + "\n" for line in (*STEPS, *map(json.dumps, items)))
    assert watch(log).verdict.state == "healthy"
