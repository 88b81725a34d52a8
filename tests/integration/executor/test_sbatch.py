"""`midwatch run -- sbatch …` on a real SLURM does as sbatch does: names, answers, and the environment."""

from __future__ import annotations

import json
import os
import re
import secrets
import stat
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from executor_world import World, midwatch
from midwatch.agents.launch.job_spec import Started
from midwatch.agents.schedulers.resume import SHOWN
from midwatch.streams.records.codec import decode
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.records.identity import native_id
from slurm_lab.lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.slurm]

OVER = ("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL")
SECRET = "a-secret-of-the-person"


def typed(cluster: World, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`midwatch run --act`, as a person with these variables types it."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "midwatch", "run", "--act", *words],
        env=cluster.environment | variables,
        cwd=cluster.directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def id_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def shown(slurm: Lab, native: str, field: str) -> str:
    """One field of `scontrol show job`."""
    words = slurm.run("scontrol", "show", "job", native).stdout.split()
    return next(word.partition("=")[2] for word in words if word.startswith(f"{field}="))


def noting(cluster: World, *lines: str, code: int = 0) -> tuple[Path, Path]:
    """A batch script that writes down its environment, a file for each start; and their folder."""
    script = cluster.directory / f"t-{secrets.token_hex(4)}.sh"
    folder = script.with_suffix(".environments")
    folder.mkdir()
    script.write_text(
        "\n".join(
            ["#!/bin/bash", *lines, f"UMASK_SEEN=$(umask) env -0 > {folder}/$SLURM_JOB_ID", f"exit {code}"]
        )
        + "\n"
    )
    return script, folder


def environment(folder: Path, native: str) -> dict[str, str]:
    entries = (folder / native).read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if entry)


def test_a_script_that_needs_a_variable_of_the_person_finds_it(slurm: Lab, cluster: World) -> None:
    script, found = cluster.directory / "t.sh", cluster.directory / "found"
    script.write_text(
        f"#!{sys.executable}\n#SBATCH --ntasks=1\n"
        f"import os, pathlib\npathlib.Path({str(found)!r}).write_text(os.environ['RUN'])\n"
    )
    native = id_of(typed(cluster, "--", "sbatch", str(script), RUN="x"))
    assert slurm.wait_state(native, *OVER) == "COMPLETED"
    assert found.read_text() == "x"


@pytest.mark.parametrize(
    ("line", "options", "name"),
    [
        ("#SBATCH --job-name=named", (), "named"),
        ("#SBATCH -J named", ("--job-name=other",), "other"),
        ("", (), "t.sh"),
    ],
)
def test_the_name_of_the_script_is_the_jobs_name_and_that_of_its_output(
    slurm: Lab, cluster: World, line: str, options: tuple[str, ...], name: str
) -> None:
    script = cluster.directory / "t.sh"
    script.write_text(f"#!/bin/sh\n{line}\n#SBATCH --output={cluster.directory}/%x.out\necho here\n")
    native = native_id(cluster.run("sbatch", *options, str(script)).incarnation)
    assert shown(slurm, native, "JobName") == name
    slurm.wait_state(native, *OVER)
    assert "here" in (cluster.directory / f"{name}.out").read_text()


def test_parsable_prints_the_bare_id_and_a_wrapped_command_has_its_name(slurm: Lab, cluster: World) -> None:
    done = typed(cluster, "--", "sbatch", "--parsable", "--wrap", "hostname")
    assert done.returncode == 0, done.stderr
    assert done.stdout.removesuffix("\n").isdigit(), done.stdout
    assert shown(slurm, done.stdout.strip(), "JobName") == "wrap", "the name that sbatch gives it"


def started_as(cluster: World, job: str, native: str) -> Started:
    """The start that a `midwatch run` of another process made."""
    specs = [decode(m.value) for m in cluster._read(cluster.settings.topic_names.specs)]
    spec = next(spec for spec in specs if spec.job.endswith(f"/{job}"))
    return Started(spec, f"slurm:{native}:0")


