"""Every trouble that the founding documents list is known, with its kind and its remedy."""

from __future__ import annotations

import pytest

from unit.agents.diagnosis.conftest import Watch

KNOWN = [
    pytest.param(
        "RuntimeError: NCCL timeout exceeded in all-gather",
        "nccl_timeout",
        ("timeout", "synchronise less often"),
        marks=pytest.mark.capability("S000-26"),
        id="nccl timeout",
    ),
    pytest.param(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity"
        " of 79.10 GiB of which 1.50 GiB is free.",
        "oom",
        ("batch", "gradient checkpointing"),
        marks=pytest.mark.capability("S000-27", "S004-16", "S000-05"),
        id="out of memory",
    ),
    pytest.param(
        "ray.exceptions.RayActorError: The actor died because its node has died. Node Id: 9f",
        "ray_node_died",
        ("Resume",),
        marks=pytest.mark.capability("S000-28"),
        id="ray actor",
    ),
    pytest.param(
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "communication",
        ("later with a longer pause",),
        marks=pytest.mark.capability("S000-29", "S004-07"),
        id="refused connection",
    ),
    pytest.param(
        "FileNotFoundError: [Errno 2] No such file or directory: '/bucket/run/checkpoint-40'",
        "checkpoint",
        ("gcsfuse", "mount again"),
        marks=pytest.mark.capability("S000-30"),
        id="stale bucket",
    ),
    pytest.param(
        "Diverged: loss=NaN",
        "numerical_instability",
        ("lower learning rate", "data"),
        marks=pytest.mark.capability("S000-31", "S003-32"),
        id="not a number",
    ),
    pytest.param(
        "RuntimeError: dimension mismatch: 32 and 64",
        "torch",
        ("configuration",),
        marks=pytest.mark.capability("S003-35", "S003-36"),
        id="dimensions",
    ),
    pytest.param(
        "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 2048)",
        "data",
        ("Quarantine", "fetch it again", "clear what was cached"),
        marks=pytest.mark.capability("S003-38"),
        id="damaged data",
    ),
    pytest.param(
        "RuntimeError: Missing required environment variables: ['RANK', 'WORLD_SIZE']",
        "config",
        ("torchrun",),
        marks=pytest.mark.capability("S004-02"),
        id="no launcher",
    ),
    pytest.param(
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:9, unhandled system error",
        "nccl",
        ("NCCL WARN",),
        marks=pytest.mark.capability("S004-03"),
        id="nccl start",
    ),
    pytest.param(
        "n4:88:90 [0] NCCL WARN Connect to 10.0.0.9<4000> failed : No route to host",
        "communication",
        ("NCCL_SOCKET_IFNAME", "firewall", "NCCL_DEBUG=INFO"),
        marks=pytest.mark.capability("S004-04", "S004-25"),
        id="no route",
    ),
    pytest.param(
        "RuntimeError: Distributed initialization timed out after 300 s",
        "rendezvous",
        ("nodes that are missing",),
        marks=pytest.mark.capability("S004-05"),
        id="initialisation",
    ),
    pytest.param(
        "RuntimeError: Address already in use",
        "port_in_use",
        ("port",),
        marks=pytest.mark.capability("S004-06"),
        id="port",
    ),
    pytest.param(
        "Failed to connect to etcd at head:2379",
        "rendezvous",
        ("Start it", "/health"),
        marks=pytest.mark.capability("S004-07"),
        id="etcd",
    ),
    pytest.param(
        "elastic.rendezvous.api.RendezvousTimeoutError: Timed out waiting for rendezvous",
        "rendezvous",
        ("missing",),
        marks=pytest.mark.capability("S004-08"),
        id="rendezvous",
    ),
    pytest.param(
        "RendezvousStateError: Stale state detected for run toy",
        "rendezvous",
        ("own rendezvous id", "old worker"),
        marks=pytest.mark.capability("S004-09", "S004-33"),
        id="stale rendezvous",
    ),
    pytest.param(
        "CheckpointSaveError: [NVME] Failed to save checkpoint to '/nvme/40': No space left on device",
        "storage",
        ("Free space",),
        marks=pytest.mark.capability("S004-10"),
        id="full disk",
    ),
    pytest.param(
        "CheckpointSaveError: [S3] Failed to save checkpoint: NoCredentialsError",
        "config",
        ("credentials",),
        marks=pytest.mark.capability("S004-11"),
        id="no credentials",
    ),
    pytest.param(
        "botocore.exceptions.ClientError: An error occurred (403) when calling the PutObject operation: no",
        "storage",
        ("grant the access",),
        marks=pytest.mark.capability("S004-12"),
        id="forbidden",
    ),
    pytest.param(
        "CheckpointLoadError: Failed to load checkpoint from 'toy.pt': Missing required keys: {'model'}",
        "checkpoint",
        ("the one before",),
        marks=pytest.mark.capability("S004-13"),
        id="load",
    ),
    pytest.param(
        "MemoryLimitExceeded: Cannot save snapshot: 900.0MB required, but only 100.0MB available",
        "host_oom",
        ("fewer", "disk"),
        marks=pytest.mark.capability("S004-15"),
        id="memory limit",
    ),
    pytest.param(
        "TopologyChangeError: Topology change (4 -> 1 workers) failed: World size below min_nodes",
        "config",
        ("min_nodes", "why they failed"),
        marks=pytest.mark.capability("S004-17"),
        id="too few workers",
    ),
    pytest.param(
        "TopologyChangeError: No checkpoint available for recovery",
        "checkpoint",
        ("checkpoint",),
        marks=pytest.mark.capability("S004-18"),
        id="nothing to recover from",
    ),
    pytest.param(
        "ConfigurationError: Configuration error in 'scaling': Unknown scaling strategy 'odd'.",
        "config",
        ("Correct the configuration",),
        marks=pytest.mark.capability("S004-19"),
        id="configuration",
    ),
    pytest.param(
        "yaml.scanner.ScannerError: mapping values are not allowed here",
        "config",
        ("Correct the configuration",),
        marks=pytest.mark.capability("S004-21"),
        id="yaml",
    ),
    pytest.param(
        "DataLoadingError: Failed to load data from 'toy.jsonl': Token index file not found",
        "data",
        ("Build the index",),
        marks=pytest.mark.capability("S004-22"),
        id="index",
    ),
    pytest.param(
        "DataLoadingError: KeyError: 'text'",
        "data",
        ("Set the key",),
        marks=pytest.mark.capability("S004-23", "S004-24"),
        id="field",
    ),
]


