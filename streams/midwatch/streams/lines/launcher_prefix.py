"""What launchers, containers and log collectors print in front of each line that they pass on. Pure."""

from __future__ import annotations

import re

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_DATE = r"\d{4}[-/]\d\d[-/]\d\d"
_ZONE = r"(?: ?(?:Z|[+-]\d\d:?\d\d| (?:UTC|GMT|CES?T|[EPMC][SD]T|[KJI]ST)))?"
# Of `mpirun --timestamp-output`, and of Horovod's `--prefix-timestamp`
_ASCTIME = r"[A-Z][a-z][a-z] [A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d \d{4}"
# A host with a number and its domain. Modules and files of Python have none of these endings.
DOMAIN = (
    r"(?:local|lan|internal|cluster|hpc|edu|com|org|net|gov|de|fr|uk|ch|it|es|nl|se|fi|no|eu|ca|jp|cn|kr)"
)
_ALWAYS_THE_SAME = (
    r"\[rank\d+\]:? ?|\[[A-Za-z]\w*\d\]: ?"  # torch, torchrun --tee: the role and its rank
    rf"|(?:{_ASCTIME}|(?:{_ASCTIME})?\[\d+(?:,[\w:-]+)*\])<std\w+>: ?"  # mpirun, Horovod, SageMaker
    r"|\d+: "  # srun --label
    r"|\((?:[^()]*pid=\d[^()]*|raylet(?:, ip=[\d.]+)?|autoscaler \+[\dhms]+)\) "  # Ray, SkyPilot
    r"|[A-Za-z][\w.-]*\d +\| "  # Docker Compose
    r"|[a-z][\w.-]*\d: |\d+\.\d+\.\d+\.\d+: "  # pdsh: a host with a number
    rf"|[a-z][\w-]*\d[\w.-]*\.{DOMAIN}(?: \d+)?: "  # the same with its domain; mpiexec --label
    r"|[A-Za-z][\w.-]*/\d+ "  # TorchX, NeMo-Run: the role and its replica
    r"|\[pod/[^\]]+\] "  # kubectl logs --prefix
    r"|\[\+ *\d[\d:.]*s?\] "  # a wrapper's seconds since its start
    r"|[a-z][\w-]*-\w*\d\w* (?:pytorch|tensorflow|train(?:er|ing)?|main|node|worker|launcher|master) "
    # stern: the pod and its container, of which the usual names count
    r"|\{\w+=\"[^{}\n]*\"\} "  # Loki: the labels of the stream
    r"|\d+\.\ds[ \t]+\d+[ \t]"  # Kaggle: the seconds, and the number of the line
)
# A collector's own level stands in these: Vertex AI's workers, Airflow's operators, Determined's trials,
# Prefect's runs. Metaflow names its step. Airflow gives all that a task writes to stderr the level WARNING.
_WORKERPOOL = r"[A-Z]+[ \t][\d: +-]+[ \t]workerpool\d+-\d+[ \t]"
_OPERATOR = (
    r"\{(?:(?:subprocess|pod_\w+|process_utils|docker\w*)\.py:\d+\} INFO"
    r"|logging_mixin\.py:\d+\} (?:INFO|WARNING)) - (?:\[base\] )?"
)
_TRIAL = r"(?:[0-9a-f]{8} )?(?:\[rank=\d+\] )?\|\| (?:INFO: )?"
_FLOW = r"\| [A-Z]+ +\| (?:Flow|Task) run '[^'\n]+' - "
# Polyaxon names its replica.
_REPLICA = r"(?:master|worker|ps|chief|launcher)\.\d+ -- "
_STEP = r"\[\d+/\w+/\d+ \(pid \d+\)\] "
_WITH_A_CLOCK = (
    # Containers, CI services (GitLab numbers its streams), ts, exports of CloudWatch, `aws logs tail` with
    # the stream of SageMaker, Batch or ECS.
    rf"\[?{_DATE}(?:T|,? ){_CLOCK}{_ZONE}"
    rf"(?:\t|\]? (?:std(?:out|err) [FP] |\d\d[OE][ +]|[\w./-]+/(?:algo-\d+-\d+|[0-9a-f-]{{32,36}}) "
    rf"|{_OPERATOR}|{_TRIAL}|{_STEP}|{_REPLICA})?)"
    rf"|[A-Z][a-z][a-z] [ \d]\d {_CLOCK} (?:[\w.-]+ (?:[\w./@-]+\[\d+\]|kernel): )?"  # syslog, journald, ts
    rf"|{_DATE} {_CLOCK}: "  # nnU-Net
    rf"|[A-Za-z][\w ().,/+:-]*\t[^\t\n]*\t{_DATE}T{_CLOCK}Z "  # gh run view --log: the job and its step
    rf"|\[?{_CLOCK}\]? (?:{_FLOW})?"
)
# A program's logger at level INFO, as a wrapper uses it to pass on each line of what it started. Celery
# passes on all that its tasks print, at a level of its settings, which is WARNING unless somebody sets it.
_LOGGER = (
    rf"(?:\[{_DATE} {_CLOCK}: (?:INFO|WARNING)/\w+(?:-\d+)?\] "
    r"|- (?:[\w.]+ - )?INFO - |\| INFO +\| (?:[\w.:<>]+ - )?|INFO:[\w.]+:"
    rf"|(?:\[{_DATE} {_CLOCK}\])?(?:\[[\w.]+\] ?)?\[INFO\] ?(?:- )?)"
)
COLLECTED = rf"(?: *(?:{_ALWAYS_THE_SAME}|{_WITH_A_CLOCK}|{_WORKERPOOL}))*"
LOGGED = rf"{COLLECTED} *{_LOGGER}"
"""A pattern of such prefixes, the last of which is that of a logger which passes on lines; behind `^`."""

