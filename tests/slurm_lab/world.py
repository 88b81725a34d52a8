"""A scheduler as nasty as a real one, in memory: late submissions, lost answers, crashes that forget."""

from __future__ import annotations

from dataclasses import dataclass, field

from midwatch.agents.schedulers.base import SchedulerEpoch, SchedulerJob, StartState

KEY = "k" * 32
OLD_ID = 1
SAVED_AFTER_S = 5.0  # SLURM writes its state this late at most
ORPHANS_KILLED_S = 5.0


@dataclass(slots=True)
class Job:
    id: int
    key: str
    state: str  # held, queued, running, ending, ended
    made_at: float
    word: str = ""
    saved: tuple[str, str] | None = None  # state and word as they are on disk
    changed_at: float = 0.0
    ends_at: float = 0.0


@dataclass(slots=True)
class World:
    """The truth, and the laws that it breaks: `starts` and `overlaps` are what a test judges by."""

    now: float = 1000.0
    jobs: dict[int, Job] = field(default_factory=dict)
    next_id: int = 2
    booted_at: float = 0.0
    boots: int = 0
    frozen: bool = False
    in_flight: list[float] = field(default_factory=list)  # submissions that land at that time
    starts: list[int] = field(default_factory=list)
    overlaps: int = 0

    def __post_init__(self) -> None:
        self.jobs[OLD_ID] = Job(OLD_ID, "", "running", 0.0, saved=("running", ""))

    # What happens by itself

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.frozen:
            return
        for job in list(self.jobs.values()):
            if job.state == "ending" and self.now >= job.ends_at:
                self._become(job, "ended", job.word)
            if self.now - job.changed_at >= SAVED_AFTER_S:
                job.saved = (job.state, job.word)
        for when in [when for when in self.in_flight if when <= self.now]:
            self.in_flight.remove(when)
            self.jobs[self.next_id] = Job(self.next_id, KEY, "held", self.now, changed_at=self.now)
            self.next_id += 1
        self._schedule()

    def _schedule(self) -> None:
        old = self.jobs.get(OLD_ID)
        for job in self.jobs.values():
            if job.state == "queued" and (old is None or old.state == "ended"):
                self.starts.append(job.id)
                others = [j for j in self.jobs.values() if j is not job and j.state in ("running", "ending")]
                self.overlaps += len(others)
                self._become(job, "running", "")

    def old_dies(self) -> None:
        old = self.jobs.get(OLD_ID)
        if old and old.state == "running":
            self._become(old, "ended", "FAILED")

    def crash(self) -> None:
        """kill -9 and a new start of slurmctld: what was not saved never was, and ids are given again."""
        if self.frozen:
            return
        for job in list(self.jobs.values()):
            if job.saved is None:
                del self.jobs[job.id]
            else:
                job.state, job.word = job.saved
                job.changed_at = self.now
        self.next_id = max([OLD_ID, *self.jobs]) + 1
        self.boots += 1
        self.booted_at = self.now

    # What the executor can do

    def submit(self, delay: float) -> None:
        self.in_flight.append(self.now + delay)

    def release(self, native: str, key: str) -> None:
        job = self.jobs.get(int(native))
        if not self.frozen and job and job.key == key and job.state == "held":
            self._become(job, "queued", "")
            self._schedule()

    def cancel(self, native: str, key: str) -> None:
        job = self.jobs.get(int(native))
        if self.frozen or job is None or (key and job.key != key):
            return
        if job.state in ("held", "queued"):
            self._become(job, "ended", "CANCELLED")
        elif job.state == "running":
            job.ends_at = self.now + 2.0
            self._become(job, "ending", "CANCELLED")

    def ours(self) -> list[SchedulerJob]:
        return [self._shown(job) for job in self.jobs.values() if job.key == KEY]

    def state(self, native: str) -> StartState:
        job = self.jobs.get(int(native))
        return self._shown(job).state if job else StartState("absent")

    def epoch(self) -> SchedulerEpoch:
        return SchedulerEpoch(str(self.boots), self.now - self.booted_at)

    def _become(self, job: Job, state: str, word: str) -> None:
        job.state, job.word, job.changed_at = state, word, self.now

    def _shown(self, job: Job) -> SchedulerJob:
        state = StartState(job.state, word=job.word)  # type: ignore[arg-type] # one of the Kinds by construction
        return SchedulerJob(str(job.id), f"slurm:{job.id}:0", state, effect_key=job.key)


@dataclass(slots=True)
class Store:
    """Keeps one value with compare-and-set, as the executor's Redis does."""

    value: dict[str, str] = field(default_factory=dict)
    version: int = 0

    def keep(self, value: dict[str, str], version: int) -> bool:
        if version != self.version:
            return False
        self.value, self.version = dict(value), version + 1
        return True