@pytest.mark.parametrize(("line", "error_type", "remedies"), KNOWN)
def test_it_is_known_with_its_remedy(
    watch: Watch, line: str, error_type: str, remedies: tuple[str, ...]
) -> None:
    verdict = watch(line).verdict
    assert (verdict.error_type, verdict.root_line) == (error_type, line)
    assert [remedy for remedy in remedies if remedy not in verdict.remedy] == []


@pytest.mark.capability("S004-14")
def test_the_warning_about_loading_weights_is_no_failure(watch: Watch) -> None:
    line = "SECURITY: Loading checkpoint with weights_only=False enables arbitrary code execution"
    assert watch(line).verdict.state != "failed"


@pytest.mark.capability("S004-32")
def test_a_first_start_without_a_checkpoint_is_no_failure(watch: Watch) -> None:
    log = (
        "WARNING: could not find the metadata file /ckpt/latest.txt\n"
        "    will not load any checkpoints and will start from random\n"
    )
    assert watch(log).verdict.state != "failed"


@pytest.mark.capability("S002-13", "S002-39", "S002-12")
def test_a_silent_fall_back_to_tcp_is_shown_beside_the_timeout_with_the_way_to_mend_it(watch: Watch) -> None:
    log = (
        "n4:88:90 [0] NCCL INFO Using network Socket\n"
        "[rank0]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation"
        " timeout: WorkNCCL(SeqNum=48, OpType=ALLGATHER) ran for 600041 milliseconds before timing out.\n"
    )
    done = watch(log)
    assert done.verdict.error_type == "nccl_timeout"
    (fallback,) = [hit for hit in done.hits if hit.rule == "nccl_tcp_fallback"]
    assert "NCCL_NET" in fallback.remedy
    assert "LD_LIBRARY_PATH" in fallback.remedy
    assert "TCP" in done.verdict.remedy