# Of one start alone, or said by SLURM of the place where the start runs.
OF_ONE_START = re.compile(
    r"SLURM_(JOB|JOBID|TASK_PID|NODE|STEP|TOPOLOGY|SUBMIT|GTIDS|CPUS|CONF_|JOB_).*|SLURMD_NODENAME|HOSTNAME|_|"
    r"MIDWATCH_(ATTEMPT|INCARNATION|RESUME_FROM|RESUME_STEP)|SLURM_PRIO_PROCESS|TMPDIR|SHLVL|SLURM_OPEN_MODE"
)


@dataclass(frozen=True)
class Case:
    """One way to say which variables go along; `absent` and `present` are seen at both starts."""

    options: tuple[str, ...] = ()
    line: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    present: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()


PERSON = {
    "RUN": SECRET,
    "EMPTY": "",
    "DISPLAY": ":7",
    "TEXT": "two\nlines, 'and' \"quotes\" = $HOME",
    "KEPT": "k",
}
CASES = {
    "all": Case(present=PERSON),
    "none": Case(("--export=NONE",), absent=("RUN", "KEPT")),
    "list": Case(
        ("--export", f"KEPT,GIVEN={SECRET}-2"),
        present={"KEPT": "k", "GIVEN": f"{SECRET}-2"},
        absent=("RUN", "TEXT"),
    ),
    "line": Case(line="#SBATCH --export=KEPT", present={"KEPT": "k"}, absent=("RUN",)),
    "own": Case(
        line=f"#SBATCH --export=KEPT,GIVEN={SECRET}-3",
        present={"KEPT": "k", "GIVEN": f"{SECRET}-3"},
        absent=("RUN",),
    ),
    "variable": Case(variables={"SBATCH_EXPORT": "RUN"}, present={"RUN": SECRET}, absent=("KEPT",)),
    "file": Case(("--export-file=vars",), present={"OF_FILE": "two words"}, absent=("RUN", "KEPT")),
    "both": Case(("--export=ALL,KEPT=other",), present=PERSON | {"KEPT": "other"}),
}


