"""The closing words: what the last lines of a saved log say of a failure, where no rule knows the program.

In the middle of a log such words may be anything. In the last lines, behind the last step, they are nearly
always the end. Of 963 public logs of runs that had not failed, none held such words there. So the words are
plain English, and each names the kind of failure. They prove no cause, so a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from midwatch.agents.match.printed_samples import Samples
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.log_levels import is_quiet

_LAST = 6
"""Lines from the end in which such words count, without stacks and other dumps."""
_LONGEST = 400  # bytes: a longer line is a sample, a dump or a command
VAGUE = "exception"
"""The type of words that tell of a failure and not of its kind."""

_SUBJECT = (
    r"(?:rank|worker|process|child|task|trainer|program|script|job|trial|run|experiment|training|pipeline"
    r"|workflow|execution|application|command|stage|node|agent|actor|replica|pod|container|step|call)s?"
)
_COULD_NOT = r"(?:could ?n[o']t|cannot|can't|can not|failed to|unable to|failure to)"
_LEAVES = r"(?:exit(?:ing|ed|s)?|terminat(?:ing|ed|es)|quit(?:ting|s)?|stopp(?:ing|ed)|shut(?:ting)? down)"
# The first that matches tells the kind.
_KINDS = tuple(
    (error_type, re.compile(rb"(?i)" + words.encode()))
    for error_type, words in (
        (
            "native_crash",
            r"segmentation fault|\bsegfault\b|\bcore dumped\b|(?<!pcie )\bbus error\b"
            r"|\bsignal (?:11|4|6|7|8)\b|\bSIG(?:SEGV|BUS|ABRT|ILL)\b"
            r"|\bstack smashing|\billegal instruction\b|\baccess violation\b",
        ),
        (
            "host_oom",
            r"\boom[- ]?kill|\bout[ -]of (?:host |system )?memory\b.{0,30}\bkill|\bkilled\b.{0,40}\bmemory\b"
            r"|\bcannot allocate memory\b|\bmemory (?:limit|quota) (?:exceeded|reached)"
            r"|\bexceeded\b.{0,20}\bmemory quota\b",
        ),
        ("slurm_failure", r"\A(?:srun|sbatch|salloc|slurmstepd|slurmd): (?:error|fatal): "),
        (
            "oom",
            r"(?:\b|_)out[ _-]of[ _-](?:\w+[ _-])?(?:memory|resources)\b|\b"
            + _COULD_NOT
            + r" (?:re)?allocate\b"
            r"|\ballocation of .{1,40} failed\b|\b(?:memory|buffer) allocation (?:has )?failed\b"
            r"|\b(?:not enough|insufficient) (?:\w+ )?memory\b",
        ),
        (
            "storage",
            r"\bno space left\b|\bdis[kc] (?:is )?full\b|\bquota (?:is |was |has been )?exceeded\b"
            r"|\bexceed\w*\b.{0,20}\bquota\b|\bdis[kc] quota\b|\bread-?only file ?system\b"
            r"|\bfile ?system is (?:now )?read-?only\b|\b(?:input/output|i/o) error\b|\bstale (?:nfs )?file",
        ),
        (
            "cancelled",
            r"\b(?:received|got|caught) (?:a |the )?(?:signal )?(?:SIG(?:TERM|INT|HUP)\b"
            r"|signal (?:15|2)\b|termination (?:signal|request))"
            r"|\bexit(?:[ _-]?(?:code|status))?[ =:]{1,2}143\b"
            r"|\b(?:cancell?ed|killed|terminated|stopped) by (?:the |an? )?(?:user|admin|owner|operator)",
        ),
        (
            "preemption",
            r"\bpre-?empted\b|\b(?:was|been|is|is being) (?:evicted|reclaimed)\b"
            r"|\b(?:instance|node|vm|machine|worker)\b.{0,30}\bwill be (?:terminated|stopped|shut ?down)\b",
        ),
        (
            "slurm_failure",
            r"\b(?:wall ?-?)?(?:clock )?time limit\b.{0,30}\b(?:exceeded|reached)"
            r"|\b(?:exceeded|reached)\b.{0,30}\btime limit\b|\bnode\b.{0,30}\b(?:is down|not responding)\b",
        ),
        ("communication", r"\bHTTPS?ConnectionPool\("),
        (
            "distributed_timeout",
            r"\btime[sd] out\b|[:(\[=] ?(?:\w+ ){0,2}time-?out\b(?! ?[=:])|\bdeadline exceeded\b"
            r"|(?<!\bbefore )(?<!\bbefore the )\btime-?out\b(?: (?:after|while|waiting|in|at|for|during"
            r"|expired|reached|exceeded|error|check failed)\b|[.!]?\s*$)",
        ),
        (
            "communication",
            r"\b(?:unable|failed|cannot|could not) (?:to )?connect to\b"
            r"|\b(?:connection|socket|stream|channel|link)s?\b.{0,30}\b(?:lost|broken?|reset|refused|closed"
            r"|aborted|dropped|went down|is down)\b|\blost (?:the )?(?:connection|contact|communication|link)"
            r"|\b(?:un|not )reachable\b|\bcompletion with (?:error|status)\b|\bbroken pipe\b|\bno route to\b"
            r"|\b(?:missed|no|lost)\b.{0,20}\bheart ?beats?\b"
            r"|\bheart ?beats?\b.{0,30}\bmissed\b|\bpeer\b.{0,30}\b(?:gone|died|dead|hung up)\b"
            r"|\blost (?:the )?(?:rank|worker|client|server|node|peer)s?\b"
            r"|\w(?:communication|connection|network)error\b"
            r"|\b(?:rank|worker|client|server|node|peer)s? ?#?\d* (?:has |have |was |is )?(?:been )?"
            r"disconnected\b",
        ),
        (
            "hang",
            r"\bdeadlock(?:ed)?\b|\bstuck (?:for|at|in)\b|\bno progress (?:for|in|since)\b"
            r"|\bis (?:hung|hanging|frozen)\b|\bhang detected\b",
        ),
        (
            "numerical_instability",
            r"\b(?:nan|inf|non-?finite)s?\b.{0,60}\b(?:giving up|stop|abort|exit|terminat|detected|found)"
            r"|\b(?:stop|abort|exit|terminat|end)(?:p?ing|p?ed)?\b.{0,40}\b(?:nan|inf|non-?finite|diverge)"
            r"|\b(?:policy|reward|entropy|training|model|loss) (?:has |have |is |was )?collapsed?\b.{0,40}"
            r"\b(?:stop|abort|exit|terminat|halt|end)"
            r"|\b(?:training|model|loss|optimi[sz]ation|gradients?) (?:has |have |is |was )?(?:diverged"
            r"|diverging|exploded)\b|\bloss (?:is|became|was|has become) (?:nan|inf\b|not finite|no longer)",
        ),
        (
            "hardware",
            r"\b(?:device|gpu|npu|tpu|card|accelerator)s?\b.{0,30}\b(?:lost|fell off"
            r"|in (?:an? )?(?:error|fatal) state|not found or invalid|is broken|absent|unhealthy)\b"
            r"|\bdriver error\b|\b(?:hardware|ecc|parity|machine check) (?:error|failure|fault)\b",
        ),
        ("port_in_use", r"\baddress already in use\b|\bfailed to bind\b"),
        (
            "checkpoint",
            r"\b(?:checkpoint|snapshot)s?\b.{0,40}\b(?:corrupt|failed|not found|missing|invalid|truncated)"
            r"|\b" + _COULD_NOT + r" (?:load|save|read|write|restore|resume)\b.{0,30}\bcheckpoint",
        ),
        (
            "config",
            r"\b(?:permission|access) (?:is |was )?denied\b|\[(?:Errno (?:2|13|20|21)|WinError [235])\] "
            r"|\b(?:unrecogni[sz]ed|unknown|unexpected|illegal) (?:argument|option|flag|switch)s?\b"
            r"|\blicen[sc]e (?:\w+ )?(?:failed|expired|denied|not found)\b|\bno licen[sc]es? available\b",
        ),
        (
            VAGUE,
            r"(?-i:\bCRITICAL\b)\W{1,6}.{0,80}\b(?:exception|error|fail\w*|stop\w*|abort\w*)\b"
            r"|\babort(?:ing|ed|s)\b(?! (?:0|complete))|\bunrecoverable\b|\bgiving up\b|\bgave up\b|\bfatal\b"
            r"|\A\W*(?:error|fatal|critical)\b.{1,120}\b(?:halt|stopp|exit|terminat|quitt)ing\b[.!]*\s*$"
            r"|\b" + _LEAVES + r"\b.{0,40}\b(?:errors?|failures?|abnormally|unexpectedly|exception)\b"
            r"|\b(?:due to|because of|with) (?:an? |the |previous |\d+ )?(?:unexpected |internal )?"
            r"(?:error|failure|exception)s?\b|\bassertion\b.{0,200}\bfailed\b|\bpanicked\b"
            r"|\b" + _SUBJECT + r"\b.{0,40}"
            r"\b(?:failed|crashed|died|is dead|aborted|exited unexpectedly)\b(?!: ?0)"
            r"|\b(?:has|have) failed\b|\bfailed(?: (?:because|due to|with)\b|[.!]?\s*$)|\bin error state\b"
            r"|\bnon-?zero (?:exit|status|return)|\breturned (?:[1-9]\d{0,2}|non-?zero)\s*$"
            r"|\b(?:exit|return) ?(?:code|status):? [1-9]\d*\b"
            r"|\bexit(?:(?:ed)? (?:with )?|=)[1-9]\d{0,2}\b(?! ?[./%])"
            r"|\A\W*\[FAIL(?:ED|URE)?\] .{0,80}\b(?:not found|missing|unable|could ?n[o']t|cannot|error)\b",
        ),
    )
)
# Python's messages without the exception's name, as `print(error)` gives them, at any level of a logger.
_OF_PYTHON = re.compile(
    rb"(?:\A|[\s:])(?:'\w+' object (?:has no attribute '\w+'|is not (?:callable|iterable|subscriptable))"
    rb"|(?:list|tuple|string) index out of range|name '\w+' is not defined"
    rb"|unsupported operand type\(s\) for \S+: '\w+' and '\w+'"
    rb"|\w+\(\) (?:missing \d+ required positional arguments?: '.{1,80}'"
    rb"|got an unexpected keyword argument '\w+'))\W*\Z"
)
# The line doubts it, tells of a case, of another try or of none.
_TAKEN_BACK = re.compile(
    rb"(?i)\b(?:if|may|might|possibl\w+|perhaps|whether|in case|unless|when|should|would|skip\w*|retry\w*"
    rb"|retri\w+|again|ignor\w*|fall\w* ?back|continu\w*|recover(?:ed|ing)|resum\w*|reconnect\w*|restart\w*"
    rb"|re-?queu\w*|attempt \d+|warning|early.?stop\w*|deprecat\w*|disabl\w*|instead|default|success\w*"
    rb"|(?:no|0|without(?: any)?) (?:errors?|failures?|failed|exceptions?)|(?:fail|error|abort)\w* ?[:=] ?0"
    rb"|not? (?:fail|abort|time|crash)\w*)\b"
)
_SHOWN = re.compile(
    rb"\A\s|\A[\W\d_]*\Z|\A(?:frame )?#\d|\Awandb:"  # stacks, rules, summaries
    rb"|[\w.\])]\(.*\)\s*\Z|\A(?:return|raise|assert|self\.|await|if|with)\b"  # code
    rb"|\A(?:Shared connection to |Connection to \S+ closed\.\s*\Z)"  # ssh says so at each end
    rb"|\AAborting on container exit"  # so does Compose, whatever the code
    rb"|\A[\W\d_]*(?i:giving up)[\W\d_]*\Z"  # so does a training whose patience is at its end
    rb"|\Afatal: (?:[Nn]ot a git repository|detected dubious ownership in) "  # asked for a commit
    rb"|\Afatal: destination path '.*' already exists\b"  # a notebook that clones once more
    rb"|' thrown while requesting [A-Z]+ https?:"  # the Hub's client, before it tries again or raises
    rb"|\(\d+ (?!(?:error|failure|attempt|tr(?:y|ie))s?\b)[a-z]+\):\s*\Z"  # the heading of what is counted
    rb"|\S {4,}\d+\s*\Z"  # and a row of it
)
_BAR = re.compile(rb"\d%\||\d(?:it/s|s/it)\b")
_MEASURED = re.compile(
    rb"(?:\b|_)(?i:step|epoch|iter\w*|loss|acc\w*)\b[ =:\"']+\d|(?<!\d)[:=] ?\d[\d.]*%?\s*\Z"
)
_DONE = re.compile(rb"(?i)\b(?:complete[ds]?|completion|finish(?:ed|es)|done|success\w*|saved|reached)\b")
"""Words in front of a bar, of a measured number or of work that is done ended nothing."""
_TALLY = re.compile(
    rb"(?i)\A\W*(?:all )?(?:complete[ds]?|done|finished)\b.{0,40}?"
    rb"\b(\d[\d,]*) [a-z][a-z ]{1,40}, (?:and )?(\d[\d,]*) failed\b"
)
"""What a program that is done counts: what it made, and what failed."""
_OVER = re.compile(
    rb"(?i)\b(?:training|fine-?tuning|run|job|all|everything|experiment|epochs)\b.{0,24}"
    rb"\b(?:complete[ds]?|finished|done|ended|over)\b"
)
"""Words behind the end of the whole run are of something else."""
_FRAMED = re.compile(rb"\A\s*([*=#~])\1{2,} (?P<words>[\w -]+) \1{3,}\s*\Z")
"""A heading of its program's. One that tells of each part's end in the same words knew of it before."""


def last_words(
    lines: Sequence[tuple[int, bytes]], known: Collection[int], stepped: int
) -> tuple[int, str] | None:
    """The number and the error type of the line in which the last lines tell of a failure.

    `known`: the lines that a rule tells of. `stepped`: the last line that printed a step. Words in front of
    it ended nothing. Of several lines the first that names a kind counts, or else the first.
    """
    told = [
        (number, error_type)
        for number, line in _last(lines)
        if number > stepped and number not in known and (error_type := kind_of(line))
    ]
    found = next((each for each in told if each[1] != VAGUE), told[0] if told else None)
    if found is None or _is_of_a_sample(lines, found[0]) or _is_of_one_part_s_end(lines, found[0]):
        return None
    return found


def _is_of_one_part_s_end(lines: Sequence[tuple[int, bytes]], number: int) -> bool:
    """Whether that line is a heading, and another part has one of the same words, with more in between."""
    headings = [(at, framed["words"].split()) for at, line in lines if (framed := _FRAMED.match(line))]
    own = next((words for at, words in headings if at == number), [])
    return any(
        abs(at - number) > 1 and words[1:] == own[1:] and words[:1] != own[:1] and len(own) > 1
        for at, words in headings
    )


def _is_of_a_sample(lines: Sequence[tuple[int, bytes]], number: int) -> bool:
    """Whether the training printed the line to show what its model writes."""
    start = sum(len(line) + 1 for each, line in lines if each < number)
    line = next(line for each, line in lines if each == number)
    return Samples(b"\n".join(line for _, line in lines)).hold(start, start + len(line))


def kind_of(line: bytes) -> str:
    """The error type that the words of a line name; "" if they tell of no failure."""
    words = line[front(line) :]
    if len(line) > _LONGEST or _TAKEN_BACK.search(words) or _made_most_of_it(words):
        return ""
    if _OF_PYTHON.search(words):
        return VAGUE
    if is_quiet(line):
        return ""
    return next((error_type for error_type, pattern in _KINDS if pattern.search(words)), "")


def _made_most_of_it(words: bytes) -> bool:
    """Whether a program that is done counts more that it made than what failed."""
    tally = _TALLY.match(words)
    return tally is not None and _number(tally[1]) > _number(tally[2])


def _number(count: bytes) -> int:
    return int(count.replace(b",", b""))


def _last(lines: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """The last lines behind all work, without what is only shown, from the top. None behind the run's end."""
    found: list[tuple[int, bytes]] = []
    for number, line in reversed(lines):
        words = line[front(line) :]
        if _SHOWN.search(words):
            continue
        told = kind_of(line)
        if not told and _OVER.search(words):
            return []
        works = _MEASURED.search(words) or _DONE.search(words)
        if len(found) == _LAST or _BAR.search(words) or (works and not told):
            break
        found.insert(0, (number, line))
    return found
