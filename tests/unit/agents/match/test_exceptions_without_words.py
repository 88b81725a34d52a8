"""An exception without words of its own, and one that a complete warning happens to precede."""

from __future__ import annotations

from unit.agents.match.test_tracebacks import FRAME, HANDLING, HEAD, place


def test_a_missing_module_is_no_probe_where_what_is_raised_instead_says_nothing() -> None:
    inner = (
        f"{HEAD}\n{FRAME}\n    import _toys\nModuleNotFoundError: No module named '_toys'\n\n{HANDLING}\n\n"
    )
    outer = f'{HEAD}\n  File "toys/__init__.py", line 9, in <module>\n    raise ImportError(advice)\n'
    bare, telling = f"{inner}{outer}ImportError: \n", f"{inner}{outer}ImportError: paint the toys\n"
    assert not place(bare, "ImportError: \n".rstrip("\n")).probe
    assert place(telling, "ImportError: paint the toys").probe


def test_what_jax_says_of_a_missing_backend_is_a_line_of_its_own() -> None:
    raised = f"{HEAD}\n{FRAME}\n    toy(a)\nRuntimeError: odd\n"
    whole = "toy: a card may be present, but a fitting jaxlib is not installed. Falling back to cpu.\n"
    assert place(f"{whole}{raised}", "RuntimeError: odd").kind == "reported"
    assert place(f"toy: no card. Falling back to cpu.\n{raised}", "RuntimeError: odd").kind == "ignored"
