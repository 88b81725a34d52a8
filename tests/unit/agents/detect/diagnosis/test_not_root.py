"""Every candidate that is not the root has one reason. Each reason has a case of its own."""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate
from midwatch.agents.detect.diagnosis.reasons import REASONS, SET_ASIDE
from midwatch.agents.detect.diagnosis.root_line import Features, choose, features
from midwatch.agents.detect.diagnosis.verdict import AttemptEnd, Diagnosis, diagnose
from midwatch.agents.replay.output import as_plain, as_text
from midwatch.streams.records import Hit, Incident, Line, Role, SchedulerFact, Verdict, codec
from unit.agents.conftest import Watch

SLURM_FAILED = {"task": "3", "exit_code": "1"}


def seen(  # noqa: PLR0913  # a line with what its rule knows; each has its default
    number: int,
    rule: str = "toy",
    role: Role = "cause",
    kind: str = "exception",
    text: str = "ValueError: the toy broke",
    *,
    general: bool = False,
    rank: int | None = 0,
    path: str = "log",
    node: str = "n1",
    time: float | None = None,
    subsystem: str = "python",
    captures: Mapping[str, str] | None = None,
    transient: bool | None = None,
) -> Hit:
    """A hit on a line of a toy."""
    at = float(number) if time is None else time
    line = Line(text=text, path=path, number=number, offset=0, time=at, node=node, rank=rank)
    known = dict(captures or {})
    return Hit(
        rule, role, kind, subsystem, "error", transient, line, number, "g", captures=known, fallback=general
    )


def consequence(number: int, rule: str = "toy_news", kind: str = "exception", **known: Any) -> Hit:
    return seen(number, rule, "consequence", kind, **known)


def context(number: int, rule: str, kind: str = "exception", **known: Any) -> Hit:
    return seen(number, rule, "context", kind, **known)


def claimed(hit: Hit, rank: int) -> Hit:
    """The hit on a line that names its rank itself."""
    return replace(hit, line=replace(hit.line, claimed_rank=rank))


def aside(number: int, why: str) -> Hit:
    """A line whose rule looks for a failure, and which reports none."""
    return replace(context(number, "toy_words"), severity="info", aside=why)


CLEARED = seen(3, text="TypeError: 'NoneType' object is not callable")
"""What a destructor meets while Python shuts down."""


def ended(fact: SchedulerFact | None = None, **known: Any) -> AttemptEnd:
    usual: dict[str, Any] = {
        "silence": None,
        "phase": "training",
        "step": 9,
        "total": None,
        "succeeded": False,
        "complete": True,
        "given_up": (),
        "bundle": "b",
    }
    return AttemptEnd(scheduler=fact, **{**usual, **known})


def fact(word: str = "COMPLETED", **known: Any) -> SchedulerFact:
    return SchedulerFact("job", "1:1", "1", "RUNNING", word, ended=True, **known)


FABRIC = consequence(9, "toy_link", "communication", subsystem="distributed")
REPORT = consequence(4, "torch_watchdog_timeout", "nccl_timeout")
REPORT_LATER = consequence(9, "torch_watchdog_timeout", "nccl_timeout")
CRASH = seen(7, kind="native_crash", general=True)
CHECK = "(pid=raylet) F0302 11:52:40.118290  4188  4188 toy.cc:7]  Check failed: it != toys.end()"
UNOPENED = "cannot open shared object file: No such file or directory"
CONDOR = "(77.000.000) 2026-03-02 11:40:00 Job was"
ASKED = "(pid=raylet) I0302 11:52:39.130998  4188  4188 main.cc:216] toy received SIGTERM"
QUIET = fact(exit_code=0)
WORKER_DIED = "(raylet) A worker died or was killed while executing a task by an unexpected system error."
NVLS = "n4:88:90 [2] transport/nvls.cc:640 NCCL WARN Cuda failure 1 'invalid argument'"

