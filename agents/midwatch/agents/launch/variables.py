"""Which variables of a person's shell a job outside SLURM gets, at its first start and all later ones. Pure.

It is an allow-list. A name that sounds like a secret stays out unless the person asks for it by name. A job
on SLURM gets what sbatch sends: see `submission.sending`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from midwatch.agents.schedulers.resume import VARIABLES

_NAMES = frozenset(
    {
        "PATH",
        "HOME",
        "SHELL",
        "LANG",
        "TZ",
        "TMPDIR",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "PYTHONUNBUFFERED",
        "PYTHONHASHSEED",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "MASTER_ADDR",
        "MASTER_PORT",
        "WORLD_SIZE",
        "MODULEPATH",
        "LOADEDMODULES",
        "SLURM_CONF",
    }
)
_PREFIXES = (
    "CONDA_",
    "CUDA",
    "NVIDIA_",
    "NCCL_",
    "TORCH",
    "PYTORCH_",
    "OMP_",
    "MKL_",
    "UCX_",
    "FI_",
    "GLOO_",
    "HF_",
    "TRANSFORMERS_",
    "TRITON_",
    "DEEPSPEED_",
    "MEGATRON_",
    "WANDB_",
    "LC_",
    "ROCM_",
    "HIP_",
    "RCCL_",
    "MIDWATCH_",
)
OF_ONE_START = frozenset(
    f"MIDWATCH_{name}"
    for name in ("JOB", "JOB_PID", "INCARNATION", "NODE", "NODES", "RUN", "ATTEMPT", "FAILPOINT")
) | frozenset(VARIABLES)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def allowed(environment: Mapping[str, str], by_name: Iterable[str] = ()) -> dict[str, str]:
    """The variables for the spec: the known harmless ones, and those that `by_name` asks for."""
    requested = frozenset(by_name)
    return {
        name: value
        for name, value in sorted(environment.items())
        if name in requested or (_known(name) and name not in OF_ONE_START)
    }


def _known(name: str) -> bool:
    """Whether the name is harmless. The path of a secret (`MIDWATCH_KAFKA__PASSWORD_FILE`) is no secret."""
    if name.startswith("MIDWATCH_") and name.endswith("_FILE"):
        return True
    return (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
