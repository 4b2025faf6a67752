"""Options as text, for other processes."""

from __future__ import annotations

import json

import pytest

from nethook.running.options import RunOptions


@pytest.mark.parametrize(
    "options",
    [
        RunOptions("/runs/a.db"),
        RunOptions(
            "/runs/ü \n.db",
            name="first",
            budget=None,
            include=("encoder.**", "head"),
            exclude=("*.dropout",),
            batches=0,
            keep_args=True,
            resume=True,
            step=5000,
            sinks=("wandb", "tensorboard:all"),
        ),
    ],
)
def test_what_is_read_is_what_was_written(options: RunOptions) -> None:
    again = RunOptions.from_json(options.to_json())
    assert again == options
    assert hash(again) == hash(options)  # patterns are tuples again


def test_the_text_is_plain_json() -> None:
    data = json.loads(RunOptions("a.db", include=("x",)).to_json())
    assert data["to"] == "a.db"
    assert data["include"] == ["x"]
    assert data["budget"] == 0.03


def test_a_text_of_another_version_is_refused() -> None:
    data = json.loads(RunOptions("a.db").to_json())
    with pytest.raises(TypeError, match="speed"):
        RunOptions.from_json(json.dumps({**data, "speed": 1}))