FRONT = rf"(?: *(?:{_ALWAYS_THE_SAME}|{_WITH_A_CLOCK}|{_WORKERPOOL}|{_LOGGER}))*"
"""A pattern of any number of such prefixes, for RE2 and for `re`; behind `^`.

A clock at the beginning is one too, whoever printed it: the line's own words stand behind it.
"""
_LONGEST = 240
_FRONT = re.compile(FRONT.encode())
# Tools of SLURM, logs of torch and glog, NCCL, kernels, the end of C++ programs, a shell, argparse, THC, HIP
# and LSF begin so. So does an exception with its module's name. No message of a logger does.
OF_ANOTHER = (
    r"(?:slurm[\w-]+|srun|sbatch|salloc): |\[[EF](?:\d{3,4} [\d:.]+)? ?\w+\.(?:cpp|cc|hpp|h):"
    r"|[EF]\d{4} \d\d:\d\d:\d\d|[\w.-]+:\d+:\d+ \[\d+\] |\[ *\d+\.\d{6}\] |NVRM: |terminate called "
    r"| *what\(\): |Fatal Python error: |\S+: line \d+: +\d+ [A-Z]|\S+\.py: error: |THCudaCheck FAIL "
    r"|HW Exception by GPU|TERM_[A-Z]+: "
    r"|(?:[a-z]\w*\.)+[A-Z]\w*(?:Error|Exception): "
)
_LOGGED = re.compile(LOGGED.encode())
_GRADE = re.compile(
    rf"{LOGGED}(?={COLLECTED}(?:{OF_ANOTHER}))|{_WORKERPOOL}"
    rf"|\[{_DATE}(?:T|,? ){_CLOCK}{_ZONE}\] (?:{_OPERATOR}|{_TRIAL})|{_CLOCK} {_FLOW}".encode()
)


def front(line: bytes) -> int:
    """How many bytes of a line, of at most its first 240, are such prefixes."""
    found = _FRONT.match(line, 0, _LONGEST)
    return found.end() if found else 0


def logged(line: bytes) -> int:
    """How many bytes of a line are a head that ends with such a logger's level; 0 without one."""
    found = _LOGGED.match(line, 0, _LONGEST)
    return found.end() if found else 0


def grade(line: bytes) -> int:
    """How many bytes of a line are a head in which a collector gives a level that is not the line's own."""
    found = _GRADE.match(line, 0, _LONGEST)
    return found.end() if found else 0
