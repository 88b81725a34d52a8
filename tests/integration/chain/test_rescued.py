"""`midwatch resume` on the whole chain: a person's restart with a changed configuration, once, audited."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.chain.installation import Installation, installation
from integration.chain.rescued import CONFIG, PACE, SOON, check_rescue, check_why, fail
from integration.chain.resuming import why
from integration.chain.training import PROCESSES
from midwatch.agents.executor.arming import disarm_all, lift_disarm_all
from midwatch.agents.local.embedded.stack import Endpoints
from processes import wait_for


@pytest.fixture(scope="module")
def watch(stack: Endpoints, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        for name in PROCESSES:
            made.start(name)
        made.ready()
        yield made


@pytest.mark.capability("S000-10", "S000-11", "S000-12", "S000-13", "S000-15")
def test_an_unarmed_job_is_resumed_with_a_clone_of_its_configuration(
    watch: Installation, tmp_path: Path
) -> None:
    rescue = fail(watch, tmp_path / "job")
    config = rescue.directory / "code" / "train.yaml"

    check_why(rescue, "local")

    refused = rescue.resume("--set", "val_batch_size=16", answer="n\n")
    assert (refused.returncode, refused.stdout[-17:]) == (0, "nothing was done\n"), refused.stderr
    assert not config.with_name("train-resume.yaml").exists()
    disarm_all(watch.settings.state_directory, at=0)
    forbidden = rescue.resume("--same", "--yes")
    assert (forbidden.returncode, "everything was disarmed" in forbidden.stderr) == (1, True)
    lift_disarm_all(watch.settings.state_directory)
    assert rescue.starts == ["1 32"]

    shown = check_rescue(rescue).stdout
    assert "set data.val_batch_size: 32 → 16" in shown
    assert re.search(r"checkpoint: step 5, \S+/out/step_5, written .*, \d+ s before the end", shown)
    assert f"set resume_from: null → {rescue.directory}/out/step_5" in shown
    assert "Execute? [Y/n]" in shown
    assert config.read_text() == CONFIG.format(output=rescue.directory / "out", pace=PACE["local"])
    clone = config.with_name("train-resume.yaml").read_text()
    resumed = f"{rescue.directory}/out/step_5"
    assert clone == config.read_text().replace("32", "16").replace("null", resumed)
    assert "→ resume, set data.val_batch_size: 32 → 16, set resume_from: null → " in why(rescue.job)
    late = rescue.resume("--set", "val_batch_size=8", "--yes")
    assert late.returncode == 0, "a job that ended well may go on, if a person asks"
    wait_for(lambda: len(rescue.starts) == 3, "it runs again", SOON)
    assert config.with_name("train-resume-2.yaml").exists()