# reason, the number of the candidate's line, the number of the line that shows it, hits, the end
CASES: list[tuple[str, int, int | None, Sequence[Hit], AttemptEnd]] = [
    (
        "asked for itself",
        7,
        3,
        [seen(7, kind="preemption", text="CANCELLED DUE TO JOB REQUEUE")],
        ended(noted=(context(3, "job_requeues_itself"),)),
    ),
    (
        "asked for itself",
        8,
        3,
        [
            seen(7, kind="preemption", text="CANCELLED DUE TO JOB REQUEUE"),
            seen(8, "slurm_srun_gone", kind="cancelled"),
        ],
        ended(noted=(context(3, "job_requeues_itself"),)),
    ),
    (
        "went another way",
        6,
        5,
        [seen(6, kind="ray_actor_died", text=WORKER_DIED)],
        ended(noted=(context(5, "ray_task_retried"),)),
    ),
    (
        "went another way",
        3,
        5,
        [seen(3, "ofi_plugin_setup_failed")],
        ended(noted=(context(5, "nccl_tcp_fallback"),)),
    ),
    (
        "went another way",
        3,
        5,
        [seen(3, kind="ray_actor_died", text=WORKER_DIED), seen(9, general=True)],
        ended(noted=(context(5, "ray_task_retried"),)),
    ),
    (
        "got over",
        3,
        5,
        [seen(3, "toy_store", kind="storage", rank=None), claimed(seen(5, general=True), 3)],
        ended(),
    ),
    (
        "got over",
        3,
        9,
        [seen(3, "toy_import", kind="import_error"), seen(9, "toy_card", kind="oom")],
        ended(),
    ),
    (
        "another program since",
        3,
        70,
        [seen(3, "python_arguments", kind="config"), seen(70)],
        ended(),
    ),
    (
        "process failed",
        9,
        4,
        [
            consequence(4, "torch_process_taken_down", "nccl_timeout"),
            seen(9, "slurm_cancelled", kind="cancelled", text="*** STEP 7.0 ON n1 CANCELLED AT 12:00 ***"),
        ],
        ended(),
    ),
    (
        "script went on",
        3,
        9,
        [
            seen(3, "shell_cannot_start", kind="config"),
            seen(
                9, "slurm_cancelled", kind="cancelled", text="error: *** JOB 7 ON n1 CANCELLED AT 12:00 ***"
            ),
        ],
        ended(),
    ),
    ("script went on", 3, 70, [seen(3, "shell_cannot_start", kind="config"), seen(70)], ended()),
    (
        "script went on",
        3,
        5,
        [
            seen(3, "shell_cannot_start", kind="config"),
            replace(seen(5, kind="slurm_failure"), mode="timeout"),
        ],
        ended(),
    ),
    (
        "transport given up",
        3,
        None,
        [seen(3, "nccl_device_call_failed", kind="nccl", text=NVLS)],
        ended(QUIET),
    ),
    (
        "server asked to end",
        6,
        2,
        [
            consequence(
                6, "companion_died", general=True, text="vllm.v1.engine.exceptions.EngineDeadError: gone"
            )
        ],
        ended(QUIET, noted=(context(2, "vllm_server_asked_to_end", "cancelled"),)),
    ),
    ("only torn down", 9, 8, [FABRIC], ended(QUIET, noted=(context(8, "rendezvous_not_closed"),))),
    (
        "watchdog says why",
        4,
        5,
        [
            consequence(4, "torch_process_taken_down", "nccl_timeout"),
            consequence(5, "nccl_remote_error", "nccl"),
        ],
        ended(),
    ),
    ("broken by the watchdog", 6, 4, [REPORT, seen(6, "models_differ")], ended()),
    (
        "watchdog tells more",
        3,
        4,
        [consequence(3, "toy_wait", "distributed_timeout"), REPORT],
        ended(),
    ),
    (
        "raised by the wait",
        6,
        4,
        [REPORT, seen(6, general=True, text="RuntimeError: the collective was torn")],
        ended(),
    ),
    (
        "raised elsewhere",
        8,
        4,
        [
            REPORT,
            seen(6, general=True, text="[rank0]: RuntimeError: the collective was torn"),
            seen(8, general=True, text="[rank1]: RuntimeError: the collective was torn", rank=1),
        ],
        ended(),
    ),
    ("parent's notice", 5, 3, [seen(3), seen(5, "dataloader_worker_crashed")], ended()),
    (
        "node failed",
        3,
        6,
        [seen(3, kind="hardware", general=True), seen(6, "slurm_node_failure_seen", kind="slurm_failure")],
        ended(),
    ),
    (
        "shut down",
        5,
        3,
        [seen(5, kind="native_crash")],
        ended(noted=(replace(aside(3, "ignored"), line=CLEARED.line),)),
    ),
    (
        "link not closed",
        3,
        5,
        [consequence(3, "nccl_error", "nccl", subsystem="distributed")],
        ended(noted=(context(5, "nccl_link_not_closed", "nccl", subsystem="distributed"),)),
    ),
    (
        "thrown while ending",
        3,
        6,
        [seen(3, text="terminate called without an active exception", general=True), seen(6)],
        ended(),
    ),
    (
        "taken away since",
        3,
        6,
        [seen(3, captures={"in_a_thread": "1"}), seen(6, "slurm_preempted", kind="preemption")],
        ended(),
    ),
    (
        "not built",
        2,
        6,
        [
            seen(2, "python_import_error", kind="import_error", text=f"/toy/toy.so: {UNOPENED}"),
            seen(6, general=True, text="RuntimeError: Error building extension 'toy': [1/3] nvcc toy.cu"),
        ],
        ended(),
    ),
    (
        "removed",
        2,
        6,
        [
            seen(2, "condor_evicted", kind="preemption", text=f"004 {CONDOR} evicted.", general=True),
            seen(6, "condor_removed", kind="cancelled", text=f"009 {CONDOR} aborted.", general=True),
        ],
        ended(),
    ),
    (
        "scheduler's signal",
        2,
        6,
        [
            seen(2, "torchrun_death_signal", kind="cancelled", general=True, captures={"signal": "15"}),
            seen(6, "slurm_time_limit", kind="slurm_failure", subsystem="slurm", general=True),
        ],
        ended(),
    ),
    (
        "card failed",
        3,
        6,
        [seen(3, "cuda_illegal_access", kind="torch"), seen(6, "xid_hardware", kind="hardware")],
        ended(),
    ),
    (
        "days before",
        3,
        6,
        [
            seen(3, "xid_application", kind="torch", text="[Fri Aug  7 13:32:56 2026] NVRM: Xid (t): 31"),
            seen(6, "xid_hardware", kind="hardware", text="[Sun Aug  9 13:32:56 2026] NVRM: Xid (t): 94"),
        ],
        ended(),
    ),
    (
        "killed by the agent",
        6,
        4,
        [consequence(2, kind="nccl_timeout"), seen(6, kind="host_oom", general=True)],
        ended(noted=(context(4, "torchrun_killed_it"),)),
    ),
    (
        "stray word",
        6,
        2,
        [seen(2, kind="nccl_timeout"), seen(6, "option_as_command", kind="config")],
        ended(),
    ),
    (
        "ended by the agent",
        2,
        4,
        [
            consequence(2, "exit_by_request", "cancelled", text="  exitcode  : -15 (pid: 88)"),
            consequence(4, text="  exitcode  : 1 (pid: 91)"),
        ],
        ended(),
    ),
    ("after an end", 6, 2, [seen(2, general=True), seen(6, kind="nccl_timeout")], ended()),
    ("asked to end", 6, 2, [consequence(2, kind="cancelled", text=ASKED), seen(6, text=CHECK)], ended()),
    ("news of a peer", 6, 6, [seen(6, text=CHECK), consequence(6, "toy_peer", "ray_actor_died")], ended()),
    (
        "srun cleaned up",
        6,
        2,
        [
            consequence(2, subsystem="slurm", general=True, captures=SLURM_FAILED),
            seen(6, kind="cancelled", subsystem="slurm"),
        ],
        ended(),
    ),
    ("echo of a report", 7, 4, [REPORT, CRASH], ended()),
    (
        "echo of a report",
        7,
        4,
        [
            consequence(4, "torch_watchdog_timeout", "nccl_timeout", subsystem="distributed"),
            seen(7, kind="oom", captures={"size": "9001.5 GiB", "capacity": "79.10 GiB"}),
        ],
        ended(),
    ),
    (
        "echo of an interrupt",
        6,
        2,
        [consequence(2, kind="user_interrupt", subsystem="user"), seen(6, general=True)],
        ended(),
    ),
    (
        "echo of an interrupt",
        6,
        2,
        [
            consequence(2, kind="user_interrupt", subsystem="user"),
            seen(6, kind="communication", general=True),
        ],
        ended(),
    ),
    ("a wait", 2, 6, [consequence(2, kind="nccl_timeout"), seen(6)], ended()),
    ("a summary", 8, 6, [seen(6), consequence(8, general=True, captures={"exit_code": "1"})], ended()),
    ("a consequence", 2, 6, [consequence(2, kind="ray_actor_died"), seen(6)], ended()),
    (
        "an announcement",
        2,
        6,
        [seen(2, general=True, text="RuntimeError: the toy broke because of:"), seen(6, general=True)],
        ended(),
    ),
    ("less specific", 2, 6, [seen(2, general=True), seen(6)], ended()),
    (
        "no kind",
        2,
        6,
        [consequence(2, general=True), consequence(6, kind="nccl", general=True)],
        ended(),
    ),
    (
        "no end",
        2,
        6,
        [consequence(2, general=True), consequence(6, general=True, captures={"exit_code": "1"})],
        ended(),
    ),
    ("later", 6, 2, [seen(2), seen(6)], ended()),
    ("same time", 6, 2, [seen(2, time=1.0), seen(6, time=1.0, path="other")], ended()),
    ("same line", 2, 2, [seen(2, "toy_kind", kind="data"), seen(2)], ended()),
    (
        "told in full",
        2,
        4,
        [
            seen(2, general=True, text="it ended: the toy broke"),
            seen(4, general=True, text="ValueError: the toy broke"),
        ],
        ended(),
    ),
    (
        "outer entry",
        2,
        4,
        [seen(2, captures={"depth": "0"}), seen(4, captures={"depth": "1"})],
        ended(),
    ),
    (
        "process failed",
        9,
        3,
        [consequence(3, general=True, captures={"exit_code": "1"}), REPORT_LATER],
        ended(),
    ),
    ("process left", 9, 3, [FABRIC], ended(left=context(3, "toy_left", rank=5))),
    (
        "port fell",
        6,
        3,
        [seen(6, "nccl_ib_retries_exhausted", kind="nccl", transient=True)],
        ended(noted=(context(3, "nccl_ib_port_event", "nccl"),)),
    ),
    (
        "explained",
        6,
        3,
        [consequence(6, general=True)],
        ended(noted=(context(3, "toy_warning", "port_in_use"),)),
    ),
    (
        "NCCL's own word",
        6,
        3,
        [seen(6, "nccl_error", kind="nccl")],
        ended(noted=(context(3, "nccl_warning", text="NCCL WARN no toy is left"),)),
    ),
    (
        "service away",
        6,
        3,
        [
            seen(3, "said_gateway", kind="communication", general=True),
            seen(6, "hub_unreachable", kind="communication"),
        ],
        ended(),
    ),
    (
        "a build",
        6,
        3,
        [consequence(6, "build_stopped", "import_error", general=True)],
        ended(noted=(context(3, "linker_misses_a_library", "import_error"),)),
    ),
    (
        "no card",
        6,
        3,
        [seen(6, text="RuntimeError: no GPU was found")],
        ended(noted=(context(3, "cuda_unknown_error", "hardware", text="CUDA initialization: toy"),)),
    ),
    ("closing", 6, None, [seen(6, kind="native_crash")], ended(QUIET, succeeded=True)),
    ("success", 6, None, [consequence(6)], ended(fact(mode="success"))),
    (
        "scheduler tells more",
        6,
        None,
        [consequence(6, general=True)],
        ended(fact("PREEMPTED", error_type="preemption", mode="preempted")),
    ),
    (
        "hang",
        6,
        None,
        [seen(6, kind="hang")],
        ended(progress=Line(text="step 9", path="log", number=5, offset=0, time=5.0, node="n1")),
    ),
]
CASES += [
    (name, 3, None, [seen(7)], ended(noted=(aside(3, name),)))
    for name in ("mentioned", "quiet", "handled", "run again", "ignored", "beside", "quoted", "left behind")
]


