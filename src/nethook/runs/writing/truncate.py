"""Taking a run back to a step: what it has of that step and later ones goes.

A run that goes on from a checkpoint trains some steps again. The later record of a step is the one
that counts, so the earlier one is dropped, and no step is in the run twice.
"""

from __future__ import annotations

import sqlite3

from nethook.runs import names
from nethook.runs.format.points import cut_points
from nethook.runs.format.schema import BLOCK, HISTOGRAM_BLOCK, LEVELS, PHASES, key, number_of


def cut_windows(connection: sqlite3.Connection, step: int, series: int) -> None:
    """Drop the windows with this step or later ones, and what was made of them.

    A window, or a span of histograms, cannot be split: one that has the step in it goes as a whole.
    An evaluation at this step was made before it, and stays.
    """
    for phase in PHASES:
        window = connection.execute(
            "SELECT key, first_step FROM windows WHERE key >= ? AND key < ? AND last_step >= ? "
            "ORDER BY key LIMIT 1",
            (key(phase), key(phase, block=1), step + (phase != "train")),
        ).fetchone()
        if window is None:
            continue
        number, begins = number_of(window[0]), window[1]
        _cut(connection, "windows", phase, number)
        for block in range(-(-series // BLOCK)):
            _cut(connection, "records", phase, number, block)
            for level, width in enumerate(LEVELS, start=1):
                _cut(connection, "overviews", phase, number // width, block, level)
        span = connection.execute(
            "SELECT min(key) FROM spans WHERE key >= ? AND key < ? AND last_step >= ?",
            (key(phase), key(phase, block=1), begins),
        ).fetchone()[0]
        if span is not None:
            _cut(connection, "spans", phase, number_of(span))
            for block in range(-(-series // HISTOGRAM_BLOCK)):
                for table in ("histograms", "unit_bits"):
                    _cut(connection, table, phase, number_of(span), block)


def leave_out(connection: sqlite3.Connection, step: int) -> None:
    """Take the last step, which was cut off, out of the training window that it shares with others.

    What it measured stays there: it is part of the step before, as micro-batches are.
    """
    shared = "WHERE key >= ? AND key < ? AND last_step = ? AND first_step < ?"
    values = (key("train"), key("train", block=1), step, step)
    updated = connection.execute(
        f"UPDATE windows SET last_step = last_step - 1, steps = steps - 1 {shared}", values
    )
    if updated.rowcount:
        connection.execute(f"UPDATE spans SET last_step = last_step - 1 {shared}", values)


def _cut(
    connection: sqlite3.Connection,
    table: str,
    phase: str,
    number: int,
    block: int = 0,
    level: int = 0,
) -> None:
    """Drop the records of a block from a number on."""
    connection.execute(
        f"DELETE FROM {table} WHERE key >= ? AND key < ?",
        (
            key(phase, number, block=block, level=level),
            key(phase, block=block + 1, level=level),
        ),
    )


def cut_notes(connection: sqlite3.Connection, step: int) -> set[str]:
    """Drop what was noted in this step and later ones: scalars, loss records and snapshots.

    Returns:
        The names that the script logged at this step: before it began, or in it. They stay until
        the script logs them again.
    """
    again = set()
    for name_id, name in connection.execute("SELECT id, name FROM scalar_names").fetchall():
        # An evaluation at this step came before it, as what the script logged may have.
        of_loss = names.loss_of_scalar(name)
        own = names.is_own_scalar(name) and (of_loss is None or of_loss[1] == "train")
        last = cut_points(connection, name_id, step if own else step + 1)
        if last == step:
            again.add(name)
    connection.execute(
        "DELETE FROM losses WHERE step > ? OR (step = ? AND phase = 'train')", (step, step)
    )
    connection.execute("DELETE FROM snapshots WHERE step >= ?", (step,))
    return again


def cut_events(connection: sqlite3.Connection, step: int) -> dict[str, int]:
    """Drop the events from a step on, and all findings; how many events there were, by kind."""
    events = connection.execute(
        "SELECT kind, count(*) + sum(repeats) FROM events WHERE step >= ? GROUP BY kind", (step,)
    ).fetchall()
    connection.execute("DELETE FROM events WHERE step >= ?", (step,))
    connection.execute("DELETE FROM findings")
    return dict(events)
