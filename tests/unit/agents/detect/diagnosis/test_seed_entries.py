"""Every trouble that users named at the start is known by a rule, with its kind and its remedy."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.diagnosis.verdict import AttemptEnd, diagnose
from midwatch.streams.records import SchedulerFact
from unit.agents.conftest import Watch


@pytest.mark.parametrize(
    ("line", "rule", "error_type", "remedies"),
    [
        pytest.param(
            "RuntimeError: NCCL timeout exceeded in all-gather",
            "torch_process_aborts",
            "nccl_timeout",
            ("timeout", "synchronise less often"),
            marks=pytest.mark.capability("S000-26"),
            id="nccl timeout",
        ),
        pytest.param(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
            " capacity of 79.10 GiB of which 1.50 GiB is free.",
            "cuda_out_of_memory",
            "oom",
            (
                "batch",
                "Gradient accumulation over total batch / (batch x GPUs) steps keeps the total",
                "gradient checkpointing",
                "torch.cuda.empty_cache() now and then",
            ),
            marks=pytest.mark.capability("S000-05", "S000-27", "S003-36", "S004-16", "S004-35", "S004-36"),
            id="out of memory",
        ),
        pytest.param(
            "ERROR: CUDA OOM on rank 3",
            "cuda_error_out_of_memory",
            "oom",
            ("batch smaller", "gradient checkpointing"),
            marks=pytest.mark.capability("S000-27"),
            id="short for it",
        ),
        pytest.param(
            "ray.exceptions.RayActorError: The actor died because its node has died. Node Id: 9f",
            "ray_node_died",
            "ray_node_died",
            ("Resume",),
            id="node of a ray actor",
        ),
        pytest.param(
            "ERROR: Ray actor died",
            "ray_actor_reported_dead",
            "ray_actor_died",
            ("Resume from the checkpoint",),
            id="ray actor",
        ),
        pytest.param(
            "ConnectionRefusedError: [Errno 111] Connection refused",
            "service_refused",
            "communication",
            ("later with a longer pause",),
            marks=pytest.mark.capability("S004-07"),
            id="refused connection",
        ),
        pytest.param(
            "Connection refused: Atlas",
            "service_refused",
            "communication",
            ("later with a longer pause",),
            marks=pytest.mark.capability("S000-29"),
            id="refused database",
        ),
        pytest.param(
            "FileNotFoundError: [Errno 2] No such file or directory: '/bucket/run/checkpoint-40'",
            "checkpoint_file_missing",
            "checkpoint",
            ("gcsfuse", "mount again", "rights"),
            marks=pytest.mark.capability("S000-30", "S002-33"),
            id="stale bucket",
        ),
        pytest.param(
            "Diverged: loss=NaN",
            "loss_not_finite_logged",
            "numerical_instability",
            ("lower learning rate", "clipped gradients", "data"),
            marks=pytest.mark.capability("S000-31", "S003-32", "S003-36"),
            id="not a number",
        ),
        pytest.param(
            "RuntimeError: dimension mismatch: 32 and 64",
            "torch_tensor_mismatch",
            "torch",
            ("configuration",),
            marks=pytest.mark.capability("S003-36"),
            id="dimensions",
        ),
        pytest.param(
            "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0, stored_eof = 99)",
            "dataset_damaged",
            "data",
            ("Quarantine", "fetch it again", "verify", "clear what was cached"),
            id="damaged data",
        ),
        pytest.param(
            "RuntimeError: Missing required environment variables: ['RANK', 'WORLD_SIZE']",
            "python_missing_script",
            "config",
            ("torchrun",),
            marks=pytest.mark.capability("S004-02"),
            id="no launcher",
        ),
        pytest.param(
            "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:9, unhandled system error",
            "nccl_error",
            "nccl",
            ("NCCL WARN", "nvidia-smi", "one version", "NCCL_DEBUG=INFO"),
            marks=pytest.mark.capability("S004-03"),
            id="nccl start",
        ),
        pytest.param(
            "n4:88:90 [0] NCCL WARN Connect to 10.0.0.9<4000> failed : No route to host",
            "nccl_no_route",
            "communication",
            ("NCCL_SOCKET_IFNAME", "firewall", "NCCL_DEBUG=INFO"),
            marks=pytest.mark.capability("S004-04"),
            id="no route",
        ),
        pytest.param(
            "RuntimeError: Distributed initialization timed out after 300 s",
            "rendezvous_timeout",
            "rendezvous",
            ("nodes that are missing", "firewall", "timeout"),
            marks=pytest.mark.capability("S004-05"),
            id="initialisation",
        ),
        pytest.param(
            "RuntimeError: Address already in use",
            "store_port_in_use",
            "port_in_use",
            ("lsof", "--master-port"),
            marks=pytest.mark.capability("S004-06"),
            id="port",
        ),
        pytest.param(
            "Failed to connect to etcd at head:2379",
            "etcd_refused",
            "rendezvous",
            ("Start it", "/health"),
            marks=pytest.mark.capability("S004-07"),
            id="etcd",
        ),
        pytest.param(
            "elastic.rendezvous.api.RendezvousTimeoutError: Timed out waiting for rendezvous",
            "rendezvous_timeout",
            "rendezvous",
            ("same rendezvous id", "--nnodes=MIN:MAX", "longer timeout"),
            marks=pytest.mark.capability("S004-08"),
            id="rendezvous",
        ),
        pytest.param(
            "RendezvousStateError: Stale state detected for run toy",
            "rendezvous_stale",
            "rendezvous",
            ("own rendezvous id", "old keys", "old worker"),
            marks=pytest.mark.capability("S004-09"),
            id="stale rendezvous",
        ),
        pytest.param(
            "CheckpointSaveError: [NVME] Failed to save checkpoint to '/nvme/40': No space left on device",
            "disk_full",
            "storage",
            ("Free space", "keep the last three", "folder exists"),
            marks=pytest.mark.capability("S004-10"),
            id="full disk",
        ),
        pytest.param(
            "CheckpointSaveError: [S3] Failed to save checkpoint: NoCredentialsError",
            "object_store_credentials",
            "config",
            ("credentials", "environment", "role"),
            marks=pytest.mark.capability("S004-11"),
            id="no credentials",
        ),
        pytest.param(
            "botocore.exceptions.ClientError: An error occurred (403) when calling the PutObject operation:",
            "object_store_refused",
            "storage",
            ("grant the access", "create the bucket"),
            marks=pytest.mark.capability("S004-12"),
            id="forbidden",
        ),
        pytest.param(
            "botocore.exceptions.ClientError: An error occurred (403) when calling PutObject",
            "object_store_refused",
            "storage",
            ("grant the access", "create the bucket"),
            marks=pytest.mark.capability("S004-12"),
            id="forbidden, in short",
        ),
        pytest.param(
            "CheckpointLoadError: Failed to load checkpoint from 'toy.pt': Missing required keys: {'model'}",
            "checkpoint_refused",
            "checkpoint",
            ("the one before", "another tier", "delete a damaged one"),
            marks=pytest.mark.capability("S004-13"),
            id="load",
        ),
        pytest.param(
            "RuntimeError: Error(s) in loading state_dict for ToyModel:",
            "torch_checkpoint_mismatch",
            "checkpoint",
            ("strict=False", "weights_only=False"),
            marks=pytest.mark.capability("S004-13"),
            id="another model",
        ),
        pytest.param(
            "MemoryLimitExceeded: Cannot save snapshot: 900.0MB required, but only 100.0MB available",
            "checkpoint_memory_limit",
            "host_oom",
            ("more memory", "fewer", "disk"),
            marks=pytest.mark.capability("S004-15"),
            id="memory limit",
        ),
        pytest.param(
            "TopologyChangeError: Topology change (4 -> 1 workers) failed: World size below min_nodes",
            "topology_changed",
            "config",
            ("min_nodes", "why they failed"),
            marks=pytest.mark.capability("S004-17"),
            id="too few workers",
        ),
        pytest.param(
            "TopologyChangeError: No checkpoint available for recovery",
            "nothing_to_recover_from",
            "checkpoint",
            ("first run", "checkpoint_interval", "object store"),
            marks=pytest.mark.capability("S004-18"),
            id="nothing to recover from",
        ),
        pytest.param(
            "ConfigurationError: Configuration error in 'scaling': Unknown scaling strategy 'odd'.",
            "yaml_unreadable",
            "config",
            ("Correct the configuration",),
            marks=pytest.mark.capability("S004-19"),
            id="configuration",
        ),
        pytest.param(
            "ValueError: checkpoint_interval must be positive",
            "elastic_setting_wrong",
            "config",
            ("at least 1", "above 0", "target_global_batch_size"),
            marks=pytest.mark.capability("S004-20"),
            id="common mistake",
        ),
        pytest.param(
            "yaml.scanner.ScannerError: mapping values are not allowed here",
            "yaml_unreadable",
            "config",
            (
                "Correct the configuration",
                "a colon without a space after it, a tab, or a special character without quotes",
            ),
            marks=pytest.mark.capability("S004-21", "S004-34"),
            id="yaml",
        ),
        pytest.param(
            "DataLoadingError: Failed to load data from 'toy.jsonl': Token index file not found",
            "dataset_index_missing",
            "data",
            ("Build the index",),
            marks=pytest.mark.capability("S004-22"),
            id="index",
        ),
        pytest.param(
            "DataLoadingError: KeyError: 'text'",
            "dataset_field_missing",
            "data",
            ("Set the key", "prepare the data"),
            marks=pytest.mark.capability("S004-23"),
            id="field",
        ),
        pytest.param(
            "RuntimeError: Request failed with status code 404: Job raysubmit_toy does not exist.",
            "ray_job_not_found",
            "config",
            ("head pod", "ray job list"),
            marks=pytest.mark.capability("S002-32"),
            id="no such job",
        ),
        pytest.param(
            'Error from server (Forbidden): pods "toy-head" is forbidden: User "ada" cannot get "pods"',
            "cluster_access_refused",
            "config",
            ("kubectl", "namespace", "role"),
            marks=pytest.mark.capability("S002-34"),
            id="no permission",
        ),
        pytest.param(
            "RuntimeError: CUDA hang detected on rank 3",
            "hang_reported",
            "hang",
            ("stack", "node"),
            marks=pytest.mark.capability("S001-57", "S001-72"),
            id="hang",
        ),
        pytest.param(
            "RuntimeError: Detected a deadlock between ranks 0 and 3",
            "deadlock_reported",
            "deadlock",
            ("stacks of the ranks",),
            marks=pytest.mark.capability("S001-58"),
            id="deadlock",
        ),
        pytest.param(
            "RuntimeError: all_reduce failed on rank 3",
            "collective_failed",
            "nccl",
            ("failed first",),
            marks=pytest.mark.capability("S001-70"),
            id="collective",
        ),
        pytest.param(
            "RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate memory:"
            " you tried to allocate 64 bytes.",
            "host_allocation_failed",
            "host_oom",
            ("no memory left",),
            marks=pytest.mark.capability("S001-71"),
            id="host memory",
        ),
        pytest.param(
            "RuntimeError: [Rank 0]: Ranks 3, 7 failed to pass monitoredBarrier in 60000 ms",
            "gloo_monitored_barrier",
            "distributed_timeout",
            ("ranks named",),
            marks=pytest.mark.capability("S001-61"),
            id="barrier",
        ),
        pytest.param(
            "ZeroDivisionError: division by zero",
            "python_exception",
            "exception",
            ("traceback",),
            marks=pytest.mark.capability("S001-67"),
            id="exception",
        ),
    ],
)
def test_it_is_known_by_its_rule_with_its_remedy(
    watch: Watch, line: str, rule: str, error_type: str, remedies: tuple[str, ...]
) -> None:
    verdict = watch(line).verdict
    assert (verdict.rule, verdict.error_type, verdict.root_line) == (rule, error_type, line)
    assert [remedy for remedy in remedies if remedy not in verdict.remedy] == []


@pytest.mark.capability("S003-35")
def test_memory_dimensions_and_numbers_are_three_causes(watch: Watch) -> None:
    lines = ("CUDA out of memory", "RuntimeError: dimension mismatch: 32 and 64", "ERROR: loss is NaN")
    told = [watch(line).verdict.error_type for line in lines]
    assert told == ["oom", "torch", "numerical_instability"]


@pytest.mark.capability("S004-25")
def test_debug_variables_are_offered_where_no_line_says_why() -> None:
    said = SchedulerFact("local:ada/llm", "local:1:1", "1", "RUNNING", "FAILED", ended=True, exit_code=1)
    ending = AttemptEnd(
        said, None, "training", 40, 900, succeeded=False, complete=True, given_up=(), bundle=""
    )
    remedy = diagnose((), ending).verdict.remedy
    assert [
        name for name in ("LOGLEVEL", "NCCL_DEBUG", "TORCH_DISTRIBUTED_DEBUG") if name not in remedy
    ] == []


@pytest.mark.capability("S004-14")
def test_the_warning_about_loading_weights_is_no_failure_and_says_when_it_is_fine(watch: Watch) -> None:
    line = "SECURITY: Loading checkpoint with weights_only=False enables arbitrary code execution"
    done = watch(line)
    assert done.verdict.state != "failed"
    (told,) = done.hits
    assert "trusted_source=True" in told.remedy


def test_a_ray_job_that_cannot_see_its_cards_is_shown_with_the_way_around(watch: Watch) -> None:
    line = "(autoscaler +1m2s) Error: No available node types can fulfill resource request {'GPU': 16.0}."
    (told,) = watch(line).hits
    assert "ray job submit" in told.remedy
    assert "head pod" in told.remedy
