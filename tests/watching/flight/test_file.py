"""The file of a flight recorder: what goes in comes out, and damaged files are refused by name."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from nethook.errors import NoSuchRunError, NotARunError
from nethook.watching.flight import file as flight_file
from nethook.watching.flight.file import Flight, flight_path, load, save, weights_of

FIELDS = ("args", "kwargs", "random", "weights", "loss")


def same(one, other) -> bool:
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and all(map(same, one, other))
    return one == other


def test_what_was_saved_is_loaded(tmp_path):
    flight = Flight(
        {"case": "forward", "step": 3},
        (torch.randn(2, 3), [torch.tensor([1, 2]), None, (1.5, "x", True)]),
        {"mask": {"deep": torch.zeros(2, dtype=torch.bool)}},
        {"cpu": torch.get_rng_state()},
        {"cpu": "bfloat16"},
        {"w": torch.randn(3, dtype=torch.bfloat16)},
        {"": True, "drop": False},
        {"function": "mse_loss", "target": torch.ones(2)},
    )
    path = flight_path(tmp_path / "run.db")
    assert path.name == "run.flight.safetensors"
    assert save(path, flight) == []
    for given in (path, tmp_path / "run.db", str(path)):
        loaded = load(given)
        for name in (
            "finding",
            "args",
            "kwargs",
            "random",
            "autocast",
            "weights",
            "training",
            "loss",
        ):
            assert same(getattr(flight, name), getattr(loaded, name)), name


def test_gradients_are_asked_for_again_and_views_are_saved_once(tmp_path):
    x = torch.randn(4, requires_grad=True)
    wide = torch.ones(1).expand(1 << 40)
    path = tmp_path / "a.safetensors"
    save(path, Flight({}, (x, x[:2], wide)))
    assert path.stat().st_size < 10_000
    first, part, expanded = load(path).args
    assert first.requires_grad
    assert torch.equal(part, x[:2])
    assert expanded.shape == wide.shape


def test_what_cannot_be_saved_is_left_out_and_named(tmp_path):
    path = tmp_path / "a.safetensors"
    left_out = save(path, Flight({}, (torch.ones(2), object()), {"s": torch.eye(2).to_sparse()}))
    assert left_out == ["args.1 (object)", "kwargs.s (sparse tensor)"]
    loaded = load(path)
    assert loaded.left_out == left_out
    assert loaded.args[1] is None


def test_a_run_without_a_file(tmp_path):
    with pytest.raises(NoSuchRunError, match=r"^There is no '.*run\.flight\.safetensors': a run"):
        load(tmp_path / "run.db")


KEY = flight_file._KEY


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"other": "x"}, "was not written by nethook.watch"),
        ({KEY: "{"}, "cannot be read"),
        ({KEY: "[]"}, "has version None; this nethook reads version 1"),
        ({KEY: json.dumps({KEY: 99})}, "has version 99"),
        ({KEY: json.dumps({KEY: 1})}, "cannot be read"),
    ],
)
def test_other_and_damaged_files_are_refused(metadata, text, tmp_path):
    path = tmp_path / "a.safetensors"
    save_file({"x": torch.ones(1)}, path, metadata=metadata)
    with pytest.raises(NotARunError, match=text):
        load(path)


def test_a_tensor_that_is_named_and_not_there(tmp_path):
    path = tmp_path / "a.safetensors"
    save(path, Flight({}, (torch.ones(2),)))
    text = json.dumps(
        {
            KEY: 1,
            "args": [{"tensor": "gone"}],
            "kwargs": {},
            "random": {},
            "weights": {},
            "loss": {},
        }
    )
    save_file({"x": torch.ones(1)}, path, metadata={KEY: text})
    with pytest.raises(NotARunError, match="names a tensor that it does not have: 'gone'"):
        load(path)


def test_weights_are_parameters_and_buffers_up_to_a_cap(monkeypatch):
    model = nn.BatchNorm1d(3)
    assert sorted(weights_of(model)) == [
        "bias", "num_batches_tracked", "running_mean", "running_var", "weight",
    ]  # fmt: skip
    monkeypatch.setattr(flight_file, "WEIGHTS_CAP", 8)
    assert weights_of(model) is None
