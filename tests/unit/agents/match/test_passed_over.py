"""Exceptions that libraries print at an import, or from a thread of their own, and live on."""

from __future__ import annotations

import pytest

from unit.agents.match.test_tracebacks import FRAME, HEAD, place


def test_what_tensorflow_prints_of_a_new_protobuf_is_ignored_without_a_traceback() -> None:
    words = "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'"
    noise = f"loading the toys\n{words}\n{words}\nthe toys are loaded\n"
    assert place(noise, words).kind == "ignored"
    raised = f"{HEAD}\n{FRAME}\n    factory.GetPrototype(toy)\n{words}\n"
    assert place(raised, words).kind == "reported"


def test_what_a_module_for_an_older_numpy_prints_is_ignored_unless_it_is_the_last_word() -> None:
    words = "AttributeError: _ARRAY_API not found"
    log = f"{HEAD}{FRAME}\n    import toys\n{words}\n"
    assert place(f"{log}the toys are loaded\n", words).kind == "ignored"
    assert place(log, words).kind == "reported"
    raised = "ImportError: numpy.core.multiarray failed to import"
    assert place(f"{log}{HEAD}\n{FRAME}\n    import toys\n{raised}\n", raised).kind == "reported"


def test_the_thread_that_watches_progress_bars_is_beside_the_job() -> None:
    thread = f"Exception in thread Thread-7:\n{HEAD}\n"
    thread += '  File "/toy/lib/python3.9/threading.py", line 980, in _bootstrap_inner\n    self.run()\n'
    bars = (
        thread + '  File "/toy/site-packages/tqdm/{}.py", line 69, in run\n    toys = self.get_instances()\n'
    )
    words = "RuntimeError: Set changed size during iteration"
    assert place(f"{bars.format('_monitor')}{words}\n", words).kind == "beside"
    assert place(f"{bars.format('contrib/toy')}{words}\n", words).kind == "reported"


def test_what_a_hook_for_exceptions_raised_itself_is_ignored() -> None:
    hook = f'Error in sys.excepthook:\n{HEAD}\n  File "/toy/hook.py", line 7, in toy_hook\n    import toys\n'
    first = f"\nOriginal exception was:\n{HEAD}\n{FRAME}\n    toy(a)\nRuntimeError: odd\n"
    log = f"{hook}ImportError: no toys\n{first}"
    assert place(log, "ImportError: no toys").kind == "ignored"
    assert place(log, "RuntimeError: odd").kind == "reported"


def test_what_a_hook_raised_that_nothing_follows_shows_that_an_exception_ended_the_program() -> None:
    hook = f'Error in sys.excepthook:\n{HEAD}\n  File "/lib/toys.py", line 7, in checks\n    os.stat(toy)\n'
    assert place(f"{hook}KeyboardInterrupt\n", "KeyboardInterrupt").kind == "reported"
    assert place(f"{hook}KeyboardInterrupt\nepoch 3\n", "KeyboardInterrupt").kind == "ignored"


def test_an_exception_right_below_the_word_that_it_is_ignored_needs_no_traceback() -> None:
    note = "Exception ignored in: <_io.TextIOWrapper name='<stdout>'>\n"
    assert (
        place(f"{note}BrokenPipeError: [Errno 32] Broken pipe\n", "BrokenPipeError: [Errno 32]").kind
        == "ignored"
    )
    assert (
        place("the toys\nBrokenPipeError: [Errno 32] odd\n", "BrokenPipeError: [Errno 32]").kind == "reported"
    )


def test_what_a_logger_could_not_write_is_ignored_though_another_line_parts_its_heading() -> None:
    words = "OSError: [Errno 116] Stale file handle"
    code = f'{HEAD}\n  File "/toy/logging/__init__.py", line 7, in emit\n    self.flush()\n{words}\n'
    told = "--- Logging error ---\n[toy][INFO] - a key was added\n"
    assert place(f"{told}{code}Call stack:\n{FRAME}\n    train()\n", words).kind == "ignored"
    folded = f"{told}{code}in a toy of\nthree parts\n"
    assert place(f"{folded}Call stack:\n{FRAME}\n    train()\n", words).kind == "ignored"
    assert place(f"{told}{code}", words).kind == "reported"


