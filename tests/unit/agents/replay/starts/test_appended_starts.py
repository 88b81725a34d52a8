"""A file to which several starts have appended: the last counts, and the answer says how the others ended."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.starts.appended_starts import possible_starts, replay_last
from unit.agents.conftest import Watch

HEAD = (
    "SLURM_JOB_ID={job}\n"
    "nodes of this start: toy-01 toy-02\n"
    "+ srun --export=ALL python train.py --config toy.yaml\n"
    "2026-11-20 07:{minute:02}:00 the tokenizer of the toy model is loaded\n"
)
PLAIN_HEAD = (
    "toy trainer 2.1 with 8 workers\nreads the shards of the toy corpus\nbuilds a toy model of 2 layers\n"
)
RAISED = (
    "Traceback (most recent call last):\n"
    '  File "/toy/train.py", line 9, in main\n'
    "    return shards[index]\n"
    "IndexError: list index out of range\n"
)
OUT_OF_MEMORY = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
DONE = "`Trainer.fit` stopped: `max_steps=5000` reached.\n"


def head(job: int) -> str:
    return HEAD.format(job=4711000 + job, minute=job)


def steps(first: int, last: int) -> str:
    return "".join(f"step: {step}  loss:  {3 - step / 1000:.4f}\n" for step in range(first, last + 1))


def places(done: Replayed) -> list[tuple[int, int, str]]:
    return [(each.first, each.last, each.verdict.error_type) for each in done.earlier]


def test_the_last_of_three_starts_counts_and_the_others_are_named(watch: Watch) -> None:
    done = watch(
        head(1) + steps(1, 20) + RAISED + head(2) + steps(11, 30) + OUT_OF_MEMORY + head(3) + steps(21, 60)
    )
    assert done.verdict.state == "healthy"
    assert done.verdict.step == 60
    assert places(done) == [(1, 28, "exception"), (29, 53, "oom")]
    assert "the file holds several starts, and the last one counts" in done.assumed


def test_a_failure_of_the_last_start_has_its_line_in_the_whole_file(watch: Watch) -> None:
    text = head(1) + steps(1, 20) + OUT_OF_MEMORY + head(2) + steps(1, 20) + RAISED
    done = watch(text)
    assert done.verdict.error_type == "exception"
    assert text.splitlines()[(done.verdict.root_line_number or 0) - 1].startswith("IndexError")
    assert places(done) == [(1, 25, "oom")]


def test_a_start_that_ended_well_is_an_earlier_start_too(watch: Watch) -> None:
    done = watch(PLAIN_HEAD + steps(1, 20) + DONE + PLAIN_HEAD + steps(1, 20) + RAISED)
    assert done.verdict.state == "failed"
    assert [each.verdict.state for each in done.earlier] == ["healthy"]


def test_a_start_that_crashed_before_its_first_step_needs_a_launcher_s_words(watch: Watch) -> None:
    assert len(watch(head(1) + RAISED + head(2) + OUT_OF_MEMORY).earlier) == 1
    assert watch(PLAIN_HEAD + RAISED + PLAIN_HEAD + OUT_OF_MEMORY).earlier == ()


def test_launchers_side_by_side_print_the_same_first_lines(watch: Watch) -> None:
    banner = "torchrun paints one toy for each rank\n*****\nSetting THREADS of each toy painter to 1\n"
    text = banner * 2 + RAISED.replace("IndexError", "KeyError") + banner
    done = watch(text + "srun: error: toy-2: task 1: Exited with exit code 1\n")
    assert (done.earlier, done.verdict.root_line_number) == ((), 10)
    assert watch(banner + RAISED + banner + OUT_OF_MEMORY).earlier != ()


def test_a_stack_that_is_printed_twice_begins_no_start(watch: Watch) -> None:
    stack = (
        "Exception raised from checkToy at /src/toy.cpp:5 (most recent call first):\n"
        "frame #0: toy::Error::Error(toy::Location) + 0x31 (0x7f0000000071 in /deepspeed/toy.so)\n"
        "frame #1: toy::work() + 0x132 (0x7f0000000072 in /deepspeed/toy.so)\n"
    )
    assert watch("toy\n" + stack + OUT_OF_MEMORY + stack + RAISED).earlier == ()


def dated(minute: int, second: int = 0) -> str:
    """The first lines of a logger with dates, as rank or start writes them."""
    stamp = f"[2026-11-20 07:{minute:02}:{second:02},118][__main__][INFO] -"
    return f"{stamp} the seed of the toy is 17\n{stamp} the toy runs on one node\nprocesses of the toy: 1\n"


def test_a_start_without_a_step_begins_a_minute_behind_one_that_ended(watch: Watch) -> None:
    done = watch(dated(1) + RAISED + dated(9) + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert places(done) == [(1, 7, "exception")]


def test_ranks_print_their_first_lines_within_a_minute(watch: Watch) -> None:
    assert watch(dated(1) + RAISED + dated(1, 40) + OUT_OF_MEMORY).earlier == ()
    assert watch(dated(1) + dated(9) + OUT_OF_MEMORY).earlier == ()


def test_the_last_line_of_the_start_before_is_none_of_the_new_one(watch: Watch) -> None:
    once = "/toy/bin/python: can't open file '-cards=0': [Errno 2] No such file or directory\n"
    done = watch(once + dated(1) + RAISED + dated(9) + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert [(each.first, each.last) for each in done.earlier] == [(1, 8)]


def test_a_first_line_that_names_another_job_is_of_the_new_start(watch: Watch) -> None:
    one, other = (f"job {job} of the toy queue\n{dated(minute)}" for job, minute in ((17, 1), (18, 9)))
    assert places(watch(one + RAISED + other + OUT_OF_MEMORY)) == [(1, 8, "exception")]


def test_modules_that_a_batch_script_loads_begin_a_start(watch: Watch) -> None:
    modules = "sourcing the profile of toy\nLoading toylang/3.11.2\nreads the shards of the toy corpus\n"
    done = watch(modules + RAISED + modules + OUT_OF_MEMORY)
    assert (done.verdict.error_type, places(done)) == ("oom", [(1, 7, "exception")])
    models = modules.replace("toylang/3.11.2", "toymakers/Toy-7b")
    assert watch(models + RAISED + models + OUT_OF_MEMORY).earlier == ()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(head(1) + steps(1, 40) + "resumes\n" + steps(21, 60) + RAISED, id="a rewind in a start"),
        pytest.param(
            PLAIN_HEAD + "".join(steps(1, 9) + "validation\n" + steps(1, 3) for _ in range(9)) + RAISED,
            id="a validation counts anew",
        ),
        pytest.param(
            "".join(PLAIN_HEAD + steps(20 * epoch + 1, 20 * epoch + 20) for epoch in range(9)) + RAISED,
            id="each epoch has the same heading",
        ),
        pytest.param(PLAIN_HEAD * 8 + steps(1, 40) + RAISED, id="eight ranks print the same first lines"),
        pytest.param(
            "".join(
                f"Epoch {e} of the run\nlearning rate {e}e-4\nshuffles shard {e}\n{steps(1, 9)}"
                for e in range(9)
            )
            + RAISED,
            id="headings that count",
        ),
        pytest.param(RAISED * 6, id="one traceback of six ranks"),
    ],
)
def test_one_start_stays_one(watch: Watch, text: str) -> None:
    done = watch(text)
    assert done.earlier == ()
    assert done.verdict.state == "failed"


def test_a_start_is_found_far_behind_the_first_block_of_a_file(watch: Watch) -> None:
    done = watch(head(1) + steps(1, 10_000) + OUT_OF_MEMORY + head(2) + steps(9_000, 12_000) + RAISED)
    assert done.verdict.error_type == "exception"
    assert places(done) == [(1, 10_005, "oom")]


def test_each_start_is_replayed_once(watch: Watch) -> None:
    looked, done = list[tuple[int, int]](), watch(steps(1, 3))
    text = head(1) + steps(1, 20) + OUT_OF_MEMORY + head(2) + steps(1, 20) + RAISED + head(3) + steps(1, 20)

    def counted(files: Sequence[LogFile]) -> Replayed:
        looked.extend((file.start[1], file.stop or 0) for file in files)
        (file,) = files
        return watch(text.encode()[file.start[0] : file.stop].decode())

    ended = replay_last([LogFile("log", text.encode(), 0.0)], counted)
    assert [number for number, _ in looked] == [1, 26, 54]
    assert [each.verdict.error_type for each in ended.earlier] == ["oom", "exception"]
    assert ended.verdict.state == done.verdict.state == "healthy"


def test_a_bar_that_never_ends_its_line_costs_no_memory_and_moves_no_line() -> None:
    bar = "".join(f"\r{step:9}/9999999 [running]" for step in range(240_000))  # 6 MB
    first = head(1) + steps(1, 20) + bar + "\n"
    text = (first + OUT_OF_MEMORY + head(2) + steps(1, 20)).encode()
    tracemalloc.start()
    places = list(possible_starts(LogFile("log", text, 0.0)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(place.offset, place.number) for place in places] == [(len(first + OUT_OF_MEMORY), 27)]
    assert peak < 3_000_000


NOHUP = "nohup: ignoring input\n"
TRACKED = "wandb: Tracking run with wandb version 0.19.1\nwandb: Syncing run toy-{run}\n"
LOADS = "".join(f"loads shard {shard:02} of the toy corpus\n" for shard in range(40))


SSH = "Using ssh batch size of 1. Attempting to SSH into 1 nodes with a total of 8 workers.\n"


QUEUED = "srun: job 78 queued and waiting for resources\n"


def test_what_srun_asks_for_anew_is_another_start(watch: Watch) -> None:
    done = watch(LOADS + OUT_OF_MEMORY + QUEUED + "srun: Job has been cancelled\n")
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "restart")
    assert [each.verdict.error_type for each in done.earlier] == ["oom"]
    assert watch(QUEUED + LOADS + OUT_OF_MEMORY).earlier == ()


SUBMITIT = (
    "submitit INFO (2026-03-02 11:00:01,048) - Starting with JobEnvironment(job_id=77, hostname=n0,"
    " local_rank=0(1), node=0(1), global_rank=0(1))\n"
)
PREEMPTED = "slurmstepd: error: *** STEP 77.0 ON n0 CANCELLED AT 2026-03-02T11:40:00 DUE TO PREEMPTION ***\n"


def test_a_preempted_job_that_submitit_began_again_ends_as_its_last_start_did(watch: Watch) -> None:
    done = watch(SUBMITIT + LOADS + PREEMPTED + SUBMITIT + LOADS + OUT_OF_MEMORY)
    assert (done.verdict.error_type, done.decision.action) == ("oom", "stop")
    assert [each.verdict.error_type for each in done.earlier] == ["preemption"]
    other_task = SUBMITIT.replace("global_rank=0(", "global_rank=1(")
    assert watch(SUBMITIT + LOADS + OUT_OF_MEMORY + other_task + LOADS + RAISED).earlier == ()


SPARK = "[11:52:40,118] INFO  {SparkContext} Running Spark version 2.0.1\n"


@pytest.mark.parametrize("mark", [NOHUP, SSH, TRACKED, QUEUED, SUBMITIT, SPARK])
def test_a_start_is_known_by_words_that_each_start_prints_once(watch: Watch, mark: str) -> None:
    done = watch("toy 1\n" + mark + LOADS + RAISED + mark + LOADS + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]


CONDOR = (
    "000 (77.000.000) 03/02 10:59:01 Job submitted from host: <10.8.0.1:9618?sock=toy>\n...\n"
    "001 (77.000.000) 03/02 11:00:00 Job executing on host: <10.8.0.4:9618?sock=toy>\n...\n"
)
EVICTED = "004 (77.000.000) 03/02 11:40:00 Job was evicted.\n\t(0) Job was not checkpointed.\n...\n"
AGAIN = "001 (77.000.000) 03/02 11:50:00 Job executing on host: <10.8.0.9:9618?sock=toy>\n...\n"
GROWS = "006 (77.000.000) 03/02 11:55:00 Image size of job updated: 4188\n...\n" * 8


def test_htcondor_starts_an_evicted_job_again_by_itself(watch: Watch) -> None:
    done = watch(CONDOR + GROWS + EVICTED + AGAIN + GROWS)
    assert (done.verdict.state != "failed", done.decision.action) == (True, "none")
    assert [each.verdict.error_type for each in done.earlier] == ["preemption"]
    assert watch(CONDOR + GROWS + EVICTED).verdict.error_type == "preemption"


def test_a_mark_below_the_first_lines_of_a_start_speaks_for_them(watch: Watch) -> None:
    first = PLAIN_HEAD + TRACKED + LOADS + RAISED
    done = watch(first + PLAIN_HEAD + TRACKED + LOADS + OUT_OF_MEMORY)
    assert done.verdict.error_type == "oom"
    assert places(done) == [(1, first.count("\n") + PLAIN_HEAD.count("\n"), "exception")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TRACKED + OUT_OF_MEMORY + TRACKED + RAISED, id="the trackers of two ranks"),
        pytest.param(LOADS + OUT_OF_MEMORY + TRACKED + RAISED, id="one tracker, begun late"),
        pytest.param(NOHUP + LOADS + NOHUP + LOADS + OUT_OF_MEMORY, id="nothing had ended"),
        pytest.param(LOADS + OUT_OF_MEMORY + "see nohup: ignoring input\n" + RAISED, id="words cited"),
    ],
)
def test_such_words_begin_no_start_within_one(watch: Watch, text: str) -> None:
    done = watch(text)
    assert done.earlier == ()
    assert done.verdict.error_type == "oom"


def test_where_trackers_are_many_the_first_lines_alone_tell(watch: Watch) -> None:
    many = "".join(TRACKED.format(run=run) + LOADS.replace("toy", f"{run}th") for run in range(70))
    done = watch(head(1) + many + RAISED + head(2) + OUT_OF_MEMORY)
    assert [each.verdict.error_type for each in done.earlier] == ["exception"]


TAKEN = "slurmstepd: error: *** JOB 7 ON toy-1 CANCELLED AT 2026-03-02T11:52:40 DUE TO {} ***\n"
STOPPED = "srun: error: toy-1: task 0: Terminated\n"


@pytest.mark.parametrize(
    ("why", "error_type"),
    [("JOB REQUEUE", "preemption"), ("PREEMPTION", "preemption"), ("NODE FAILURE", "slurm_failure")],
)
def test_steps_behind_the_word_of_slurm_are_of_another_start(watch: Watch, why: str, error_type: str) -> None:
    other = "another toy is wound up\n" + steps(5, 30)
    done = watch(LOADS + steps(1, 20) + TAKEN.format(why) + STOPPED + other + RAISED)
    assert done.verdict.error_type == "exception"
    assert places(done) == [(1, 61, error_type)]
    done = watch(LOADS + steps(1, 20) + TAKEN.format(why) + STOPPED + other)
    assert (done.verdict.state, places(done)) == ("healthy", [(1, 61, error_type)])


def test_the_last_node_of_which_slurm_says_so_parts_the_starts(watch: Watch) -> None:
    nodes = "".join(TAKEN.format("PREEMPTION").replace("toy-1", f"toy-{node}") for node in range(8))
    done = watch(LOADS + steps(1, 20) + nodes + "another toy is wound up\n" + steps(5, 30) + RAISED)
    assert (done.verdict.error_type, places(done)) == ("exception", [(1, 68, "preemption")])


def test_what_an_epilog_prints_behind_the_word_of_slurm_is_no_start(watch: Watch) -> None:
    epilog = "".join(f"removed '/scratch/toy/{n}'\n" for n in range(80))
    done = watch(LOADS + steps(1, 20) + TAKEN.format("PREEMPTION") + STOPPED + epilog)
    assert (done.verdict.error_type, done.earlier) == ("preemption", ())
    limit = TAKEN.format("TIME LIMIT")
    assert watch(LOADS + steps(1, 20) + limit + steps(5, 30)).earlier == ()


def test_the_first_lines_of_a_start_are_found_behind_the_word_of_slurm(watch: Watch) -> None:
    done = watch(PLAIN_HEAD + steps(1, 20) + TAKEN.format("PREEMPTION") + PLAIN_HEAD + RAISED + LOADS)
    assert (done.verdict.error_type, places(done)) == ("exception", [(1, 24, "preemption")])


RUNNER = "[2026-03-02 11:52:40,118] [INFO] [runner.py:9:main] cmd = /toy/python -m deepspeed.toy train.py\n"


def test_the_command_of_deepspeeds_runner_begins_a_start(watch: Watch) -> None:
    done = watch(PLAIN_HEAD + RAISED + RUNNER + PLAIN_HEAD + OUT_OF_MEMORY)
    assert (done.verdict.error_type, places(done)) == ("oom", [(1, 7, "exception")])
    assert watch(PLAIN_HEAD + RAISED + "see " + RUNNER + PLAIN_HEAD + OUT_OF_MEMORY).earlier == ()


def test_files_of_many_ranks_are_cut_where_the_file_of_the_root_is(watch: Watch) -> None:
    wait = "[rank{0}]: the toy of rank {0} has no wheel\n[rank{0}]: ToyError: rank 3 is gone\n"
    late = head(2) + steps(1, 30)
    ranks = [head(1) + steps(1, 20) + wait.format(rank) + late for rank in range(12)]
    ranks[3] = head(1) + steps(1, 20) + OUT_OF_MEMORY + late
    ranks[9] += RAISED
    done = watch(*ranks)
    assert (done.verdict.error_type, done.verdict.root_file) == ("exception", "log9")
    assert "the file holds several starts, and the last one counts" in done.assumed
    assert len(done.earlier) == 1


def test_files_of_many_ranks_with_one_start_each_are_read_once(watch: Watch) -> None:
    looked = list[int]()
    files = [LogFile(f"log{rank}", (head(1) + RAISED).encode(), 0.0) for rank in range(12)]

    def counted(parts: Sequence[LogFile]) -> Replayed:
        looked.append(len(parts))
        return watch(*(head(1) + RAISED for _ in parts))

    assert replay_last(files, counted).earlier == ()
    assert looked == [12]


LOSSES = "".join(
    f"{{'loss': 1.4{n:02}, 'grad_norm': 0.7, 'learning_rate': 1e-05, 'epoch': 0.{n:02}}}\n"
    for n in range(1, 40)
)
LATE = (
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.\n"
)
CANCELLED = "slurmstepd: error: *** JOB 4711 ON toy-1 CANCELLED AT 2026-03-02T11:52:40 ***\n"


@pytest.mark.parametrize(
    "between",
    [
        CANCELLED + "SLURM_JOB_ID=4712\n",
        "SLURM_JOB_ID=4711\n" + OUT_OF_MEMORY + "SLURM_JOB_ID=4712\n",
        'export SLURM_JOBID="4711"\nthe toy is painted\nexport SLURM_JOBID="4712"\n',
        CANCELLED + "Job ID: 4712\n",
        CANCELLED + "Loading toys/2.1\n",
    ],
)
def test_unnumbered_steps_of_another_job_vouch_for_none(watch: Watch, between: str) -> None:
    done = watch("reads the toys\n" + LOSSES + between + "joins the others\n" + LATE)
    assert (done.verdict.error_type, done.decision.action) == ("rendezvous", "hold")
    assert len(done.earlier) == 1


@pytest.mark.parametrize(
    "between",
    [
        "SLURM_JOB_ID=4711\nSLURM_JOBID=4711\nJob ID: 4711\n",  # one job says its id more than once
        "Job ID: 4712\n",  # a training that goes on says which job it has submitted
        "SLURM_JOB_ID=4711\nSLURM_JOB_ID=4712\nSLURM_JOB_ID=4711\n",  # jobs that run at once
        "SLURM_JOB_ID=4711\nSLURM_ARRAY_JOB_ID=4712\nJob ID: 4.7\nthe Job ID: 4712\n",
    ],
)
def test_what_names_no_other_job_begins_no_start(watch: Watch, between: str) -> None:
    done = watch("SLURM_JOB_ID=4711\n" + LOSSES + between + "joins the others\n" + LATE)
    assert done.earlier == ()


def test_an_epilog_behind_the_end_of_its_job_is_no_start(watch: Watch) -> None:
    epilog = "SLURM_JOB_ID=4711\nSLURM_NNODES=8\nJob ID: 4711\nState: CANCELLED\n"
    done = watch("SLURM_JOB_ID=4711\n" + LOSSES + CANCELLED + epilog)
    assert done.verdict.error_type == "cancelled"
    assert done.earlier == ()


def test_behind_the_end_of_a_job_the_next_one_writes_that_slurm_ends_later(watch: Watch) -> None:
    other = CANCELLED.replace("4711", "4712")
    done = watch(LOSSES + CANCELLED + LOSSES + other)
    assert (done.verdict.root_line_number, len(done.earlier)) == (2 * LOSSES.count("\n") + 2, 1)
    assert watch(LOSSES + CANCELLED + "joins the others\n" + other).earlier == ()
