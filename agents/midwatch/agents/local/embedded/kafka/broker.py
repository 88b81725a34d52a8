"""The embedded Kafka: one node, which is broker and controller in one Java process."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from midwatch.agents.local.embedded.errors import JarMissing, StateDirectoryDamaged
from midwatch.agents.local.embedded.kafka.class_data import ClassData
from midwatch.agents.local.embedded.kafka.java import Java
from midwatch.agents.local.embedded.process.child import clean_environment
from midwatch.agents.local.embedded.process.probe import kafka_ready
from midwatch.agents.local.embedded.process.reasons import failure
from midwatch.agents.local.embedded.process.server import Server
from midwatch.agents.local.embedded.properties import USERNAME, kafka_properties
from midwatch.agents.local.embedded.state_directory import write_private

HEAP_MEGABYTES = 192

_FIRST_WITH_NATIVE_ACCESS, _FIRST_WITH_UNSAFE_SWITCH = 22, 23
_PROPERTIES = "server.properties"


def java_flags(major: int) -> list[str]:
    """Flags for a small Java that boots quickly. Kafka's warnings go to its output, with their time."""
    flags = [
        f"-Xmx{HEAP_MEGABYTES}m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        "-Xlog:disable",
        "-Djava.awt.headless=true",
        "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaConfig=off",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    ]
    if major >= _FIRST_WITH_NATIVE_ACCESS:
        flags.append("--enable-native-access=ALL-UNNAMED")
    if major >= _FIRST_WITH_UNSAFE_SWITCH:
        flags.append("--sun-misc-unsafe-memory-access=allow")
    return flags


class KafkaServer(Server):
    name = "Kafka"
    patience = 120.0

    def __init__(  # noqa: PLR0913 (what one broker is made of)
        self,
        directory: Path,
        log: Path,
        lock_descriptor: int,
        *,
        port: int,
        controller_port: int,
        password: str,
        java: Java,
        jars: Sequence[Path],
        cache: Path,
    ) -> None:
        super().__init__(directory, log, lock_descriptor)
        self._port = port
        self._controller_port = controller_port
        self._password = password
        self._java = java
        self._flags = java_flags(java.major)
        self._class_path = os.pathsep.join(map(str, jars))
        if self._class_path.count(os.pathsep) != len(jars) - 1:
            raise JarMissing(
                f"Java cannot load jars from a directory with {os.pathsep!r} in its name",
                where=str(jars[0].parent),
                remedy="choose another directory with MIDWATCH_CACHE or --jars DIR",
            )
        self._class_data = ClassData(java, self._flags, jars, cache=cache, directory=directory)

    @property
    def ports(self) -> tuple[int, ...]:
        return (self._port, self._controller_port)

    def answers(self) -> bool:
        return kafka_ready(self._port, USERNAME, self._password)

    def prepare(self) -> Sequence[str]:
        write_private(
            self.directory / _PROPERTIES,
            kafka_properties(port=self._port, controller_port=self._controller_port, password=self._password),
        )
        # The codecs unpack native code here, because the system's directory may forbid execution.
        scratch = self.directory / "tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        self._format()
        return [
            str(self._java.executable),
            *self._flags,
            *self._class_data.options(),
            f"-Djava.io.tmpdir={scratch}",
            f"-XX:ErrorFile={self.log.parent}/java-crash-%p.log",
            "-cp",
            self._class_path,
            "kafka.Kafka",
            _PROPERTIES,
        ]

    def stopped(self) -> None:
        self._class_data.adopt()

    def _format(self) -> None:
        """Formats an empty data directory. Kafka writes its mark last, so half a format is no format."""
        data = self.directory / "data"
        if (data / "meta.properties").exists():
            return
        if (data / "__cluster_metadata-0").exists():
            raise StateDirectoryDamaged(
                "the directory holds Kafka's data without meta.properties, which names their cluster",
                where=str(data),
                remedy="restore that file from a backup, or move the directory away and start anew",
            )
        shutil.rmtree(data, ignore_errors=True)
        # With "=", and a letter in front: a base64 id may begin with "-", which reads as an option.
        cluster = "m" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
        done = subprocess.run(
            [
                self._java.executable,
                *self._flags,
                *self._class_data.found(),
                "-cp",
                self._class_path,
                "kafka.tools.StorageTool",
                "format",
                f"--cluster-id={cluster}",
                "-c",
                _PROPERTIES,
            ],
            cwd=self.directory,
            pass_fds=(self._lock_descriptor,),
            env=clean_environment(os.environ),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            output = done.stdout + done.stderr
            with self.log.open("a", encoding="utf-8") as log:
                log.write(output)
            raise failure("Kafka's format", output, exit_status=done.returncode, log=self.log)
