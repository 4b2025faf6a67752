"""How a run is, in a word, with its colour and one sentence.

Nothing is green: that a run goes on, or has ended, says nothing of how well it went.
"""

from __future__ import annotations

from typing import Final

STATES: Final = {
    "open": ("live", "info", "It is being written; this page follows."),
    "finished": ("finished", "quiet", "The script has ended, and the run was closed."),
    "crashed": ("crashed", "error", "The script ended with an error."),
    "interrupted": ("interrupted", "warning", "The script was interrupted by Ctrl-C."),
    "died": (
        "cut off",
        "warning",
        "The writer has gone: its process ended without closing the run.",
    ),
    "missing": ("missing", "warning", "The file of its first rank is missing."),
    "broken": (
        "cannot be read",
        "error",
        "The file is damaged, foreign or newer than this nethook.",
    ),
}
"""State of a run -> the word for it, its colour, and one sentence."""