@pytest.mark.parametrize(("name", "number", "shown", "hits", "end"), CASES, ids=[case[0] for case in CASES])
def test_each_reason_has_its_case(
    name: str, number: int, shown: int | None, hits: Sequence[Hit], end: AttemptEnd
) -> None:
    found = diagnose(hits, end)
    lines = [each.line for each in (*hits, *end.noted, *((end.left,) if end.left else ()))]
    of = next(line for line in lines if line.number == number)
    because = next((line for line in lines if line.number == shown), None)
    (rival,) = [each for each in found.rivals if each.number == number]
    assert rival.reason == NotRoot(name, because).sentence(of)
    assert found.verdict.root_line_number != number or name in ("same line", "news of a peer")


def test_where_nothing_failed_nobody_asks_after_lines_that_report_no_failure() -> None:
    noted = (aside(3, "mentioned"),)
    assert diagnose([], ended(fact(exit_code=0, mode="success"), succeeded=True, noted=noted)).rivals == ()
    assert diagnose([], ended(fact("FAILED", exit_code=1), noted=noted)).rivals != ()


def test_no_reason_is_without_a_case() -> None:
    assert {case[0] for case in CASES} == REASONS.keys()


@pytest.mark.parametrize("name", [name for name, reason in REASONS.items() if reason.feature in SET_ASIDE])
def test_a_line_that_is_set_aside_has_the_feature_of_its_reason_and_is_never_the_root(name: str) -> None:
    known = features(RootCandidate(seen(1), NotRoot(name)))
    assert [each for each in SET_ASIDE if getattr(known, each)] == [REASONS[name].feature]
    vaguest = consequence(9, general=True, captures={})
    choice = choose([RootCandidate(seen(1), NotRoot(name)), RootCandidate(vaguest)])
    assert choice.root is vaguest
    assert choose([RootCandidate(seen(1), NotRoot(name))]).root is None


