"""Failures that we provoked, and noisy runs that did well: each log has the verdict that its cause asks for.

`provoked/` holds what our own programs printed, one labelled log a line, in the format of `midwatch rules
score`. The cause is known by construction, so a label is no opinion. Two ranks and more of PyTorch 2.15 on
gloo with Lightning, Transformers, Accelerate and DeepSpeed; JAX 0.10, TensorFlow, Ray, MPI, boosters and
batch scripts; one H200 with PyTorch 2.11, Triton, CuPy and CUDA, and jobs of nvidia-resiliency-ext 0.7,
DeepSpeed 0.19, TRL 1.16, JAX 0.11 and Lightning on another; SLURM 22.05; many ranks of each under faults
of memory, disks, files and peers; scripts that go on behind a failure, without a card; modules that Python
runs, which print behind their traceback; and stores, hubs, trackers and networks that go away.
Only folders and names were changed, and the middle of a long log may be left out.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from midwatch.agents.cli.rules.score import judge_of_logs
from midwatch.agents.replay.scoring import Labelled, leniently, mistakes, read_labelled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from midwatch.agents.replay.scoring import Prediction

FILES = sorted((Path(__file__).parent / "provoked").glob("*.jsonl"))

# What midwatch does not see, and why. A mend takes its line away, for the test then fails.
MISSED = {
    "lr-spike-guard": "a guard gives a rate back that was too high, and the log goes on with many steps",
    "nan-partial-save": "a partial model is saved behind the broken loss, and the script goes on",
    "soup-of-ckpts": "checkpoints that do not fit are left out, and a hash is the last line",
    "user-cancel-cleanup": "a cleaning that follows the user's cancel reads like work",
    "anytime-search": "an interrupt by the search's own clock looks like a person's",
    "asr-manifest": "a table that counts errors by their names looks like a failure",
    "corpus-chain": "a script goes on behind an optional command, and only its trace shows it",
    "deadlock-prefetch-watchdog": "the watchdog of the program itself ends it, and a later stage goes on",
    "fed-turbines": "updates of clients that were lost are counted in the last line",
    "gloo-barrier-late-node": "the rank that named the late one is given, not the first that saw an error",
    "incident-rag": "documents about failures that a search prints look like failures",
    "cachefs-detach": "a bus error is mostly a full memory, and a service beside it tells of the lease",
    "drained-third-rank": "ranks that never met are held, though the launcher says why one was ended",
    "export-menu": "stages in own processes, of which those that must work did; a pipe may lose a code",
    "export-zero-artifacts": "what was left undone is named, and not the failure, which many lines tell",
    "fed-hospitals": "clients that crash are skipped, and the last line tells of replies that are missing",
    "fed-quorum": "the same",
    "fed-rounds-device-assert": "only a table whose later rows stand still shows that no round trained",
    "fifo-feed-stall": "the last step of the wait is named, not the first read of the feed that stalled",
    "ivf-shards": "a time-out that the program got over, and then the wrong setting without a step between",
    "loader-deadlock-monitor": "the last step is named, not the watchdog's word that no further one came",
    "metrics-endpoint": "a refused probe stands in front of the port that was taken",
    "peer-vanishes-ddp": "a kill from outside is read as the host's memory",
    "release-chain": "a script goes on behind commands that failed, and only its trace shows it",
    "sr-oom-then-report": "the results that a later stage prints are an older run's",
    "sweep-flag-renamed": "the same: three starts refuse an option, and a summary of older runs follows",
    "tool-agent": "a crash that an agent's tool printed has no traceback of the agent",
    "tuner-all-trials-failed": "what was left undone is named, not the trials' exception",
    "distill-teacher-gone": "batch sizes that did not fit come first, and without a step another failure",
    "sweep-all-lost": "the same",
    "emb-assert": "the exception is named, not the kernel's asserts above it, which have a clock",
    "bucket-quota": "the program's own exception is named, not the refusals of its bucket above it",
    "ckpt-eval": "the last of three checkpoints that cannot be read is named, not the first",
    "export-many-targets": "an optional target's missing module is named, not the one that must work",
    "replay-server-dead": "the consequence in a reader is named, not the lost connection above it",
    "three-stage": "a prefix that is no launcher's hides the stage's own exception",
    "trainer-allmasked": "the last words of a broken loss are named, not its first line",
    "uneven-ranks": "ranks with unequal batches look like a lost peer: it is restarted",
    "upload-stall-barrier": "the barrier that ran out is named, not the upload that stalled before it",
    "val-longer-than-timeout": "behind a restart the groups never met, and the agent's exit line is named",
    "metrics-db-locked": "a locked data base is held: it may be a race, or a file system without locks",
    "one-rank-keyerror": "the rank's exit code is named, not its own warning that it leaves the loop",
    "vision-hang-stop": "a log that stops between two steps shows no failure; the watch sees the silence",
    "g75-hang-kernel": "the same",
    "jax-prefetch-stall": "the same",
    "g28-cublas-alloc-full": "an entropy that is no number in each step is a measure like others",
    "g42-nccl-watchdog": "a kernel that blocks the stream looks like a lost rank: it is restarted",
    "mpi-pipe-deadlock": "the program's own timer fires in a deadlock by construction: it is restarted",
    "elastic-store-node-lost": "the file of this node shows no step, so nothing shows that the start works",
    "jax-coordinator-lost": "the same",
    "slurm-step-launch-node-gone": "a stage had reported success, and that is not run again by itself",
    "slurm-controller-away": "the same",
    "dataworker-bus-error-late": "a bus error is mostly a full /dev/shm, and the log tells no other reason",
    "torchrun-rank-bus-error": "the same",
    "shard-reader-stuck": "a log that stops between two steps shows no failure",
    "ddp-lr-jump-loss-spike": "the run reports its end, so nobody asks whether its loss came back",
    "feeder-trainer-lock-cycle": "the two stacks that wait for each other are read as a hang",
    "lightgbm-two-workers-one-lost": "LightGBM's callback prints rounds that are no known step",
    "tf-multiworker-peer-reset": "the shell's word `Killed` is mostly the kernel's, for memory",
    "torchrun-store-host-lost": "the first broken link is named, not the store that was lost with it",
    "ps-pair-server-lost": "a pipe of multiprocessing mostly leads to a child, whose own error is the cause",
    "nvrx-03-heartbeat-hang": "two ranks print their last line in one moment, and the other's was taken",
    "nvrx-11-section-timeout": "the same",
    "hf-bert-eval-sidecar-dies": "a child's assert, and only a later line says that the training goes on",
    "pipeline-optional-export": "only the heading of the stage that failed says that it is optional",
    "g124-eval-undefined-metrics": "`loss: nan for absent classes is expected` reads like a loss",
    "spot-reclaim": "steps behind a reclaim notice undo it, and the kill is read as the host's memory",
    "walltime-ru": "the words of the shell that ended it are Russian",
    "audio-mmap": "its cause is a warning far above, and torch blames shared memory",
    "tiny-transformer-restart": "a loss that stays high behind the program's own word of success",
    "asr-frame-ce": "an objective that is no number, in words that no rule knows, up to a good end",
    "elastic-coord": "the notice of an agent above the broken links is no rule's",
    "registry-hang": "the rank that waited for a service says nothing, so the others' wait is taken",
    "tok-cache-lock": "the same: the lock is held by another script",
    "gan-eval-order": "collectives in another order show only as a wait: it is restarted",
    "sales-forecast-ddp": "one rank ends early and well; only its count of windows tells why",
    "one-rank-drops-its-shard": "a rank says in its own words that it leaves, and all others end well",
    "jax-featurize-skips-all": "each sample is skipped by a warning; the error that is left is taken",
    "wav-convert": "the same: the first child's error tells more than the sum",
    "tabular-embed": "an optional import above is taken for the cause of the shape error",
    "vit-save-quota": "the disk's limit shows as an error of a stream that a later exception hides",
    "resume-weights-only": "a probe's memory error above, printed by a handler, is taken for the end",
    "triton-softmax-width": "the tuner's rejected configurations are taken for the end",
    "diffusers-xformers-off": "an optional import above is taken, and the fallback's own error is not",
    "gloo-rank0-barrier": "the barrier's traceback holds no exception, so the launcher's notice is taken",
    "scancel-user": "the controller's own line on `scancel` is no rule's",
    "scratch-full-507": "the last refusal is named and held, not the warning of the first one",
    "featcache-port": "a warm-up that trains looks like steps, so the refused service is taken to be away",
    "ft-index-lock": "the last line before the silence is another rank's",
    "forecast-drain-hang": "the command `timeout` ended it, and the silence before it is not asked for",
    "dqn-async": "the learner's thread ended, and the actor counts on to its end",
    "eeg-pool": "tasks that are skipped by a warning, up to a good end",
    "ddp-rank-killed": "a SIGKILL is read as the host's memory killer",
    "loader-worker-killed": "the same",
    "master-port-leftover": "nothing tells that the port is free again",
    "oom-neighbour": "another process holds the card's memory, and nothing tells that it leaves",
    "sqlite-locked": "nothing tells that the other writer leaves",
    "token-expired": "nothing tells that a new start brings a new token",
    "timelimit-usr1": "a time limit is no preemption, though the job saved a checkpoint",
    "severity-classifier": "a classifier of log lines prints its samples",
    "selfplay-c4": "the same, with one step behind the last",
    "nccl-probe-gloo": "the script's report is cut by `head`, and Python tells of the broken pipe",
    "skipgram-head-pipe": "the same",
    "download-retry": "a service that failed at first, and a server that the script kills at the end",
    "pipeline-optional-profile": "a stage that the script calls optional crashes, in the shell's words",
    "clip-video-teardown": "it crashes in its teardown, and only the script tells that all is written",
    "all-batches-skip": "each batch is skipped with a warning, and the count goes on to its end",
    "supervisor-starts": "a supervisor kills the last start, and no line says so",
    "two-stage-scorer": "a scorer in a process of its own counts on to its total",
    "pretrain-spike-stop": "the first broken loss is named, not the program's word on it",
    "ckpt-audit": "checkpoints that cannot be read are counted, and a list of them stands at the end",
    "hpo-grid-by-hand": "trials fail in processes of their own, and only a table tells of the others",
    "numbers-only": "children crash, in the shell's words behind the last numbers",
    "vecenv-respawn-a2c": "environments that crash in children are started anew, in the program's own words",
    "feature-cache-refresh": "the last step is named, not the dump of the stacks behind it",
    "shards-over-http": "the first refused request is named, and a service that left is held",
    "crossval-executor": "only the list of the scored folds tells that seven of eight are missing",
    "fortran-style-solver-net": "a number that did not fit its column is printed as stars",
    "hf-poisson-trainer": "the mean loss at the end is named, not the first infinite gradient",
    "hpo-grid-heads": "the count of failed trials is named, not the exception that each of them had",
    "lang-filter-pipeline": "each stage reads nothing and writes nothing, and only the counts tell it",
    "operator-stop-order": "a person's order to stop is followed by a long orderly cleaning",
    "prefetch-table": "the thread that feeds the training ended, and its table stands still",
    "remote-shards-skip": "the count of the shards is named, not the service that refused them",
    "six-stage-job": "a stage lacked a module, and the later ones go on without its output",
    "spike-guard-report": "the count of what was trained is named, not the infinite loss",
    "stuck-loader-publish": "the training stood still, and a later stage reports on its old points",
    "weekly-retrain-report": "the training ended of an exception, and the script reports on an older model",
    "pipeline-allow-failure": "stages that may fail stand in a table as such, and chains of exceptions above",
    "attn-width-search": "only the table of the search tells that nine of twelve trials failed",
    "birdsong-linear-probe": "a warning alone tells that the probe goes on with random weights",
    "ecg-six-folds": "only the list of the scored folds tells that three of six are missing",
    "fungi-probe-mirror": "another mirror answered, and the program says so in its own words",
    "review-tone-stream": "the thread that reads ended, and the last batch is trained again and again",
    "soil-report-setx": "a script goes on behind an optional command, and only its trace shows it",
    "sweep-no-trial-completed": "the summary of the search is named, not its first trial's failure",
}


def _rows() -> Iterator[Labelled]:
    for file in FILES:
        lines = file.read_text("utf-8").split("\n")
        rows = (
            (number, msgspec.json.decode(line, type=dict[str, object]))
            for number, line in enumerate(lines, 1)
            if line
        )
        yield from read_labelled(rows, str(file))


ROWS = {row.id: row for row in _rows()}


@cache
def judge() -> Callable[[str], Prediction]:
    return judge_of_logs()


def _case(name: str) -> object:
    why = MISSED.get(name)
    return pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=why) if why else ())


@pytest.mark.parametrize("name", [_case(name) for name in ROWS])
def test_a_provoked_end_has_its_verdict(name: str) -> None:
    row = ROWS[name]
    assert mistakes(leniently([(row, judge()(row.log))])) == []


def test_each_log_has_its_own_name_and_each_root_stands_in_its_log() -> None:
    assert len(ROWS) == sum(1 for _ in _rows())
    assert MISSED.keys() <= ROWS.keys()
    for row in ROWS.values():
        lines = [part.strip() for line in row.log.split("\n") for part in (line, line.rpartition("\r")[2])]
        assert not row.failed or row.root_line in lines, row.id
