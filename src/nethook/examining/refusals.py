"""Why a step is not run again: errors whose messages are for users."""

from __future__ import annotations


class NotReplayableError(Exception):
    """The step cannot be run again as an experiment wants it; the message says why."""


class OutOfTimeError(NotReplayableError):
    """The time that examinations may take is used up."""
