"""Start words: what a launcher, a tracker or a scheduler prints once for each start. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from midwatch.agents.replay.starts.start_times import COMPARED

MARKS = {
    b"nohup: ignoring input": 0,
    b"Using ssh batch size of ": 0,  # gcloud, before it starts a command on the workers of a TPU slice
    b":main] cmd = ": 0,  # DeepSpeed's runner, before it starts its launchers
    b" Job executing on host: <": 0,  # HTCondor's event log, which holds all starts of a job
    b" queued and waiting for resources": 0,  # srun or salloc, which ask for an allocation of their own
    b" - Starting with JobEnvironment(": 3,  # submitit, in the log of each task
    b"Tracking run with wandb version": 30,
    b" Running Spark version ": 30,  # a driver, in a log to which each start appends
    b" init nccl context nranks: ": 30,  # Paddle, of which each rank appends to a file of its own
    b" - INFO - Environment info:": 0,  # OpenMMLab up to MMCV 1, on its main rank
    b"System environment:": 0,  # the runner of MMEngine, on its main rank
    b"-Environment Information-": 0,  # Paddle's trainers of vision models
    b" Rank of current process: 0. World size: ": 0,  # Detectron2, on its main rank
    b" Rank of current process: ": 30,  # another rank, in a file of its own
    b" vLLM API server version ": 30,  # two servers of one start stand close together
    b"#### ": 0,  # a heading that is only a date, of what starts a program each night
    b"==== ": 0,
    b"ttempt ": 0,  # a script that starts its program several times
    b"espawning": 0,  # a shell's loop around a program
    b"elaunching": 0,
    b"estarting ": 0,
    b"restart counter is at ": 0,  # systemd
}
"""Words that are printed once for each start, with the lines that must stand above them since the last ones.

The first words of a tracker begin nothing: they stand behind the start's own first lines. The ranks of one
start may each start a tracker, a few lines apart.
"""
_MARK = re.compile(
    rb"\A(?:nohup: ignoring input|Using ssh batch size of "
    rb"|(?:srun|salloc): job \d+ queued and waiting for resources"
    rb"|submitit INFO \([\d :,-]+\) - Starting with JobEnvironment\(.*\bglobal_rank=0\("
    rb"|001 \([\d.]+\) [\d/-]+ [\d:.]+Z? Job executing on host: <"
    rb"|\[[\d :,-]+\] \[INFO\] \[runner\.py:\d+:main\] cmd = "
    rb"|I\d{4} [\d:.]+ +\d+ nccl_context\.cc:\d+\] init nccl context nranks: \d+ local rank: \d+"
    rb" gpu id: \d+ ring id: 0\b"
    rb"|[\d :,-]{19,24}- \w+ - INFO - Environment info:\s*\Z|System environment:\s*\Z"
    rb"|-{8,20}Environment Information-{8,20}\s*\Z"
    rb"|(?:\x1b\[[\d;]*m)*\[[^\]\n]{1,40}\](?::| [\w.]{1,40} INFO:)(?:\x1b\[[\d;]*m)*"
    rb" (?P<rank>Rank of current process: \d+)\. World size: \d"
    rb"|(?:#{5,}|={5,}) (?:\w{3},? \w{3} +\d+ [\d:]{8}(?: [AP]M)?(?: [A-Z]{2,5})? \d{4}"
    rb"|\d{4}-\d\d-\d\d[T ][\d:]{5,8}\S*) (?:#{5,}|={5,})\s*\Z"
    rb"|[=#*>~-]{2,} ?[Aa]ttempt #?\d+(?:/| of )\d+\b(?![^\n]*(?:[Ff]ail|[Ss]ucce|[Ee]nded|[Ee]xit))"
    rb"|[^\n]{0,80}\b(?:[Ss]tarting|[Bb]eginning) attempt #?\d+\b(?![^\n]*(?:[Ff]ail|[Ss]ucce))"
    rb"|[^\n]{0,80}\b[Rr]e(?:spawn|launch|start)ing (?:the |this )?"
    rb"(?:training|run|job|trainer|script|program|experiment)"
    rb"(?: (?:in \d|anew|again|now)|[.!,]{0,3}\s*\Z)"
    rb"|[^\n]{0,80}[.,:;] *[Rr]e(?:spawn|launch)ing\.{0,3}\s*\Z"
    rb"|(?:\[[^\]\n]{1,40}\] ?|[\d :,.TZ-]{10,30})?[Rr]estarting in \d+ ?s\w*[.!]{0,3}\s*\Z"
    rb"|[^\n]{0,120}: Scheduled restart job, restart counter is at \d+"
    rb"|[^\n]{0,80} \[api_server\.py:\d+\] vLLM API server version \d"
    rb"|[^\n]{0,80}\bSparkContext\b[:}\]]? Running Spark version "
    rb"|(?:\x1b\[[\d;]*m)*wandb(?:\x1b\[[\d;]*m)*: Tracking run with wandb version)"
)
LETTERS = 24
"""Letters that a row of lines needs, so that rules and blank headings begin nothing."""
_ALPHABET = range(ord("a"), ord("z") + 1)
_CHANGES = re.compile(
    rb"\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+"  # glog: a time and a process's number
    rb"|\d{4}-\d\d-\d\d|\d\d?[:/]\d\d[:/]\d\d(?:\d\d)?(?:[.,]\d+)?|0x[0-9a-f]+|\d{5,}"
    rb"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? "
    rb"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* +\d\d?\b"
)
TAKEN = b" DUE TO "
TAKEN_AWAY = re.compile(
    rb"\*\*\* (?:JOB|STEP) [^ ]+ (?:ON [^ ]+ )?CANCELLED AT [^ ]+"
    rb" DUE TO (?:JOB REQUEUE|PREEMPTION|NODE FAILURE)"
)
"""SLURM ends a start and may start the job anew, which then writes on in the same file."""


def masked(line: bytes) -> bytes:
    """The line without what changes from one start to the next: times, long numbers, addresses."""
    return _CHANGES.sub(b"#", line[:COMPARED]).strip()


def letters(row: Iterable[bytes]) -> int:
    """How many letters the lines hold."""
    return sum(byte | 32 in _ALPHABET for line in row for byte in line)


def marks_a_start(line: bytes, number: int, marked: dict[bytes, int]) -> bool:
    """Whether the line holds words that a start prints once. Notes where they stood last in `marked`."""
    found = _MARK.search(line[:COMPARED])
    if found is None:
        return False
    words = next(words for words in MARKS if words in line)
    last, least = marked.get(found["rank"] or words), MARKS[words]
    marked[found["rank"] or words] = number
    return not least or (last is not None and number - last >= least)