def test_the_features_that_set_a_line_aside_come_first_in_the_order() -> None:
    assert Features._fields[: len(SET_ASIDE)] == SET_ASIDE
    beyond = {reason.feature for reason in REASONS.values()} - {*Features._fields}
    assert beyond == {"place", "told", "none"}


HITS = st.sampled_from([hit for case in CASES for hit in case[3]])


@given(
    st.lists(st.tuples(HITS, st.integers(1, 40), st.sampled_from(["log", "other"]), st.integers(0, 3))),
    st.randoms(use_true_random=False),
)
def test_the_root_is_the_same_in_whatever_order_the_lines_came(
    drawn: list[tuple[Hit, int, str, int]], chance: random.Random
) -> None:
    hits = list({(number, path): moved(hit, number, path, at) for hit, number, path, at in drawn}.values())
    mixed = hits[:]
    chance.shuffle(mixed)
    one, other = diagnose(hits, ended()), diagnose(mixed, ended())
    assert one == other
    choice = choose([RootCandidate(hit) for hit in hits])
    named = [id(hit) for hit, _ in choice.others]
    assert len(set(named)) == len(named) == len(hits) - (choice.root is not None), "one reason each"


def moved(hit: Hit, number: int, path: str, at: int) -> Hit:
    return replace(hit, line=replace(hit.line, number=number, path=path, time=float(at)))


