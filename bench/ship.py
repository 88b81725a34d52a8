"""What the sidecar costs: CPU per GB beyond its producer, memory, and CPU while nothing happens.

    python bench/ship.py [MEGABYTES]        writes bench/results/ship.json

Each run ships one file to a real one-node Kafka on this machine. `producer` is the same client with the same
options, given the same bytes in blocks of 256 KiB and nothing else to do. Times are of the process under
test alone (user and system). Compare the ratios: absolute times are the machine's.
"""

from __future__ import annotations

import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic

from midwatch.agents.local.embedded.stack import EmbeddedStack, Endpoints
from midwatch.shippers.messages import reporter
from midwatch.shippers.sending.publish import Publisher
from midwatch.streams.records.codec import Encoded
from midwatch.streams.settings.schema import KafkaSettings
from midwatch.streams.settings.secret import Secret

RESULTS = Path(__file__).parent / "results" / "ship.json"
TICKS = os.sysconf("SC_CLK_TCK")
BLOCK = 256 * 1024


def training(size: int) -> Iterator[bytes]:
    """Progress of a healthy rank 0, with the warnings and NCCL chatter that go with it."""
    chance = random.Random(7)  # noqa: S311 (the same lines in every run, nothing secret)
    written = step = 0
    while written < size:
        step += 1
        clock = f"[2026-11-20 07:{step // 60 % 60:02d}:{step % 60:02d}]"
        milliseconds, loss, norm = chance.gauss(900, 20), chance.gauss(2.3, 0.1), chance.random()
        channel = f"node{step % 64}:{1000 + step % 999}:71 [{step % 8}] NCCL INFO Channel {step % 32:02d}"
        line = (
            f" {clock} iteration {step:8d}/ 1000000 | consumed samples: {step * 512:12d} | "
            f"elapsed time per iteration (ms): {milliseconds:.1f} | lm loss: {loss:.6E} | loss scale: 1.0 | "
            f"grad norm: {norm:.3f} |\n{channel}\n"
        ).encode()
        written += len(line)
        yield line


def coloured(size: int) -> Iterator[bytes]:
    """The same in colour: every line changes."""
    for line in training(size):
        yield b"".join(b"\x1b[32m" + part + b"\x1b[0m\n" for part in line.splitlines())


def bars(size: int) -> Iterator[bytes]:
    """Progress bars: one line of the file holds a thousand of them."""
    written = 0
    while written < size:
        for step in range(1000):
            bar = b"\r %3d%%|%-40s| %d/1000 [00:10<00:20, 33.1it/s]" % (step // 10, b"#" * (step // 25), step)
            written += len(bar)
            yield bar
        yield b"\n"


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def environment(stack: Endpoints) -> dict[str, str]:
    return os.environ | {
        "MIDWATCH_KAFKA__BOOTSTRAP": stack.kafka,
        "MIDWATCH_KAFKA__USERNAME": stack.kafka_username,
        "MIDWATCH_KAFKA__PASSWORD": stack.kafka_password,
    }


def ship(stack: Endpoints, folder: Path, log: Path) -> dict[str, float]:
    """Ships the file, then lies idle for ten seconds."""
    state = Path(tempfile.mkdtemp(dir=folder))
    command = [
        sys.executable,
        "-m",
        "midwatch",
        "ship",
        "--job",
        "bench",
        f"--state-directory={state}",
        str(log),
    ]
    process = subprocess.Popen(command, env=environment(stack))
    size = log.stat().st_size
    while f'"offset":{size},' not in checkpoint(state):
        time.sleep(0.05)
    used, resident = cpu(process.pid), memory(process.pid, "VmRSS")
    idle = cpu(process.pid)
    time.sleep(10)
    idle = (cpu(process.pid) - idle) / 10
    peak = memory(process.pid, "VmHWM")
    process.terminate()
    process.wait()
    return {
        "cpu_seconds": used,
        "resident_mib": round(resident, 1),
        "peak_mib": round(peak, 1),
        "idle_cpu_percent": round(100 * idle, 2),
    }


def checkpoint(state: Path) -> str:
    return next((file.read_text() for file in state.glob("ship/*/*/checkpoint.json")), "")


def produce(log: str) -> None:
    """The producer alone, as a process of its own: blocks in, nothing in flight at the end."""
    kafka = KafkaSettings(
        bootstrap=(os.environ["MIDWATCH_KAFKA__BOOTSTRAP"],),
        username=os.environ["MIDWATCH_KAFKA__USERNAME"],
        password=Secret(os.environ["MIDWATCH_KAFKA__PASSWORD"]),
    )
    publisher = Publisher(kafka, "midwatch.logs", reporter())
    publisher.connect()
    while not publisher.ready:
        time.sleep(0.01)
    waiting = []
    with open(log, "rb") as file:
        while block := file.read(BLOCK):
            waiting.append(publisher.send(b"bench", Encoded(block)))
            while len(waiting) > 8 * 1024 * 1024 // BLOCK:
                waiting = [future for future in waiting if not future.is_done] or waiting[:0]
                time.sleep(0.002)
    while any(not future.is_done for future in waiting):
        time.sleep(0.002)
    peak = round(memory(os.getpid(), "VmHWM"), 1)
    sys.stdout.write(json.dumps({"cpu_seconds": cpu(os.getpid()), "peak_mib": peak}))


def alone(stack: Endpoints, log: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--produce", str(log)]
    output = subprocess.run(command, env=environment(stack), check=True, stdout=subprocess.PIPE).stdout
    result: dict[str, float] = json.loads(output)
    return result


def empty() -> float:
    """CPU seconds of a process that only imports what the sidecar imports."""
    imports = "import midwatch.shippers.ship, midwatch.streams.settings.file"
    code = f"{imports}, os; t = os.times(); print(t[0] + t[1])"
    return float(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE).stdout)


def main(megabytes: int) -> None:
    results: dict[str, object] = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, CPython {platform.python_version()}",
        "megabytes": megabytes,
    }
    kinds: dict[str, Callable[[int], Iterator[bytes]]] = {
        "training": training,
        "coloured": coloured,
        "bars": bars,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with EmbeddedStack(folder / "stack") as stack:
            admin = KafkaAdminClient(
                bootstrap_servers=stack.kafka,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_plain_username=stack.kafka_username,
                sasl_plain_password=stack.kafka_password,
            )
            admin.create_topics([NewTopic("midwatch.logs", num_partitions=1, replication_factor=1)])
            start = empty()
            for kind, lines in kinds.items():
                log = folder / f"{kind}.log"
                with log.open("wb") as file:
                    file.writelines(lines(megabytes * 1_000_000))
                gigabytes = log.stat().st_size / 1e9
                shipped, producer = ship(stack, folder, log), alone(stack, log)
                beyond = (shipped["cpu_seconds"] - producer["cpu_seconds"]) / gigabytes
                results[kind] = {
                    "cpu_seconds_per_gb": round((shipped["cpu_seconds"] - start) / gigabytes, 2),
                    "producer_cpu_seconds_per_gb": round((producer["cpu_seconds"] - start) / gigabytes, 2),
                    "beyond_the_producer": round(beyond, 2),
                    **{name: value for name, value in shipped.items() if name != "cpu_seconds"},
                    "producer_peak_mib": producer["peak_mib"],
                }
                log.unlink()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    sys.stdout.write(RESULTS.read_text())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--produce"]:
        produce(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 400)
