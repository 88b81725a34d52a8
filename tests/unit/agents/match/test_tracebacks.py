"""Where a line stands in a traceback, alone or among other ranks."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.match.tracebacks import TracebackPlace, place_of

HANDLING = "During handling of the above exception, another {} occurred:".format("exception")

HEAD = "Traceback (most recent call last):"
FRAME = '  File "train.py", line 5, in main'


def place(log: str, line: str) -> TracebackPlace:
    """Of the last line that reads so."""
    text = log.encode()
    start = text.rindex(line.encode())
    return place_of(text, start, start + len(line.encode()))


def test_source_below_a_frame_is_quoted() -> None:
    assert place(f"{HEAD}\n{FRAME}\n    toy(a)\n", "    toy(a)").kind == "quoted"
    assert place("-> 1045         raise Toy('x')\n", "-> 1045         raise Toy('x')").kind == "quoted"


def test_an_exception_whose_words_are_the_traceback_of_another_quotes_it() -> None:
    outer = f"ImportError: {HEAD}"
    log = f"{HEAD}\n{FRAME}\n    raise ImportError(msg)\n{outer}\n{FRAME}\n    import toys\n"
    assert place(f"{log}ImportError: libtoys.so.7: gone\n", outer).kind == "quoted"
    assert place(f"{log}ImportError: libtoys.so.7: gone\n", "ImportError: lib").kind == "reported"
    assert place(log, outer).kind == "reported"


@pytest.mark.parametrize(
    "prefix",
    ["[rank0]: ", "(EngineCore pid=77) ERROR 03-02 11:52:40 [core.py:7] ", "3: ", "[1,0]<stderr>:", "n4: "],
)
def test_source_below_a_frame_is_quoted_behind_any_prefix(prefix: str) -> None:
    statement = ["    raise ToyError(", '        "CUDA out of memory"', "    )"]
    log = "".join(f"{prefix}{line}\n" for line in [HEAD, FRAME, *statement, "ToyError: gone"])
    for line in statement:
        assert place(log, f"{prefix}{line}").kind == "quoted"
    assert place(log, f"{prefix}ToyError: gone").kind == "reported"


@pytest.mark.parametrize("indent", ["    ", "        ", "\t\t\t\t\t"])
def test_what_ends_a_traceback_that_is_itself_indented_is_reported(indent: str) -> None:
    """A thread may hold a log as an indented block. Source stands deeper than its frame there, too."""
    log = "".join(f"{indent}{line}\n" for line in [HEAD, FRAME, "    toy(a)", "ToyError: gone"])
    assert place(log, f"{indent}ToyError: gone").kind == "reported"
    assert place(log, f"{indent}    toy(a)").kind == "quoted"


def test_an_indented_line_of_another_writer_is_no_source() -> None:
    log = f"[rank0]: {HEAD}\n[rank0]: {FRAME}\npyxis:     mkdir: no toy\n"
    assert place(log, "pyxis:     mkdir: no toy").kind == "reported"


def test_what_stands_below_a_place_in_c_is_said() -> None:
    log = '  File "H5FDsec2.c", line 9, in H5FD_sec2_lock\n    unable to lock file, errno = 11\n'
    assert place(log, "    unable to lock file, errno = 11").kind == "reported"


def test_a_line_of_its_own_is_said() -> None:
    assert place("fine\nOSError: gone\n", "OSError: gone") == TracebackPlace()


def test_an_exception_ends_a_thread_where_the_outermost_frame_is_of_threading() -> None:
    outer = '  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner'
    assert place(f"{HEAD}\n{outer}\n{FRAME}\nOSError: gone\n", "OSError: gone").thread
    assert not place(f"{HEAD}\n{FRAME}\n{outer}\nOSError: gone\n", "OSError: gone").thread


@pytest.mark.parametrize(
    ("lead", "kind"),
    [
        ("2026-03-02 11:00:00,000 INFO [retry.py:9] Retry attempt failed:", "ignored"),
        ("2026-03-02 11:00:00,000 ERROR [retry.py:9] Retry attempt failed:", "reported"),
        ("2026-03-02 11:00:00,000 INFO [retry.py:9] Last attempt:", "reported"),
    ],
)
def test_what_a_client_logs_before_it_tries_again_is_ignored(lead: str, kind: str) -> None:
    assert place(f"{lead}\nOSError: gone\n", "OSError: gone").kind == kind


def test_bitsandbytes_logs_that_it_has_no_library_and_goes_on() -> None:
    lead = "Could not load bitsandbytes native library: the toy is gone"
    log = f"{lead}\n{HEAD}\n{FRAME}\nOSError: the toy is gone\n"
    assert place(log, "OSError: the toy is gone").kind == "ignored"


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
    log = f"Error in atexit._run_exitfuncs:\n{HEAD}\n{FRAME}\n    toy(a)\nOSError: gone\n"
    assert place(log, "OSError: gone").kind == "ignored"
    log = f"Exception ignored in: <toy>\n{HEAD}\n{FRAME}\n    toy(a)\nOSError: gone\n"
    assert place(log, "OSError: gone").kind == "ignored"
    assert place("Error in atexit._run_exitfuncs:\nOSError: gone\n", "OSError: gone").kind == "ignored"
    later = "Error in atexit._run_exitfuncs:\nOSError: gone\nOSError: no toy\n"
    assert place(later, "OSError: no toy").kind == "reported"


@pytest.mark.parametrize(
    "lead",
    [
        "[W 2026-03-02 11:52:40,118] Trial 3 failed with parameters: {'toys': 7} because of the following "
        "error: ValueError('no toy').",
        "[W 2026-03-02 11:52:40,118] Trial 3 failed because of the following error: ValueError('no toy')",
    ],
)
def test_a_trial_that_a_study_counts_as_failed_ends_nothing(lead: str) -> None:
    log = f"{lead}\n{HEAD}\n{FRAME}\n    toy(a)\nValueError: no toy"
    more = "\n[W 2026-03-02 11:52:40,118] Trial 3 failed with value None.\n"
    assert place(log + more, "ValueError: no toy").kind == "ignored"
    raised = f"{more}{HEAD}\n{FRAME}\n    toy(a)\nValueError: no toy at all\n"
    assert place(log + raised, "ValueError: no toy at all").kind == "reported"
    assert place(log, "ValueError: no toy").kind == "reported"


@pytest.mark.parametrize("footer", ["  FitFailedWarning)", "  warnings.warn(toy_message, FitFailedWarning)"])
def test_a_fit_that_a_search_counts_as_failed_ends_nothing(footer: str) -> None:
    log = f"Estimator fit failed. Details:\n{HEAD}\n{FRAME}\n    toy(a)\nValueError: no toy\n\n"
    assert place(f"{log}{footer}\n", "ValueError: no toy").kind == "ignored"
    assert place(f"{log}the search ends with FitFailedWarning\n", "ValueError: no toy").kind == "reported"


def test_a_record_that_the_logging_of_python_2_could_not_write_ends_nothing() -> None:
    log = f"{HEAD}\n{FRAME}\n    self.stream.flush()\nIOError: [Errno 116] gone\n"
    assert place(f"{log}Logged from file toy.py, line 9\n", "IOError: [Errno 116] gone").kind == "ignored"
    assert place(f"{log}Logged out of the toy\n", "IOError: [Errno 116] gone").kind == "reported"


def test_each_fit_that_a_search_counts_as_failed_ends_nothing() -> None:
    fit = (
        f"2 fits failed with the following error:\n{HEAD}\n{FRAME}\n    toy(a)\nValueError: no {{}}\n\n---\n"
    )
    log = fit.format("toy") + fit.format("wheel")
    assert place(f"{log}  warnings.warn(toys, FitFailedWarning)\n", "ValueError: no toy").kind == "ignored"
    assert place(f"{log}All the 4 fits failed.\n", "ValueError: no toy").kind == "reported"


def test_a_plugin_that_jax_goes_on_without_ends_nothing() -> None:
    chain = (
        f"{HEAD}\n{FRAME}\n    toy(a)\nRuntimeError: no toy\n\n"
        f"The above exception was the direct cause of the following exception:\n\n"
        f"{HEAD}\n{FRAME}\n    toy(b)\nRuntimeError: toys are not installed\n"
    )
    lead = "ERROR:2026-03-02 11:52:40,118:jax:9: Jax plugin configuration error: Exception when calling toy\n"
    for last in ("RuntimeError: no toy", "RuntimeError: toys are not installed"):
        assert place(f"{lead}{chain}", last).kind == "ignored"
        assert place(chain, last).kind == "reported"
        assert place(f"{lead}the toys begin\n{chain}", last).kind == "reported"


@pytest.mark.parametrize(
    "lead",
    [
        "Failed to send resource request for train-9f. If this only happens on a busy node, ignore it.",
        "Failed to stop PlacementGroupCleaner gracefully.",
        "WARNING: C++ module could not be loaded. Janitor running in python mode",
    ],
)
def test_what_ray_train_s_controller_goes_on_behind_ends_nothing(lead: str) -> None:
    last = "GetTimeoutError: Get timed out: toys not ready."
    told = f"{FRAME}\n    toy.get(a)\n{last}\n"
    for header in ("", f"{HEAD}\n"):  # Ray leaves out one that it repeats
        assert place(f"{lead}\n{header}{told}", last).kind == "ignored"
    assert place(f"the toy failed\n{HEAD}\n{told}", last).kind == "reported"


def test_an_agent_s_tool_that_failed_is_an_answer_to_the_model() -> None:
    told = f"{HEAD}\n{FRAME}\n    toy(a)\nKeyError: 'abacus'\n"
    tool = f"ERROR:2026-03-02 11:52:40,118:Error when executing tool: 'abacus'\n{told}"
    assert place(tool, "KeyError: 'abacus'").kind == "ignored"
    assert place(
        f"ERROR:2026-03-02 11:52:40,118:the toy failed: 'abacus'\n{told}", "KeyError: 'abacus'"
    ).kind == ("reported")


def test_a_process_that_only_compiles_tells_its_parent_of_its_end() -> None:
    told = f"{HEAD}\n{FRAME}\n    toy_key()\nOSError: [Errno 107] gone\n"
    helper = f"Uncaught exception in compile_worker subprocess\n{told}"
    assert place(helper, "OSError: [Errno 107] gone").kind == "ignored"
    assert place(f"Uncaught exception in toy_worker\n{told}", "OSError: [Errno 107] gone").kind == "reported"


def test_torchrun_only_tells_that_its_agents_did_not_meet_at_the_end() -> None:
    barrier = '  File "/opt/torch/distributed/elastic/agent/server/api.py", line 911, in _exit_barrier'
    store = '  File "/opt/torch/distributed/elastic/utils/store.py", line 42, in get_all'
    log = f"{HEAD}\n{barrier}\n    wait()\n{store}\n    store.get(key)\nRuntimeError: Socket Timeout\n"
    assert place(log, "RuntimeError: Socket Timeout").kind == "beside"
    own = log.replace("_exit_barrier", "_rendezvous")
    assert place(own, "RuntimeError: Socket Timeout").kind == "reported"


def test_ignored_tracebacks_of_one_error_may_be_printed_through_one_another() -> None:
    note, gone = "Exception ignored in: <toy>", "OSError: gone"
    first = f"40%|## | 4/10{note}\n{note}\n{HEAD}\n{HEAD}\n{FRAME}\n{FRAME}\n{gone}\n"
    assert place(first, gone).kind == "ignored"
    assert place(f"{first}{gone}\n", gone).kind == "ignored"
    assert (
        place(f"{note}\n{HEAD}\n{FRAME}\n{HEAD}\n{FRAME}\n{gone}\n{FRAME}\n{gone}\n", gone).kind == "reported"
    )


def test_the_words_of_ignored_tracebacks_may_be_cut_by_one_another() -> None:
    note, why = "Exception ignored in atexit callback: <toy>", "[Errno 2] gone"
    torn = f"{note}\n{HEAD}\n{FRAME}\n{note}\nOSError: {HEAD}\n{FRAME}\n{why}\n{FRAME}\nOSError: {why}\n"
    assert place(torn, f"OSError: {why}").kind == "ignored"
    assert place(torn.replace(f"{note}\nOSError", "OSError"), f"OSError: {why}").kind == "reported"


def test_an_exception_raised_while_another_was_handled_knows_it() -> None:
    block = f"{HEAD}\n{FRAME}\n    toy(a)\n"
    middle = f"\n{HANDLING}\n\n"
    log = f"{block}KeyError: 'a'\n{middle}{block}OSError: gone\n"
    found = place(log, "OSError: gone")
    assert (found.handled, found.probe) == (log.index("KeyError"), True)
    for words in ("IndexError: list index out of range", "toys.DeferredInitializationError: not yet"):
        assert place(log.replace("KeyError: 'a'", words), "OSError: gone").probe is True
    log = log.replace("KeyError: 'a'", "ValueError: a")
    assert not place(log, "OSError: gone").probe


def test_ray_names_the_task_in_the_place_of_a_header() -> None:
    task = f"ray::ToyServer.launch() (pid=4188, ip=10.0.0.7)\n{FRAME}\n    toy(a)\n"
    log = f"{task}StopIteration\n\n{HANDLING}\n\n{task}PackageError: no toy\n"
    found = place(log, "PackageError: no toy")
    assert (found.handled, found.probe) == (log.index("StopIteration"), True)


def test_a_miss_in_a_cache_was_a_probe_where_the_fetch_behind_it_failed() -> None:
    missed = f'{HEAD}\n  File "data.py", line 5, in load\n    open(a)\nFileNotFoundError: a\n'
    asked = f'{HEAD}\n{FRAME}\n    load(a)\n  File "data.py", line 7, in load\n    '
    fetched = f'{asked}fetch(a)\n  File "net.py", line 3, in fetch\n    get(a)\nToyError: no answer\n'
    assert place(f"{missed}\n{HANDLING}\n\n{fetched}", "ToyError: no answer").probe
    worded = f"{asked}raise ToyError(a)\nToyError: no answer\n"
    assert not place(f"{missed}\n{HANDLING}\n\n{worded}", "ToyError: no answer").probe
    closed = fetched.replace("in fetch", "in __exit__")
    assert not place(f"{missed}\n{HANDLING}\n\n{closed}", "ToyError: no answer").probe


def test_a_folder_above_that_is_missing_was_a_probe_of_pathlib() -> None:
    make = '  File "/env/pathlib.py", line 7, in mkdir\n    os.mkdir(self, mode)\n'
    missed = f"{HEAD}\n{make}FileNotFoundError: a/b\n"
    refused = (
        f'{HEAD}\n{FRAME}\n    a.mkdir()\n  File "/env/pathlib.py", line 9, in mkdir\n    above()\n{make}'
    )
    assert place(f"{missed}\n{HANDLING}\n\n{refused}OSError: a", "OSError: a").probe
    again = f"{missed}\n{HANDLING}\n\n{refused}FileNotFoundError: a"
    assert place(again, "FileNotFoundError: a").probe
    assert not place(again.replace("in mkdir", "in load"), "FileNotFoundError: a").probe


def test_printed_source_is_quoted() -> None:
    for line in (
        "\tif a!=b:raise OSError(f'gone: {a}')",
        '            f"shard {a} is gone: expected {b} bytes"',
        "    # OSError: gone, where the disk is slow",
        '  --again    on "OSError: gone" try again',
        "+        OSError: if it is gone",
        "-\tOSError: if it is gone",
        "│ ❱  42 │   │   │   f'OSError: gone: {a}'              │",
        "│   417 │   │   raise OSError(f'gone: {a}')           │",
        "[rank3]: │   417 │   │   OSError(f'gone: {a}')                │",
    ):
        assert place(f"def toy(a):\n{line}\n", line).kind == "quoted", line


def test_a_heading_or_a_table_is_no_source() -> None:
    assert place("fine\n# OSError: gone\n", "# OSError: gone") == TracebackPlace()
    assert place("fine\n│   3 │ OSError: gone │\n", "│   3 │ OSError: gone │") == TracebackPlace()


def test_what_runs_beside_the_job_is_told_apart() -> None:
    thread = '  File "/usr/lib/python3.10/threading.py", line 932, in _bootstrap_inner\n    self.run()\n'
    tracker = '  File "/opt/site-packages/wandb/sdk/internal/file_stream.py", line 2, in _send\n    toy(a)\n'
    wait = '  File "/opt/site-packages/requests/models.py", line 9, in toy\n    toy(a)\n'
    log = f"{HEAD}\n{thread}{tracker}{wait}OSError: gone\n"
    assert place(log, "OSError: gone").kind == "beside"
    log = f"{HEAD}\n{FRAME}\n    toy(a)\n{tracker}{wait}OSError: gone\n"
    assert place(log, "OSError: gone").kind == "reported"
    log = f"{HEAD}\n{thread}{wait}OSError: gone\n"
    assert place(log, "OSError: gone").kind == "reported"
    last = '  File "/usr/lib/python3.12/multiprocessing/util.py", line 288, in _run_finalizers\n    toy(a)\n'
    assert place(f"{HEAD}\n{last}{wait}OSError: gone\n", "OSError: gone").kind == "beside"


@pytest.mark.parametrize(
    ("function", "raised", "kind"),
    [
        ("_feed", "BrokenPipeError: [Errno 32] Broken pipe", "beside"),
        ("_feed", "ConnectionResetError: gone", "beside"),
        ("_feed", "OSError: [Errno 28] No space left on device", "reported"),
        ("get", "BrokenPipeError: [Errno 32] Broken pipe", "reported"),
    ],
)
def test_a_queue_s_feeder_gets_over_a_reader_that_is_gone(function: str, raised: str, kind: str) -> None:
    feeds = f'  File "/toy/python3/multiprocessing/queues.py", line 9, in {function}\n    send(obj)\n'
    sends = '  File "/toy/python3/multiprocessing/connection.py", line 7, in send_bytes\n    write(n)\n'
    assert place(f"{HEAD}\n{feeds}{sends}{raised}\n", raised).kind == kind


def test_threads_beside_the_job_may_mix_their_last_lines() -> None:
    thread = '  File "/usr/lib/python3.10/threading.py", line 932, in _bootstrap_inner\n    self.run()\n'
    writer = '  File "/opt/site-packages/tensorboardX/event_file_writer.py", line 2, in run\n    toy(a)\n'
    raised = "    raise OSError('gone')\nOSError: gone\n"
    log = f"Exception in thread T-2:\n{HEAD}\nException in thread T-1:\n{HEAD}\n{thread}{thread}"
    assert place(f"{log}{writer}{writer}{raised}{raised}", "OSError: gone").kind == "beside"
    other = raised.replace("OSError: gone", "ValueError: torn")
    assert place(f"{log}{writer}{writer}{other}{raised}", "OSError: gone").kind == "reported"
    assert place(f"{log}{writer}{raised}{HEAD}\n{FRAME}\n{raised}", "OSError: gone").kind == "reported"


OTHERS = st.integers(0, 3) | st.integers(90, 110) | st.integers(395, 405) | st.integers(600, 700)


@given(st.lists(OTHERS, min_size=4, max_size=4), st.integers(1, 60))
@settings(max_examples=cases(200))
def test_a_traceback_is_read_across_the_lines_of_400_others(between: list[int], width: int) -> None:
    """Above the exception: so many lines of other ranks, then the next line of its own."""
    own = (f"[rank7]: {HEAD}", f"[rank7]: {FRAME}", "[rank7]:     toy(a)", "[rank7]: ValueError: 7")
    log = ""
    for count, line in zip(between, own, strict=True):
        log += f"[rank8]: {'x' * width}\n" * count + line + "\n"
    found = place(log, own[-1])
    lost = list(accumulate(reversed(between[1:])))
    assert found.ends_traceback == (lost[0] < 400)
    assert found.frames == ((("train.py", "main"),) if lost[1] < 400 else ())


def test_what_a_tracker_met_first_is_handled_by_it() -> None:
    tracker = '  File "/opt/site-packages/wandb/sdk/internal/sender.py", line 2, in _send\n    toy(a)\n'
    log = f"{HEAD}\n{FRAME}\n    toy(a)\nKeyError: 'a'\n\n{HANDLING}\n\n{HEAD}\n{tracker}OSError: gone\n"
    found = place(log, "OSError: gone")
    assert (found.kind, found.handled) == ("beside", log.index("KeyError"))


def test_a_warning_of_any_category_is_none() -> None:
    warned = "/opt/toy.py:916: ToyError: (65544) odd"
    assert place(f"{warned}\n  warnings.warn(message, ToyError)\n", warned).kind == "ignored"
    assert place(f"{warned}\nstep 3\n", warned).kind == "reported"


def test_the_last_traceback_is_what_came_of_trying_again_and_again() -> None:
    waits = "no answer. Retrying in {} seconds...\n"
    failed = f"{HEAD}\n{FRAME}\n    toy(a)\nOSError: gone\n"
    assert place(waits.format(2) + failed, "OSError: gone").kind == "ignored"
    log = waits.format(2) + waits.format(4) + failed
    assert place(f"{log}asking again\n", "OSError: gone").kind == "ignored"
    assert place(log, "OSError: gone").kind == "reported"


@pytest.mark.parametrize(
    ("lead", "kind"),
    [
        ("ERROR:toy:Failed to set up the toy: gone. Continuing without wheels.", "ignored"),
        ("2026-03-02 11:00:00 | WARNING | toy | Failed to load toy 7, skipping", "ignored"),
        ("2026-03-02 11:00:00 | WARNING | toy | Failed to load toy 7", "reported"),
        ("toy 7 is known, skipping", "reported"),
        ("DEBUG:toy:Could not close the toy", "ignored"),
        ("[rank3]:D0302 11:00:00.000000 77 toy/a.py:3] the toy failed", "ignored"),
        ("DEBUG:toy:Asked for the toy", "reported"),
        ("INFO:toy:The toy failed", "reported"),
        ("ERROR:toy:Could not DEBUG the toy", "reported"),
    ],
)
def test_a_record_may_say_that_its_writer_got_over_the_exception_below(lead: str, kind: str) -> None:
    log = f"started\n{lead}\n{HEAD}\n{FRAME}\n    toy(a)\nOSError: gone\n"
    assert place(f"{log}step 3\n", "OSError: gone").kind == kind


def test_a_debug_record_explains_no_traceback_in_which_the_log_ends() -> None:
    log = f"DEBUG:toy:Could not close the toy\n{HEAD}\n{FRAME}\n    toy(a)\nOSError: gone\n"
    assert place(log, "OSError: gone").kind == "reported"
