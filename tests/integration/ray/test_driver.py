"""Jobs on a real Ray head, through HTTP alone: started once, ended, looked at, and never mistaken."""

from __future__ import annotations

import secrets
import threading
from pathlib import Path

import pytest

from midwatch.agents.launch.ray_submission import keep_ray_submission
from midwatch.agents.schedulers import cluster
from midwatch.agents.schedulers.base import ClusterUnreachable, SchedulerJob, StartSpec, StartState
from midwatch.agents.schedulers.calls import CountingCaller, SystemCaller
from midwatch.agents.schedulers.ray.scheduler import RayCluster
from midwatch.streams.services.ray_jobs import RayHead
from processes import wait_for, written
from ray_lab.lab import RayLab
from ray_lab.world import settings

JOB = {"MIDWATCH_JOB": "ray:ann/run"}


@pytest.fixture
def key() -> str:
    return secrets.token_hex(16)


@pytest.fixture
def driver(ray_head: RayLab, tmp_path: Path) -> RayCluster:
    made = cluster("ray", "ray", tmp_path, SystemCaller(), settings(ray_head))
    assert isinstance(made, RayCluster)
    return made


def spec(lab: RayLab, folder: Path, *words: str, options: tuple[str, ...] = (), **more: object) -> StartSpec:
    kept = keep_ray_submission(
        ("ray", "job", "submit", *options, "--", *words),
        cwd=folder,
        folder=folder / "submissions",
        address=lab.address,
        environment={},
        **more,  # type: ignore[arg-type]  # of the one function that takes them
    )
    return StartSpec(kept.argv, str(folder), JOB)


def sh(lab: RayLab, folder: Path, text: str, *options: str) -> StartSpec:
    return spec(lab, folder, "sh", "-c", text, options=options)


def ended(driver: RayCluster, key: str) -> StartState:
    wait_for(lambda: driver.find(key) and driver.find(key)[0].state.over, "the end of the job", 60)
    return driver.find(key)[0].state


def started(driver: RayCluster, wanted: StartSpec, key: str) -> SchedulerJob:
    assert driver.submit_held(wanted, key).result == "done"
    wait_for(lambda: driver.find(key)[0].state.kind == "running", "it runs", 60)
    return driver.find(key)[0]


