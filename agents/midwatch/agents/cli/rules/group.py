"""`midwatch rules …`: commands about rules. Each sub-command loads when it is called."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "bench": ("midwatch.agents.cli.rules.bench:bench", "Measure how fast rules match a file."),
    "check": ("midwatch.agents.cli.rules.check:check", "Show mistakes in rule files, and slow rules."),
    "diff": ("midwatch.agents.cli.rules.diff:diff", "Compare two presets or files of rules."),
    "explain": (
        "midwatch.agents.cli.rules.explain:explain",
        "Show which rules match a line, and why others do not.",
    ),
    "list": ("midwatch.agents.cli.rules.list:list_rules", "List rules: role, type, transience, pack."),
    "test": ("midwatch.agents.cli.rules.test:test", "Run the examples of rules."),
    "convert": (
        "midwatch.agents.cli.rules.convert:convert",
        "Convert files of oellm-autoexp to midwatch's form.",
    ),
    "push": ("midwatch.agents.cli.rules.push:push", "Put rules and policies in force on all workers."),
    "score": ("midwatch.agents.cli.rules.score:score", "Score the diagnosis on labelled logs."),
}


class _RulesGroup(click.Group):
    """Lists its sub-commands from `COMMANDS` and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 (click's)
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_RulesGroup)
def rules() -> None:
    """Rules: what midwatch looks for in lines, and what it means."""