def test_what_the_program_met_while_it_logged_counts_and_what_logging_met_does_not() -> None:
    met, own = "ToyError: the toy disk is full", "OSError: [Errno 28] No space left on device"
    chained = f"{HEAD}\n{FRAME}\n    save()\n{met}\n\n"
    chained += "During handling of the above exception, another exception occurred:\n\n"
    chained += f"{HEAD}\n{FRAME}\n    flush()\n"
    text = f"--- Logging error ---\n{chained}{own}\nCall stack:\n{FRAME}\n    train()\n"
    assert place(text, met).kind == "reported"
    assert place(text, own).kind == "ignored"
    emits = '  File "/usr/lib/python3.10/logging/__init__.py", line 7, in emit'
    assert place(text.replace(FRAME, emits, 1).replace(met, own, 1), f"{own}\n\nDuring").kind == "ignored"


def test_a_client_that_waits_for_its_simulator_says_nothing_of_the_exception_below() -> None:
    words = "ToyError: the simulator is gone"
    code = f'{HEAD}\n  File "toys.py", line 7, in <module>\n    step()\n{words}\n'
    assert place(" Retrying in 1 seconds\n" + code, words).kind == "reported"
    assert place("toy 7 failed. Retrying in 1 seconds\n" + code, words).kind == "ignored"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("NetStatThr", "ignored"),
        ("ChkStopThr", "ignored"),
        ("Thread-2 (_readerthread)", "ignored"),
        ("Thread-3 (fetch)", "reported"),
    ],
)
def test_a_thread_that_the_job_does_without_is_known_by_its_name(name: str, kind: str) -> None:
    thread = '  File "/usr/lib/python3.10/threading.py", line 932, in _bootstrap_inner\n    self.run()\n'
    log = f"Exception in thread {name}:\n{HEAD}\n{thread}OSError: gone\n"
    assert place(log, "OSError: gone").kind == kind
    record = (
        "In D:\\toys\\run.ps1:41 Zeichen:9\n+         & $Python @Toys 2>&1\n+         ~~~~~~~~~~~~\n"
        "    + CategoryInfo          : NotSpecified: (Exception in th...) [], RemoteException\n"
        "    + FullyQualifiedErrorId : NativeCommandError\n \n"
    )
    by_powershell = log.replace("Exception", "python.exe : Exception", 1).replace(HEAD, record + HEAD)
    assert place(by_powershell, "OSError: gone").kind == kind


def test_what_powershell_heads_the_first_line_of_an_error_stream_with_is_no_exception() -> None:
    frame = (
        "+ ~~~~~~\n    + CategoryInfo \n      : NotSpecified: (toys are old:\nString) [], RemoteException\n"
    )
    named = "    + \nFullyQualifiedError\nId : NativeCommandErr\nor\n"
    assert place(frame + named, "String) [], RemoteException").kind == "ignored"
    assert place(frame + named, "FullyQualifiedError").kind == "ignored"
    assert place(frame + named.replace("+ \n", "+ "), "    + FullyQualifiedError").kind == "ignored"
    assert place(f"{frame}the toys are gone\n", "String) [], RemoteException").kind == "reported"
    cut = "    + FullyQualifiedE\n   rrorId : NativeCo\n  mmandError\n \n"
    assert place(frame + cut, "mmandError").kind == "ignored"
    named = "    + FullyQualifiedErrorId  \n   : NativeCommandError\n \n"
    assert place(frame + named, "   : NativeCommandError").kind == "ignored"
    for cut in (
        "String) [],  \n    RemoteException\n",
        "String) [    ], \nRemoteException\n",
        "String) []   \n , RemoteException\n",
    ):
        narrow = frame.replace("String) [], RemoteException\n", cut)
        assert (
            place(f"{narrow}    + FullyQualifiedE\n    rrorId : NativeCo\n", cut.split("\n")[1]).kind
            == "ignored"
        )