def test_many_starters_with_one_key_make_one_start(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    """Ray refuses the second job of an id, also when the first one has ended."""
    wanted = sh(ray_head, tmp_path, f"echo started >> {tmp_path}/marks; sleep 60")
    crew = [threading.Thread(target=driver.submit_held, args=(wanted, key)) for _ in range(6)]
    for each in crew:
        each.start()
    for each in crew:
        each.join()
    wait_for(lambda: written(tmp_path / "marks"), "the script's first act", 60)
    (job,) = driver.find(key)
    assert job.incarnation == f"ray:{key}:{ray_head.session()}"
    assert driver.cancel(job.incarnation, key).result == "done"
    assert ended(driver, key).word == "STOPPED"
    assert driver.submit_held(wanted, key).result == "done"
    assert (tmp_path / "marks").read_text() == "started\n"


ENDS = {
    "exit 0": ("SUCCEEDED", "success", 0, None),
    "exit 3": ("FAILED", "crash", 3, None),
    "kill -9 $$": ("FAILED", "crash", None, 9),
}


def test_how_a_job_ended(driver: RayCluster, ray_head: RayLab, tmp_path: Path) -> None:
    keys = {text: secrets.token_hex(16) for text in ENDS}
    for text, key in keys.items():
        driver.submit_held(sh(ray_head, tmp_path, text), key)
    for text, key in keys.items():
        state = ended(driver, key)
        assert (state.word, state.mode, state.exit_code, state.signal) == ENDS[text]


def test_a_stop_of_a_pending_job_is_no_end_until_ray_says_so(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    """The fence is the status: Ray answers the stop at once, and starts the job for a moment later."""
    hog = secrets.token_hex(16)
    first = started(driver, sh(ray_head, tmp_path, "sleep 60", "--entrypoint-num-gpus=8"), hog)
    driver.submit_held(sh(ray_head, tmp_path, "sleep 60", "--entrypoint-num-gpus=8"), key)
    (waiting,) = driver.find(key)
    assert waiting.state.kind == "queued"
    assert driver.cancel(waiting.incarnation, key).result == "done"
    assert driver.find(key)[0].state.kind == "queued"
    driver.cancel(first.incarnation, hog)
    assert ended(driver, key).word == "STOPPED"


def test_another_session_or_key_is_neither_seen_nor_touched(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    job = started(driver, sh(ray_head, tmp_path, "sleep 60"), key)
    other = f"ray:{key}:session_of_another_head"
    assert driver.state(other).kind == "absent"
    assert driver.cancel(other, key).result == "refused"
    assert driver.cancel(job.incarnation, "a" * 32).result == "refused"
    assert driver.state(f"ray:{key}:0").kind == "running"
    assert driver.state("ray:nobody:0").kind == "absent"
    assert driver.find(key)[0].state.kind == "running"


def test_a_key_of_an_earlier_use_is_freed_only_once_it_ended(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    later, latest = secrets.token_hex(16), secrets.token_hex(16)
    driver.submit_held(sh(ray_head, tmp_path, "true"), key)
    ended(driver, key)
    now = started(driver, sh(ray_head, tmp_path, "sleep 60"), later)
    driver.submit_held(sh(ray_head, tmp_path, "true"), latest)
    ended(driver, latest)
    driver.retire(latest, before=now.incarnation)
    driver.retire(later, before=now.incarnation)
    driver.retire(key, before=now.incarnation)
    assert [len(driver.find(each)) for each in (latest, later, key)] == [1, 1, 0]


def test_a_wrong_token_or_no_head_never_reads_as_no_job(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    for head in (
        RayHead(ray_head.address, "wrong"),
        RayHead(ray_head.address),
        RayHead("http://127.0.0.1:9"),
    ):
        blind = RayCluster("ray", head, SystemCaller())
        with pytest.raises(ClusterUnreachable, match=r"ray\.address"):
            blind.sweep()
        assert blind.state(f"ray:{key}:0").kind == "unknown"
        assert blind.submit_held(sh(ray_head, tmp_path, "true"), key).result in ("unclear", "unsent")
    assert driver.find(key) == ()


def test_the_code_of_the_first_start_comes_back_after_the_head_lost_it(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    """As it was then: what is edited later, or left out by .gitignore, does not travel."""
    code = tmp_path / "code"
    (code / "inner").mkdir(parents=True)
    (code / "inner" / "say.py").write_text(f"open('{tmp_path}/said', 'a').write('first\\n')")
    (code / "large.bin").write_text("x")
    (code / ".gitignore").write_text("*.bin\n")
    options = ("--working-dir", "code")
    words = ("sh", "-c", f"python inner/say.py; ls > {tmp_path}/listed; echo $PWD > {tmp_path}/where")
    wanted = spec(ray_head, tmp_path, *words, options=options)
    (code / "inner" / "say.py").write_text("raise SystemExit(1)")
    driver.submit_held(wanted, key)
    assert ended(driver, key).word == "SUCCEEDED"
    assert (tmp_path / "listed").read_text().split() == ["inner"]
    package = next((tmp_path / "submissions").glob("*.zip"))
    uri = f"/api/packages/gcs/_ray_pkg_{package.stem}.zip"
    assert ray_head.api("GET", uri)[0] == 200
    package.rename(package.with_suffix(".moved"))
    lost = spec(ray_head, tmp_path, "true", options=options)
    next((tmp_path / "submissions").glob("*.zip")).write_bytes(b"changed")
    assert driver.submit_held(lost, secrets.token_hex(16)).result == "refused"


def test_a_secret_travels_as_a_path_and_nobody_reads_it_from_the_api(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    secret = tmp_path / "token of hf"
    secret.write_text("s3cret-value\n")
    wanted = spec(
        ray_head,
        tmp_path,
        "sh",
        "-c",
        f'printf %s "$HF_TOKEN" > {tmp_path}/seen',
        secret_files=(f"HF_TOKEN={secret}",),
    )
    driver.submit_held(wanted, key)
    assert ended(driver, key).word == "SUCCEEDED"
    assert (tmp_path / "seen").read_text() == "s3cret-value"
    assert "s3cret" not in str(ray_head.job(key))
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "submissions").glob("*.json"))


def test_the_driver_is_the_entrypoint_itself_without_a_shell_before_it(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    script = tmp_path / "t.py"
    script.write_text(
        f"import os, time; open('{tmp_path}/parent', 'w').write("
        "open(f'/proc/{os.getppid()}/cmdline').read() + '\\n'); time.sleep(60)"
    )
    started(driver, spec(ray_head, tmp_path, "python", str(script)), key)
    wait_for(lambda: written(tmp_path / "parent"), "the driver", 60)
    assert (tmp_path / "parent").read_text().startswith("ray::")


@pytest.mark.capability("S002-11")
def test_gpus_that_the_entrypoint_holds_while_its_tasks_wait_are_told_with_the_remedy(
    driver: RayCluster, ray_head: RayLab, tmp_path: Path, key: str
) -> None:
    script = tmp_path / "waits.py"
    script.write_text("import ray\nray.init()\n@ray.remote(num_gpus=2)\ndef f(): pass\nray.get(f.remote())\n")
    options = ("--entrypoint-num-gpus=8",)
    driver.submit_held(spec(ray_head, tmp_path, "python", str(script), options=options), key)
    wait_for(lambda: driver.find(key)[0].state.word == "GPUS_HELD", "the wait is seen", 60)
    state = driver.find(key)[0].state
    assert (state.kind, "2 GPUs are waited for and 0 of 8 are free" in state.reason) == ("running", True)
    assert "without --entrypoint-num-gpus" in state.reason


def test_looking_is_no_act(ray_head: RayLab, tmp_path: Path, key: str) -> None:
    caller = CountingCaller(SystemCaller())
    driver = RayCluster("ray", ray_head.head, caller)
    driver.sweep()
    driver.find(key)
    driver.epoch()
    driver.state(f"ray:{key}:0")
    assert caller.acts == {}
    driver.submit_held(sh(ray_head, tmp_path, "true"), key)
    assert caller.acts == {"POST jobs": 1}
