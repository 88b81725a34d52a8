"""The monitoring configuration of oellm-autoexp, in all four generations, read as midwatch rules. Pure.

- `composition` follows the Hydra `defaults:` lists.
- `generation` finds which of the four generations a file is.
- `events` and `monitor` read its keys.
- `actions` reads what an event's action asks for.
- `patterns` and `meaning` turn an event into a rule.
- `reading` joins the parts.

A policy decides what is done about an action. This package knows no policies.
"""
