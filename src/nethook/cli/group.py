"""The commands together: what is said of one that does not exist."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from typer.core import TyperGroup


class Commands(TyperGroup):
    """Commands that say what to type when there is nothing like what was typed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Finds a command by its name; where one is like it, typer suggests that."""
        typed = args[0]
        if typed.endswith(".py"):
            ctx.fail(f"No such command {typed!r}. To run a script, type: nethook run {typed}")
        if not typed.startswith("-") and not get_close_matches(typed, self.commands):
            shown = ", ".join(name for name, each in self.commands.items() if not each.hidden)
            ctx.fail(f"No such command {typed!r}. Choose one of {shown}.")
        return super().resolve_command(ctx, args)
