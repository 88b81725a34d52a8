"""A training under Ray Train whose checkpoints lie on a server of S3, which runs in this process."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem

from integration.chain.installation import Job
from integration.chain.slurm_training import Training

BUCKET = "trainings"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """The variables by which every client finds the server and its one bucket."""
    made = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    made.start()
    try:
        host, port = made.get_host_and_port()
        variables = {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "of-the-tests",
            "AWS_SECRET_ACCESS_KEY": "of-the-tests",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        files(variables).mkdir(BUCKET)
        yield variables
    finally:
        made.stop()


def files(variables: dict[str, str]) -> Any:
    """The store as a file system."""
    return S3FileSystem(
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        key=variables["AWS_ACCESS_KEY_ID"],
        secret=variables["AWS_SECRET_ACCESS_KEY"],
        use_listings_cache=False,
    )


@dataclass
class TrainedOnS3(Training):
    """Only the notes of its starts are a file of this machine."""

    name: str = field(default_factory=lambda: f"job-{secrets.token_hex(4)}")

    @property
    def storage(self) -> str:
        return f"s3://{BUCKET}/{self.name}"

    @property
    def notes(self) -> Path:
        """Where each start went on."""
        return self.directory / "starts"

    def submit(self, *options: str) -> Job:
        self.directory.mkdir()
        variables = {k: v for k, v in self.watch.environment.items() if k.startswith("AWS_")}
        environment = json.dumps({"env_vars": variables})
        words = ("ray", "job", "submit", f"--runtime-env-json={environment}", "--", "python")
        script = str(Path(__file__).with_name("ray_train_on_s3.py"))
        about = (*options, f"--checkpoint-dir={self.storage}")
        return self.run(*about, "--", *words, script, str(self.notes), self.storage)
