"""Baselines: taken silently only where zero is neutral, else named."""

import pytest
import torch
from torch import nn

import nethook
from nethook import interp
from nethook.errors import OptionError

EMBEDDED = nn.Sequential(nn.Embedding(6, 3), nn.Flatten(), nn.Linear(12, 1))
IDS = torch.tensor([[1, 2, 3, 4], [5, 4, 3, 2]])


@pytest.mark.parametrize(
    ("model", "x", "at", "why"),
    [
        (nn.Linear(3, 1), torch.randn(2, 3), None, "zero is a value like another in a table"),
        (EMBEDDED, IDS, "0", "zero means nothing at '0'"),
        (
            nn.Sequential(nn.Flatten(), nn.Linear(12, 1)),
            torch.rand(2, 3, 2, 2) + 5, None, "zero is outside the input, 5",
        ),
        (nn.Flatten(), torch.randn(2, 6, 2), None, "zero may mean any"),
    ],
)  # fmt: skip
def test_it_has_to_be_named_where_zero_is_not_neutral(model, x, at, why):
    with pytest.raises(OptionError, match=rf"`baseline` must be named, because {why}.*baseline=0"):
        interp.integrated_gradients(model, x, target=0, at=at)


def test_pictures_and_signals_start_from_zero():
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 1))
    for shape in ((2, 3, 2, 2), (2, 1, 12)):
        found = interp.integrated_gradients(model, torch.randn(shape))
        assert found.baseline == "0"
        assert torch.allclose(found.start, model[1].bias)


def test_numbers_tensors_and_one_row():
    model, x = nn.Linear(3, 1), torch.randn(2, 3)
    one = torch.tensor([1.0, 2.0, 3.0])
    for given, base in ((2, torch.full((3,), 2.0)), (one, one), (one.expand(2, 3), one)):
        found = interp.integrated_gradients(model, x, baseline=given)
        expected = model.weight[0] * (x - base)
        assert torch.allclose(found.values, expected, atol=1e-6)


def test_the_inputs_of_a_run_at_a_site():
    pad = torch.zeros_like(IDS)
    weight = EMBEDDED[2].weight.detach().reshape(4, 3)
    expected = weight * (EMBEDDED[0](IDS) - EMBEDDED[0](pad)).detach()
    for x, given in (
        (IDS, pad),
        (IDS, nethook.inputs(pad)),
        (IDS, (pad,)),
        (IDS, EMBEDDED[0](pad).detach()),
    ):
        found = interp.integrated_gradients(EMBEDDED, x, at="0", baseline=given)
        assert torch.allclose(found.values, expected, atol=1e-6)


def test_the_mask_is_the_same_at_both_ends():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(6, 3)

        def forward(self, input_ids, attention_mask):
            return (self.embed(input_ids) * attention_mask[..., None]).sum((1, 2))

    model, mask = Masked(), torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])
    found = interp.integrated_gradients(
        model,
        {"attention_mask": mask, "input_ids": IDS},
        at="embed",
        baseline=torch.zeros_like(IDS),
    )
    expected = (model.embed(IDS) - model.embed(torch.zeros_like(IDS))) * mask[..., None]
    assert torch.allclose(found.values, expected.detach(), atol=1e-6)


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (torch.zeros(5), r"shape of the value, \(2, 3\), or of one row; got \(5,\)"),
        (torch.full((3,), torch.nan), "must be finite"),
        (True, "must be a number, a tensor or inputs; got True"),
        ("zero", "got str"),
        ((torch.zeros(2, 3),), "got tuple"),
    ],
)
def test_what_does_not_fit_is_refused(given, match):
    with pytest.raises(OptionError, match=match):
        interp.integrated_gradients(nn.Linear(3, 1), torch.randn(2, 3), baseline=given)


def test_a_tensor_that_may_be_two_things():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    x = torch.randn(2, 3)
    with pytest.raises(OptionError, match=r"`baseline` must be clear"):
        interp.integrated_gradients(model, x, at="0", baseline=torch.zeros(2, 3))
    found = interp.integrated_gradients(
        model, x, at="0", baseline=nethook.inputs(torch.zeros(2, 3))
    )
    assert torch.allclose(found.start, model(torch.zeros(2, 3))[:, 0])


def test_a_run_of_another_shape_is_refused():
    with pytest.raises(OptionError, match=r"got \(2, 2, 3\) from its run|must have the shape"):
        interp.integrated_gradients(
            nn.Sequential(nn.Embedding(6, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
            IDS, at="0", baseline=nethook.inputs(IDS[:, :2]),
        )  # fmt: skip
