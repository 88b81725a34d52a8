"""Error types, their families, and which coarse type in a user's list covers which finer types."""

from __future__ import annotations

from collections.abc import Collection

FAMILIES: dict[str, tuple[str, ...]] = {
    "memory": ("oom", "host_oom"),
    "comms": (
        "nccl",
        "nccl_timeout",
        "distributed_timeout",
        "communication",
        "watchdog_timeout",
        "desync",
        "rendezvous",
        "port_in_use",
    ),
    "stall": ("hang", "deadlock", "straggler"),
    "numerics": ("numerical_instability", "loss_spike"),
    "code": ("exception", "native_crash", "torch", "config", "import_error", "data", "checkpoint"),
    "infra": ("hardware", "storage", "slurm_failure", "ray_actor_died", "ray_node_died"),
    "stopped": ("cancelled", "preemption", "user_interrupt", "timeout"),
}
_FAMILY_OF = {error_type: family for family, types in FAMILIES.items() for error_type in types}

_COVERS: dict[str, tuple[str, ...]] = {
    "oom": ("host_oom",),
    "exception": ("native_crash", "import_error", "config", "data"),
    "cancelled": ("preemption", "user_interrupt"),
}


def family(error_type: str) -> str:
    """The family of an error type, or "none" for a type of a user rule."""
    return _FAMILY_OF.get(error_type, "none")


def named_in(error_type: str, listed: Collection[str]) -> bool:
    """Whether a policy's list names this type, directly or by a coarse type that covers it."""
    return error_type in listed or any(error_type in _COVERS.get(coarse, ()) for coarse in listed)
