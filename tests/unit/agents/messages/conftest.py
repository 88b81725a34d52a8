"""A notice for channels."""

from __future__ import annotations

import pytest

from midwatch.agents.messages.notice import Notice


@pytest.fixture
def notice() -> Notice:
    return Notice(
        key="local:ada/llm/incident/i1/hold",
        number=1,
        group="i1",
        state="opened",
        severity="critical",
        job="local:ada/llm",
        title="local:ada/llm failed: cuda_oom",
        at_ms=1_700_000_000_000,
        what="attempt 1 ended by crash",
        why="torch.OutOfMemoryError: CUDA <!channel> `rm -rf` & more",
        done="Nothing: the job is held for a person",
        look="midwatch why local:ada/llm",
    )
