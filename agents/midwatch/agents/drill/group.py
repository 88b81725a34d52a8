"""The collectives of the drill: a blocking all-gather over TCP, and its timeout."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

STARTUP_S = 60.0  # to meet the other ranks, which may start on other nodes or on a busy machine


def say(text: str, *, error: bool = False) -> None:
    print(text, file=sys.stderr if error else sys.stdout, flush=True)


def stamp(form: str = "%Y-%m-%d %H:%M:%S.%f") -> str:
    return datetime.now().strftime(form)


class CollectiveTimeoutError(Exception):
    """Collective number `sequence` timed out after `seconds`: not all ranks came."""

    def __init__(self, sequence: int, seconds: float) -> None:
        super().__init__(f"collective {sequence} waited {seconds:.3f} s")
        self.sequence, self.seconds = sequence, seconds


class Group:
    """All-gather of small JSON values through rank 0, which writes its address into the file `meeting`."""

    def __init__(self, rank: int, world: int, meeting: Path, patience_s: float) -> None:
        self.rank, self.world, self.patience_s, self.sequence = rank, world, patience_s, 0
        self.peers: list[socket.socket] = []
        self.buffers: dict[socket.socket, bytes] = {}
        deadline = time.monotonic() + STARTUP_S
        if rank == 0:
            local = "SLURM_STEP_ID" not in os.environ
            server = socket.create_server(("127.0.0.1" if local else "", 0), backlog=world)
            host = "127.0.0.1" if local else socket.gethostname()
            fresh = meeting.with_suffix(f".{os.getpid()}")
            fresh.write_text(f"{host} {server.getsockname()[1]}")
            fresh.replace(meeting)
            while len(self.peers) < world - 1:
                server.settimeout(max(0.01, deadline - time.monotonic()))
                self.peers.append(server.accept()[0])
            server.close()
            meeting.unlink(missing_ok=True)
        else:
            self.peers.append(self._join(meeting, deadline))
        for peer in self.peers:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @staticmethod
    def _join(meeting: Path, deadline: float) -> socket.socket:
        while True:
            try:
                host, port = meeting.read_text().split()
                return socket.create_connection((host, int(port)), timeout=5)
            except (OSError, ValueError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def gather(self, value: object) -> list[Any]:
        """The values of all ranks in the order of the ranks; raises CollectiveTimeoutError."""
        self.sequence += 1
        began = time.monotonic()
        deadline = began + (STARTUP_S if self.sequence == 1 else self.patience_s)
        try:
            if self.rank:
                self.peers[0].sendall(json.dumps([self.rank, value]).encode() + b"\n")
                answer = self._line(self.peers[0], deadline)
                return list(answer)
            parts: dict[int, Any] = {0: value}
            for peer in self.peers:
                rank, part = self._line(peer, deadline)
                parts[rank] = part
            values = [parts[rank] for rank in range(self.world)]
            for peer in self.peers:
                peer.sendall(json.dumps(values).encode() + b"\n")
            return values
        except OSError as error:
            if isinstance(error, ConnectionError):
                where = f"{socket.gethostname()}:{os.getpid()}:{os.getpid()} [{self.rank}]"
                say(f"{where} misc/socket.cc:58 NCCL WARN socketProgress: {error}")
            time.sleep(max(0.0, deadline - time.monotonic()))  # NCCL, too, learns of a dead peer late
            raise CollectiveTimeoutError(self.sequence, time.monotonic() - began) from error

    def _line(self, peer: socket.socket, deadline: float) -> list[Any]:
        buffer = self.buffers.pop(peer, b"")
        while b"\n" not in buffer:
            peer.settimeout(max(0.001, deadline - time.monotonic()))
            part = peer.recv(65536)
            if not part:
                raise ConnectionResetError("Connection closed by remote peer localhost<0>")
            buffer += part
        line, _, self.buffers[peer] = buffer.partition(b"\n")
        return list(json.loads(line))


def die_of_timeout(group: Group, late: CollectiveTimeoutError, elements: int) -> NoReturn:
    """Prints the watchdog's lines of a rank whose collective timed out, and aborts it by SIGABRT."""
    rank = group.rank

    def glog(line: int, text: str) -> None:
        clock = f"{stamp('%m%d %H:%M:%S')}.{time.monotonic_ns() % 1_000_000_000:09d}"
        say(f"[rank{rank}]:[E{clock} ProcessGroupNCCL.cpp:{line}] {text}", error=True)

    work = f"WorkNCCL(SeqNum={late.sequence}, OpType=ALLREDUCE, NumelIn={elements}, NumelOut={elements}, "
    limit = int(group.patience_s * 1000)
    ran = f"Timeout(ms)={limit}) ran for {int(late.seconds * 1000)} milliseconds before timing out."
    caught = f"[Rank {rank}] Watchdog caught collective operation timeout: {work}{ran}"
    who = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]"
    glog(632, caught)
    glog(
        2268,
        f"{who} failure detected by watchdog at work sequence id: {late.sequence} PG status: "
        f"last enqueued work: {late.sequence}, last completed work: {late.sequence - 1}",
    )
    glog(684, f"[Rank {rank}] Some NCCL operations have failed or timed out.")
    glog(690, f"[Rank {rank}] To avoid data inconsistency, we are taking the entire process down.")
    glog(1895, f"{who} Process group watchdog thread terminated with exception: {caught}")
    say("terminate called after throwing an instance of 'c10::DistBackendError'", error=True)
    say(f"  what():  {who} Process group watchdog thread terminated with exception: {caught}", error=True)
    os.abort()
