"""The recorders of every watch, and the order in which they are told."""

from __future__ import annotations

from tests.watching.members import watched


def test_they_are_told_in_this_order(tmp_path):
    with watched(tmp_path) as session:
        recorders = session.recorders

        def told(methods):
            return [type(method.__self__).__name__ for method in methods]

        assert told(recorders.call_begins) == ["Losses", "Batches", "OpOrder"]
        assert told(recorders.call_ends) == ["Losses", "Scores", "Flight", "Batches"]
        assert told(recorders.end_step) == [
            "Losses", "Flight", "OpOrder", "Interruptions", "Facts", "Modes",
        ]  # fmt: skip
        # Late losses are known before what devices say of the step.
        assert told(recorders.end_window)[:5] == [
            "LoopNumbers", "Losses", "Scores", "Flight", "DeviceFlags",
        ]  # fmt: skip
        assert told(recorders.close) == [
            "Losses", "Scores", "Flight", "Graph", "Facts", "LoaderPasses",
        ]  # fmt: skip
