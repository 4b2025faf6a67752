"""The size of the signal over depth."""

from __future__ import annotations

from typing import Any

import pytest

from nethook.doctor.signals.scale import scaled_layers
from tests.doctor.synthetic import Made


def made(*layers: tuple[str, str, float, list[int]], dtype: str = "float32") -> Made:
    """Layers in a row: name, operation, size of the output, shape of the weight."""
    run = Made().series("", "inputs", rms=2.0, info={"dtype": dtype})
    ops: list[dict[str, Any]] = []
    for name, op, size, shape in layers:
        run.module(name, parameters=[f"{name}.weight"]).parameter(f"{name}.weight", shape=shape)
        run.series(name, "outputs", rms=size)
        ops.append({"site": name, "op": op, "from": [len(ops) - 1] if ops else []})
    run.info["ops"] = ops
    return run


def test_layers_are_compared_with_what_came_in() -> None:
    first, last = scaled_layers(
        made(("a", "linear", 20.0, [4, 4]), ("b", "conv2d", 0.5, [4, 4, 3, 3])).history()
    )
    assert (first.up, last.down) == (10.0, 4.0)
    assert (first.head, last.head) == (False, True)


@pytest.mark.parametrize("norm", ["layer_norm", "rsqrt"])
def test_a_norm_is_where_a_scale_begins(norm: str) -> None:
    """Known by its operation, or by a vector as its only weight: one that a user has written."""
    layers = scaled_layers(
        made(("a", "linear", 0.1, [4, 4]), ("n", norm, 1.0, [4]), ("b", "linear", 3.0, [4, 4]))
        .history()
    )  # fmt: skip
    assert [layer.address for layer in layers] == ["a", "b"]
    assert layers[1].up == pytest.approx(3.0)
    assert layers[0].segment != layers[1].segment


def test_an_embedding_of_whole_numbers_is_no_reference_for_growth() -> None:
    (layer,) = scaled_layers(
        made(("e", "embedding", 0.02, [9, 4]), ("a", "linear", 1.0, [4, 4]), dtype="int64")
        .history()
    )  # fmt: skip
    assert layer.up == 1.0  # by one, not by 0.02
    assert layer.down == pytest.approx(0.02)