def test_every_start_gets_the_environment_that_sbatch_sends_and_no_topic_or_log_holds_it(
    slurm: Lab, cluster: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.executor()
    (cluster.directory / "vars").write_bytes(b"OF_FILE=two words\0")
    settings = {"MIDWATCH_CONFIG": str(cluster.file)}
    folders, started, seen = {}, {}, {}
    for name, case in (CASES | {"spoiled": Case()}).items():
        script, folders[name] = noting(cluster, *filter(None, [case.line]), code=1)
        words = ("sbatch", f"--output={cluster.directory}/%x-%j.out", *case.options, str(script))
        with monkeypatch.context() as typing:
            for variable, value in {**PERSON, **case.variables}.items():
                typing.setenv(variable, value)
            mask = os.umask(0o027)
            try:
                started[name] = cluster.run(*words, settings=settings)
            finally:
                os.umask(mask)
    spoiled = started.pop("spoiled")
    file = Path(spoiled.spec.environment_file)
    file.write_bytes(file.read_bytes() + b"LD_PRELOAD=/tmp/x\0")
    orders = {}
    for name, one in (started | {"spoiled": spoiled}).items():
        cluster.await_end(one)
        orders[name] = cluster.order(one)
        cluster.send(orders[name])
    for name, one in started.items():
        done = cluster.await_outcome(orders[name], "done", "failed", limit=120)
        assert done.state == "done", done.reason
        slurm.wait_state(done.new_native_id, *OVER)
        natives = (native_id(one.incarnation), done.new_native_id)
        seen[name] = [environment(folders[name], native) for native in natives]
    for name, case in CASES.items():
        first, second = seen[name]
        for variables in (first, second):
            assert {n: variables.get(n) for n in case.present} == dict(case.present), name
            assert not set(case.absent) & variables.keys(), name
            umask_and_name = (variables["UMASK_SEEN"], variables.get("SLURM_JOB_NAME"))
            assert umask_and_name == ("0027", folders[name].with_suffix(".sh").name), name
            assert variables["MIDWATCH_CONFIG"] == str(cluster.file), "the watch finds its settings"
        assert _lasting(first) == _lasting(second), name
        assert second["MIDWATCH_ATTEMPT"] == "2"
        assert second.get("SLURM_EXPORT_ENV") == _for_steps(first.get("SLURM_EXPORT_ENV"))

    why = cluster.await_outcome(orders["spoiled"], "failed", "done", limit=120).reason
    assert "the job's environment was changed after it was signed" in why
    key = effect_key(spoiled.spec.job, 1, "start")
    assert not [row for row in slurm.queue() if key in row.comment], "nothing was started"

    of_job = {file for folder in folders.values() for file in folder.iterdir()}
    kept = cluster.settings.state_directory / "environments"
    own = {file for file in cluster.directory.rglob("*.sh") if "#SBATCH --export=KEPT,GIVEN=" in _text(file)}
    held = {path for path in cluster.directory.rglob("*") if path.is_file() and SECRET in _text(path)}
    assert held <= {*kept.iterdir(), *of_job, *own}, "neither a log nor another file holds it"
    assert held & {*kept.iterdir()}
    for topic in cluster.settings.topic_names.specifications():
        for message in cluster._read(topic.name):
            assert SECRET.encode() not in repr((message.value, message.headers)).encode(), topic.name
    assert all(not one.spec.environment for one in started.values())
    scripts = cluster.settings.state_directory / "scripts"
    assert own & {*scripts.iterdir()}
    assert (_modes(kept), stat.S_IMODE(kept.stat().st_mode), _modes(scripts)) == ({0o600}, 0o700, {0o700})


def _modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def _for_steps(export: str | None) -> str | None:
    """What srun in the script hands on at a restart: as at the first start, and what the shim sets."""
    if export is None:
        return None
    return ",".join([*([] if export == "NONE" else [export]), *SHOWN])


def _lasting(variables: Mapping[str, str]) -> dict[str, str]:
    return {n: v for n, v in variables.items() if not OF_ONE_START.fullmatch(n) and n != "SLURM_EXPORT_ENV"}


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def test_a_dependent_of_a_restarted_job_is_told_and_pointed_at_the_new_start_where_it_follows(
    slurm: Lab, cluster: World
) -> None:
    cluster.executor()
    first = cluster.directory / "first"
    script = cluster.directory / "t.sh"
    script.write_text(
        f"#!/bin/sh\nif [ -e {first} ]; then sleep 2; exit 0; fi\ntouch {first}\nsleep 3; exit 1\n"
    )
    failing = cluster.run("sbatch", str(script), job="failing")
    old = native_id(failing.incarnation)
    dependency = ("sbatch", f"--dependency=afterok:{old}", "--wrap", "true")
    followers = [
        cluster.run(*dependency, job="follower", follow=True),
        cluster.run(*dependency, job="another"),
    ]
    follower, another = (native_id(one.incarnation) for one in followers)
    stranger = slurm.submit(f"--dependency=afterok:{old}", script="true")
    cluster.await_end(failing)
    order = cluster.order(failing)
    cluster.send(order)
    done = cluster.await_outcome(order, "done", "failed", limit=120)
    new = done.new_native_id
    assert slurm.wait_state(follower, *OVER) == "COMPLETED"
    assert [slurm.state(one) for one in (another, stranger)] == ["PENDING"] * 2
    pointed = f"job {follower} waited for {old}, and now waits for {new}"
    waits = (
        f"job {another} waits for {old}, which was started again as {new}: it was not started with"
        f" `midwatch run --follow`; `scontrol update jobid={another} dependency=afterok:{new}` lets it wait"
    )
    told = {name: midwatch(cluster, "why", name).stdout for name in ("failing", "follower", "another")}
    told = {name: " ".join(text.split()) for name, text in told.items()}
    assert pointed in told["failing"]
    assert waits in told["failing"]
    assert f"job {stranger} waits for {old}" in told["failing"]
    assert pointed in told["follower"]
    assert waits in told["another"]
    assert pointed not in told["another"]


@pytest.mark.capability("X-50")
def test_each_task_of_an_array_is_watched_and_started_again_as_itself(slurm: Lab, cluster: World) -> None:
    cluster.executor()
    folder, checkpoints = cluster.directory / "seen", cluster.directory / "checkpoints"
    folder.mkdir()
    for task in (3, 5):
        written = checkpoints / str(task) / f"step_{task}0"
        written.mkdir(parents=True)
        (written / "manifest.json").write_text('{"shards": [{"file": "w.pt", "bytes": 1}]}')
        (written / "w.pt").write_bytes(b"w")
    script = cluster.directory / "t.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --array=1-7:2\n"
        f"env -0 > {folder}/$SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID\n"
        '[ -n "$MIDWATCH_ATTEMPT" ] && exit 0\n'
        "case $SLURM_ARRAY_TASK_ID in 3|5) exit 1;; 7) sleep 600;; esac\n"
    )
    line = ("--json", f"--checkpoint-dir={checkpoints}/%a", "--", "sbatch", str(script))
    told = json.loads(typed(cluster, *line).stdout)
    array, names = told["native_id"], [task["job"] for task in told["tasks"]]
    assert [task["native_id"] for task in told["tasks"]] == [f"{array}_{task}" for task in (1, 3, 5, 7)]
    assert names[1].endswith(f"/{array}_3")
    started = {task: started_as(cluster, f"{array}_{task}", f"{array}_{task}") for task in (1, 3, 5, 7)}
    for task in (1, 3, 5):
        cluster.await_end(started[task])
    orders = {task: cluster.order(started[task]) for task in (3, 5)}
    for order in orders.values():
        for _ in range(2):
            cluster.send(order)
    new = {}
    for task, order in orders.items():
        done = cluster.await_outcome(order, "done", "failed", limit=120)
        assert done.state == "done", done.reason
        assert slurm.wait_state(done.new_native_id, *OVER) == "COMPLETED"
        new[task] = done.new_native_id
        key = effect_key(started[task].spec.job, 1, "start")
        assert [row.id for row in slurm.queue() if key in row.comment] == [done.new_native_id]
    assert [native.partition("_")[2] for native in new.values()] == ["3", "5"]
    files = {f"{array}.{task}" for task in (1, 3, 5, 7)} | {
        native.replace("_", ".") for native in new.values()
    }
    assert {file.name for file in folder.iterdir()} == files, "no other task was started"
    for task, native in new.items():
        first, second = (environment(folder, name) for name in (f"{array}.{task}", native.replace("_", ".")))
        assert _lasting(first) == _lasting(second) | {"SLURM_ARRAY_JOB_ID": array}, (
            "the same index of as many tasks"
        )
        assert first["SLURM_ARRAY_TASK_COUNT"] == second["SLURM_ARRAY_TASK_COUNT"] == "4"
        assert first["MIDWATCH_JOB"] == second["MIDWATCH_JOB"] == started[task].spec.job
        assert second["MIDWATCH_RESUME_STEP"] == f"{task}0"
    assert f"{array}_3 → {new[3]}" in midwatch(cluster, "why", f"{array}_3").stdout
    slurm.run("scancel", f"{array}_7")
    cluster.await_end(started[7])
    assert [f.new for f in cluster.facts(started[7].spec.job) if f.ended] == ["CANCELLED"]
    assert [f.new for f in cluster.facts(started[1].spec.job) if f.ended] == ["COMPLETED"]