def test_like_candidates_are_counted_and_the_list_is_bounded() -> None:
    waits = [consequence(n, kind="nccl_timeout", rank=n) for n in range(2, 100)]
    kinds = [consequence(200 + n, f"toy_{n}", kind="nccl_timeout") for n in range(40)]
    found = diagnose([seen(1), *waits, *kinds], ended())
    assert [(rival.number, rival.more) for rival in found.rivals[:2]] == [(2, 97), (200, 0)]
    assert len(found.rivals) == 15


def test_an_incident_without_other_candidates_has_the_bytes_that_it_had() -> None:
    incident = Incident("slurm:ada/toy#1.1", "slurm:ada/toy", 1, "slurm:1:0", "ended", 1, Verdict("failed"))
    assert b"rivals" not in codec.encode(incident)
    found = diagnose([seen(1), seen(2)], ended())
    full = replace(incident, rivals=found.rivals)
    assert codec.decode(codec.encode(full)).other_candidates == found.rivals
    assert full == incident, "a recording of an older version is the same incident"


def test_replay_says_of_each_candidate_why_it_is_not_the_root(watch: Watch) -> None:
    out_of_memory = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
    done = watch(f"{out_of_memory}\nsrun: error: n4: task 3: Exited with exit code 1\n")
    reason = "it only sums up how a process ended, and line 1 names a cause"
    assert [(each["line_number"], each["reason"]) for each in as_plain(done)["rivals"]][-1] == (2, reason)
    assert any(each.startswith("  not root  log:2 ") and each.endswith(reason) for each in as_text(done))


