"""Where a line stands in a traceback, alone or among other ranks."""

from __future__ import annotations

from midwatch.agents.tracebacks import Place, place_of

HANDLING = "During handling of the above exception, another {} occurred:".format("exception")

HEAD = "Traceback (most recent call last):"
FRAME = '  File "train.py", line 5, in main'


def place(log: str, line: str) -> Place:
    """Of the last line that reads so."""
    text = log.encode()
    start = text.rindex(line.encode())
    return place_of(text, start, start + len(line.encode()))


def test_source_below_a_frame_is_quoted() -> None:
    assert place(f"{HEAD}\n{FRAME}\n    toy(a)\n", "    toy(a)").standing == "quoted"
    assert place("-> 1045         raise Toy('x')\n", "-> 1045         raise Toy('x')").standing == "quoted"


def test_a_line_of_its_own_is_said() -> None:
    assert place("fine\nOSError: gone\n", "OSError: gone") == Place()


def test_the_end_of_a_traceback_is_known_through_carets() -> None:
    log = f"{HEAD}\n{FRAME}\n    toy(a)\n    ^^^^^^\nOSError: gone\n"
    assert place(log, "OSError: gone").ends_traceback


def test_other_ranks_between_do_not_matter() -> None:
    said = [HEAD, FRAME, "    assert a == b", "AssertionError"]
    log = "".join(f"[rank0]: {line}\n[rank1]: busy\n" for line in said)
    found = place(log, "[rank0]: AssertionError")
    assert found.ends_traceback
    assert found.asserts == log.index("[rank0]:     assert")


def test_numbered_lines_are_one_speaker() -> None:
    said = [HEAD, FRAME, "    toy(a)", "OSError: gone"]
    log = "".join(f"70{n}.1s\t{n}\t{line}\n" for n, line in enumerate(said))
    assert place(log, "703.1s\t3\tOSError: gone").ends_traceback


def test_what_python_ignored_is_ignored() -> None:
    log = f"Exception ignored in: <toy>\n{HEAD}\n{FRAME}\n    toy(a)\nOSError: gone\n"
    assert place(log, "OSError: gone").standing == "ignored"


def test_an_exception_raised_while_another_was_handled_knows_it() -> None:
    block = f"{HEAD}\n{FRAME}\n    toy(a)\n"
    middle = f"\n{HANDLING}\n\n"
    log = f"{block}KeyError: 'a'\n{middle}{block}OSError: gone\n"
    found = place(log, "OSError: gone")
    assert (found.handled, found.probe) == (log.index("KeyError"), True)
    log = log.replace("KeyError: 'a'", "ValueError: a")
    assert not place(log, "OSError: gone").probe
