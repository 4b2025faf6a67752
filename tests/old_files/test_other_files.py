"""What else 0.1 wrote: the file of a first NaN, recipes, features, plans."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import nethook
from nethook import edits
from nethook.errors import NoSuchFeaturesError, ResumeError
from nethook.init import Plan
from tests.old_files import models
from tests.old_files.models import numbers
from tests.old_files.written import unpacked


@pytest.mark.parametrize("beside", [False, True])
def test_the_first_nan_is_replayed(tmp_path: Path, beside: bool) -> None:
    path = unpacked(tmp_path, "nan")
    found = nethook.replay(
        path.with_name("nan.flight.safetensors") if beside else path, models.Logarithm()
    )
    assert (found.step, found.case, found.reproduced) == (6, "forward", True)
    assert found.operation == "/log#0"
    (given,) = found.inputs
    assert given.min < 0 < given.max
    (made,) = found.output
    assert made.nan == 4  # of one sample, which is negative


def by_hand(model: models.Layers, x: torch.Tensor) -> torch.Tensor:
    """What the recipe does, written out."""
    line, matrix = numbers(4, seed=7), numbers(4, 4, seed=8)
    unit = line / line.norm()

    def noisy(y: torch.Tensor) -> torch.Tensor:
        return y + 0.1 * torch.randn(y.shape, generator=torch.Generator().manual_seed(3))

    def patched(y: torch.Tensor) -> torch.Tensor:
        return torch.cat([y[:, :1], matrix[:, 1:2], y[:, 2:]], 1)

    changes = [
        lambda y: y * 0.5,
        lambda y: (y + line).clamp(-1.0, 0.75),
        lambda y: y * (1.5 / (y.norm() + 1e-6)).clamp(max=1.0),
        noisy,
        lambda y: line.expand(4, 4),
        patched,
        lambda y: y * (line > 0),
        lambda y: y - 2 * line,
        lambda y: y - (y @ unit)[:, None] * unit,
        lambda y: y * torch.tensor([0.0, 1.0, 0.0, 1.0]),
        lambda y: y * torch.tensor([0.0, 1.0, 0.0, 0.0]),
        torch.zeros_like,
    ]
    for number, (layer, change) in enumerate(zip(model.layers, changes, strict=True)):
        if number == 0:
            weight = layer.weight + torch.outer(line, line.flip(0))
            x = x + change((x + 0.25) @ weight.T + layer.bias)
        else:
            x = x + change(layer(x))
    once, (hidden, cell) = model.lstm(x[:, None])
    again, _ = model.lstm(once, (hidden + 1.0, cell))
    return 3 * again[:, 0]


def test_a_recipe_does_what_was_saved(tmp_path: Path) -> None:
    recipe = edits.load(unpacked(tmp_path, "recipe"))
    model, x = models.Layers(), numbers(4, 4, seed=9)
    plain = models.Layers()
    with nethook.edit(model, **recipe):
        changed = model(x)
        changed.sum().backward()
    wanted = by_hand(plain, x)
    wanted.sum().backward()
    torch.testing.assert_close(changed, wanted)
    found = [layer.bias.grad for layer in model.layers]
    biases = [layer.bias for layer in plain.layers]
    nn.utils.clip_grad_norm_(biases, 0.5)
    # Nothing flows back through a value that was replaced.
    assert [index for index, grad in enumerate(found) if grad is None] == [4, 11]
    for grad, bias in zip(found, biases, strict=True):
        torch.testing.assert_close(grad, bias.grad)


def test_a_recipe_is_the_same_when_it_is_saved_again(tmp_path: Path) -> None:
    path = unpacked(tmp_path, "recipe")
    again = tmp_path / "again.json"
    edits.save(again, **edits.load(path))
    assert again.read_text() == path.read_text()
    assert again.with_suffix(".safetensors").read_bytes() == (
        path.with_suffix(".safetensors").read_bytes()
    )


def features_by_hand() -> dict[str, torch.Tensor]:
    model, x = models.network(), models.Pictures().x
    with torch.no_grad():
        return {"0": model[0](x).mean((2, 3)), "3": model[:4](x)}


def check_features(data: nethook.Features) -> None:
    assert len(data) == 30
    for site, values in features_by_hand().items():
        torch.testing.assert_close(data.tensor(site), values)
    assert list(data.labels) == [number % 3 for number in range(30)]
    assert data.ids == [f"picture-{number:02}" for number in range(30)]
    row, label = data[17]
    assert set(row) == {"0", "3"}
    assert label == 17 % 3


def extracted(folder: Path, model: nn.Module) -> nethook.Extraction:
    return nethook.extract(
        model, models.pictures(), at=["0", "3"], to=folder,
        pool="mean", shard_mb=0.0002, progress=False,
    )  # fmt: skip


def test_features_load(tmp_path: Path) -> None:
    check_features(nethook.load_features(unpacked(tmp_path, "features")))


def test_features_that_are_there_are_not_extracted_again(tmp_path: Path) -> None:
    done = extracted(unpacked(tmp_path, "features"), models.network())
    assert (done.rows, done.resumed, done.complete) == (30, 30, True)


def test_an_extraction_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    folder = unpacked(tmp_path, "unfinished")
    with pytest.raises(NoSuchFeaturesError):
        nethook.load_features(folder)
    done = extracted(folder, models.network())
    assert (done.rows, done.resumed, done.complete) == (30, 20, True)
    check_features(done.load())


def test_an_extraction_with_other_weights_is_refused(tmp_path: Path) -> None:
    other = models.network()
    nn.init.zeros_(other[0].bias)
    with pytest.raises(ResumeError, match="the model: its layers or its weights"):
        extracted(unpacked(tmp_path, "unfinished"), other)


def test_a_plan_is_applied(tmp_path: Path) -> None:
    text = unpacked(tmp_path, "plan").read_text(encoding="utf-8")
    plan = Plan.from_json(text)
    assert plan.to_json() == text.rstrip("\n")
    model = models.network()
    torch.manual_seed(0)
    nethook.init.apply_(model, plan)
    assert not torch.equal(model[0].weight, models.network()[0].weight)
    assert not model[0].bias.any()
