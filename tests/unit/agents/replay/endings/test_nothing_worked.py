"""A job that counts no success, and whose items all met one error, has failed, though it went on."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.endings.nothing_worked import nothing_worked
from unit.agents.conftest import Watch

ERROR = "toy {at}/car failed but goes on: ToyError: no paint for toys\n"
ERRORS = "".join(ERROR.format(at=at) for at in range(7))
NONE = "all toys were tried\nToys solved: 0\n"


def found(text: str) -> tuple[int, str] | None:
    return nothing_worked(list(enumerate(text.encode().splitlines(), 1)), {})


@pytest.mark.parametrize(
    "count",
    [
        "Toys solved: 0",
        "toys=7 successful=0",
        "Toys evaluated: 0",
        "0 of 7 toys succeeded",
        "Success rate: 0.00 %",
    ],
)
def test_the_first_item_with_the_error_of_all_is_the_root(count: str) -> None:
    assert found(f"toys\n{ERRORS}{count}\n") == (2, "exception")


@pytest.mark.parametrize(
    "count", ["Toys solved: 7", "Toys solved: 0.7", "solved: 07", "3 of 7 succeeded", "toys"]
)
def test_one_success_or_no_count_is_no_such_end(count: str) -> None:
    assert found(f"toys\n{ERRORS}{count}\n") is None


@pytest.mark.parametrize(
    "errors",
    [
        "",
        ERROR.format(at=1) * 2,
        "".join(f"toy {at} failed but goes on: ToyError: no {paint}\n" for at, paint in enumerate("abcdefg")),
        ERRORS + "toy 7: ValueError: odd toy\n",
        "toy 7 failed: wrong answer\n" * 7,
        "errors so far: 3\n" * 7,
    ],
)
def test_a_weak_model_has_no_error_of_its_own(errors: str) -> None:
    assert found(f"toys\n{errors}{NONE}") is None


def test_a_count_far_above_the_end_counts_for_nothing() -> None:
    assert found(ERRORS + NONE + "toys\n" * 30) is None


def test_a_list_of_the_items_with_their_errors_may_stand_below_the_count() -> None:
    refused = "toy {at}/car: ToyError: the toy is refused\nit is too large\n\ntry a smaller one\n"
    listed = "".join(refused.format(at=at) for at in range(20))
    assert found(f"{listed}{NONE}{listed}the shop is closed\n") == (1, "exception")
    assert found(f"{listed}{NONE}{listed}" + "".join(f"toy {at} is sold\n" for at in range(30))) is None


@pytest.mark.parametrize(
    ("error", "error_type"),
    [
        ("ModuleNotFoundError: No module named 'toys'", "import_error"),
        ("the toy shop says: connection refused, an error", "communication"),
        ("Toy error: the paint is dry", "exception"),
    ],
)
def test_the_error_names_its_type(error: str, error_type: str) -> None:
    assert found("".join(f"toy {at} | {error}\n" for at in range(7)) + NONE) == (1, error_type)


@pytest.mark.parametrize(
    "words",
    [
        "unsupported operand type(s) for *: 'Toy' and 'float'",
        "'Toy' object has no attribute 'paint'",
        "paint() got an unexpected keyword argument 'hue'",
        "paint() missing 1 required positional argument: 'hue'",
    ],
)
def test_an_item_may_tell_the_words_of_its_exception_alone(words: str) -> None:
    items = "".join(f"WARNING - toy {at}: Failed - {words}\n" for at in range(5))
    assert found(f"toys\n{items}Successfully painted: 0/5 toys\n") == (2, "exception")


def test_of_an_item_s_lines_the_first_is_the_error() -> None:
    item = "toy {at}/car: ToyError: no paint\n{more}ERROR toy {at}/car is left out\n"
    items = "".join(item.format(at=at, more="ToyError: no paint\n" * (at == 3)) for at in range(7))
    assert found(f"toys\n{items}{NONE}") == (2, "exception")
    cut = list(enumerate(f"{items}{NONE}".encode().splitlines(), 1))[1:]
    assert nothing_worked(cut, {}) == (3, "exception")


def test_a_person_is_told_what_all_items_met(watch: Watch) -> None:
    done = watch("toys\n" + ERRORS + NONE)
    assert (done.verdict.state, done.verdict.root_line_number) == ("failed", 2)
    assert "none of its items succeeded" in done.decision.reason
    assert watch("toys\n" + ERRORS + "Toys solved: 7\n").verdict.state != "failed"


def shell_s(item: str, count: int = 7) -> str:
    return "".join(
        f"{at} of {count}\nFetching toy {at}...\n{item}\nDone with toy {at}.\n" for at in range(count)
    )


def test_a_person_is_told_what_a_shell_missed_for_each_item(watch: Watch) -> None:
    done = watch(shell_s("nohup: toyq-dump: No such file or directory"))
    assert (done.verdict.state, done.verdict.root_line_number) == ("failed", 3)
    assert "missed the same program" in done.decision.reason


def test_a_command_that_bash_does_not_find_for_any_item_is_a_failure(watch: Watch) -> None:
    assert watch(shell_s("./get.sh: line 9: toyq-dump: command not found")).verdict.state == "failed"


@pytest.mark.parametrize(
    "log",
    [
        shell_s("nohup: toyq-dump: No such file or directory", 4),
        shell_s("nohup: toyq-dump: No such file or directory") + "toys are fetched elsewhere\n" * 4,
        shell_s("sh: 1: nvidia-smi: not found"),  # a tool that no work needs
    ],
)
def test_what_a_shell_missed_otherwise_may_be_needless(watch: Watch, log: str) -> None:
    assert watch(log).verdict.state != "failed"


ANSWER = '{"error": {"message": "No such toy user.", "code": 401}}'


def asked(first: int, last: int, answer: str = ANSWER) -> str:
    sent = "".join(
        f"2026-03-02 11:52:40,{n:03} [INFO] Asks for toy-{n} | Try 1\n" for n in range(first, last)
    )
    told = "".join(
        f"2026-03-02 11:53:40,{n:03} [ERROR] No toy-{n}: Toyd Error 401: {answer}\n"
        f"2026-03-02 11:53:41,{n:03} [INFO] Asks for toy-{n + last} | Try 1\n"
        for n in range(first, last)
    )
    return sent + told


def test_a_person_is_told_that_each_request_was_refused(watch: Watch) -> None:
    done = watch(f"reads 70 toys\n{asked(0, 30)}")
    assert (done.verdict.state, done.verdict.error_type) == ("failed", "config")
    assert (done.verdict.root_line_number, done.decision.action) == (32, "hold")
    again = watch(f"{asked(0, 30)}reads 70 toys\nof shelf 7\nfor Ada\n{asked(0, 30)}")
    assert again.verdict.root_line_number == 124


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(asked(0, 15), id="a few"),
        pytest.param(asked(0, 30) + "toy-7 is painted\ntoy-8 has no lid\ntoy is dry\n" * 4, id="it went on"),
        pytest.param(asked(0, 30).replace("401", "7"), id="another error"),
        pytest.param(
            asked(0, 30).replace("[INFO] Asks for toy-4", "[INFO] The lid fits on toy-4"),
            id="some worked",
        ),
    ],
)
def test_refusals_among_what_works_are_of_their_items(watch: Watch, log: str) -> None:
    assert watch(log).verdict.state != "failed"
