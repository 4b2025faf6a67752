"""Any result of a study is read back by `interp.load`, whatever it is of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nethook import edits, interp
from nethook.errors import ResultError
from nethook.interp import loading

torch.manual_seed(0)
MODEL = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
NET = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(27, 2))
X, OTHER = torch.randn(2, 40, 4)
IMAGES = torch.rand(3, 1, 8, 8)
LABELS = (X[:, 0] > 0).long()


def metric(out: torch.Tensor) -> torch.Tensor:
    return out[:, 0]


class Dictionary(nn.Module):
    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu()

    def decode(self, features: torch.Tensor) -> torch.Tensor:
        return features


def direction() -> Any:
    return interp.direction(MODEL, X, OTHER, at="1")


def loss(out: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(out, LABELS)


MADE = {
    "Attribution": lambda: interp.saliency(MODEL, X, target=1),
    "CKA": lambda: interp.cka(MODEL, None, X, at=["1", "3"]),
    "Cam": lambda: interp.grad_cam(NET, IMAGES, target=1, at="0"),
    "Direction": direction,
    "Lens": lambda: interp.lens(MODEL, X, at=["1", "3"]),
    "Probe": lambda: interp.probe(X, LABELS),
    "ReceptiveField": lambda: interp.receptive_field(NET, IMAGES, at="0"),
    "Recovered": lambda: interp.splice(MODEL, {"1": Dictionary()}).loss_recovered(X, loss),
    "SteeringCurve": lambda: direction().effects(MODEL, X, metric=metric, strengths=(-1, 0, 1)),
    "Subspace": lambda: interp.das(MODEL, X, OTHER, LABELS, at="1", size=1, steps=2),
    "Sweep": lambda: interp.sweep(MODEL, X, at="1", change=edits.zero(), metric=metric),
    "TunedLens": lambda: interp.tuned_lens(MODEL, X, at=["1", "3"], epochs=1),
    "Verified": lambda: interp.attribute(
        MODEL, X, OTHER, at="1", over="units", metric=metric
    ).verify(top=2, sample=2),
    "Visualisation": lambda: interp.visualize(NET, at="0", unit=1, shape=(1, 8, 8), steps=2),
}


def test_every_kind_is_known() -> None:
    known = {where.partition(":")[2] for where in loading._WHERE.values()}
    assert known == set(MADE)


@pytest.mark.parametrize("kind", MADE)
def test_what_is_saved_is_loaded_and_drawn(kind: str, tmp_path: Path) -> None:
    result = MADE[kind]()
    assert type(result).__name__ == kind
    result.save(tmp_path / "a.json")
    again = interp.load(tmp_path / "a.json")
    assert type(again) is type(result)
    assert again.table() == result.table()
    assert again.spec()["data"]
    mine, theirs = again.figure(), result.figure()
    assert mine.to_json() == theirs.to_json()


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"format": 1}))
    with pytest.raises(ResultError, match=r"a\.json must be a file that `save` of a study has"):
        interp.load(path)
    with pytest.raises(ResultError, match=r"no\.json cannot be read"):
        interp.load(tmp_path / "no.json")