@pytest.mark.parametrize(
    ("name", "above", "number"),
    [
        ("mentioned", "The step was slow. This can happen if the instance was preempted.\n", 1),
        ("quiet", "WARNING: RuntimeError: CUDA error: out of memory while warming up the cache\n", 1),
        (
            "handled",
            "Traceback (most recent call last):\n"
            '  File "/home/ada/toy/cache.py", line 7, in read\n'
            "    return known[key]\n"
            "KeyError: 'shard 7'\n"
            "\nDuring handling of the above exception, another exception occurred:\n\n",
            4,
        ),
    ],
)
def test_replay_says_of_a_line_that_reports_no_failure_why_it_is_not_the_root(
    watch: Watch, name: str, above: str, number: int
) -> None:
    fails = (
        "Traceback (most recent call last):\n"
        '  File "/home/ada/toy/train.py", line 30, in <module>\n'
        "    read(shard)\n"
        "ValueError: the toy broke\n"
    )
    done = watch(above + fails)
    assert done.verdict.root_line == "ValueError: the toy broke"
    reasons = {each["line_number"]: each["reason"] for each in as_plain(done)["rivals"]}
    assert reasons.get(number) == REASONS[name].sentence, reasons


@pytest.mark.parametrize("many", ["waits", "requests", "notices"])
def test_the_work_grows_with_the_lines_and_not_with_their_square(many: str) -> None:
    few, more = calls(crowd(many, 60)), calls(crowd(many, 240))
    assert more < 6 * few, "four times the ranks"


def crowd(many: str, ranks: int) -> list[Hit]:
    """Three lines of each rank, each rank in a file of its own."""
    kinds = {
        "waits": (REPORT, seen(6, general=True, text="RuntimeError: the collective broke"), CRASH),
        "requests": (
            consequence(2, kind="cancelled", subsystem="slurm", text=ASKED, captures=SLURM_FAILED),
            seen(6, text=CHECK),
            seen(7, kind="cancelled", subsystem="slurm", captures={"id": "7.0"}),
        ),
        "notices": (
            seen(2, "dataloader_killed", kind="host_oom"),
            seen(3, kind="hardware", general=True),
            seen(6, "slurm_node_failure_seen", kind="slurm_failure"),
        ),
    }[many]
    return [
        replace(hit, line=replace(hit.line, path=f"rank_{rank}", rank=rank))
        for rank in range(ranks)
        for hit in kinds
    ]


def calls(hits: Sequence[Hit]) -> int:
    """How many Python functions a diagnosis calls; a generator counts with each item."""
    count = 0

    def counted(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        found: Diagnosis = diagnose(hits, ended())
    finally:
        sys.setprofile(before)
    assert found.verdict.state == "failed"
    return count
