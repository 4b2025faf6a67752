"""Figures of tensors: of a tape, of a model, of a run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook import figures
from nethook.errors import InputsError, NoSuchSiteError, OptionError
from nethook.runs.writing.writer import RunWriter


@pytest.fixture(scope="module")
def traced():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 36, 4))
    with nethook.trace(model) as tape:
        model(torch.randn(2, 1, 8, 8))
    return model, tape


def values_of(made):
    data = np.array(made.data[0].customdata)
    return data[..., 3][~np.isnan(data[..., 3])]


def test_feature_maps_are_the_channels_of_a_sample(traced):
    _, tape = traced
    made = figures.feature_maps(tape, "0", sample=1)
    wanted = tape["0"].output[1].flatten().sort().values
    np.testing.assert_allclose(np.sort(values_of(made)), wanted, rtol=1e-6)
    assert len(made.layout.annotations) == 5
    assert len(figures.feature_maps(tape["0"].output, channels=2).layout.annotations) == 2


def test_filters_of_a_layer_a_parameter_or_a_tensor(traced):
    model, _ = traced
    wanted = np.sort(model[0].weight.detach().flatten())
    for named in ((model, "0"), (model, "0.weight"), (model[0].weight,)):
        made = figures.filters(*named)
        np.testing.assert_allclose(np.sort(values_of(made)), wanted, rtol=1e-6)
    assert figures.filters(torch.randn(8, 3, 5, 5)).data[0].type == "image"
    assert figures.filters(model, "3").data[0].z.shape == (4, 180)
    with pytest.raises(InputsError, match="must be a parameter or a module with a weight; got '1'"):
        figures.filters(model, "1")


def test_attention_with_tokens():
    probabilities = torch.softmax(torch.randn(2, 3, 4, 4), -1)
    made = figures.attention(probabilities, tokens=list("abcd"), sample=1)
    assert len(made.data) == 3
    np.testing.assert_allclose(made.data[2].z, probabilities[1, 2], rtol=1e-6)
    assert made.layout.xaxis.ticktext == tuple("abcd")
    with pytest.raises(
        OptionError, match="`tokens` must be as many as the 4 queries or the 4 keys; got 5"
    ):
        figures.attention(probabilities, tokens=list("abcde"))


def test_activations_of_a_tape(traced):
    _, tape = traced
    made = figures.activations(tape)
    assert list(made.data[0].y) == ["0", "1", "2", "3"]
    output = tape["0"].output.double().numpy()
    np.testing.assert_allclose(made.data[-1].x[0], np.median(output), rtol=1e-6)
    np.testing.assert_allclose(made.data[0].base[0], np.quantile(output, 0.01), rtol=1e-6)
    zeros = float((tape["1"].output == 0).float().mean())
    np.testing.assert_allclose(made.data[-1].customdata[1][0], zeros, rtol=1e-6)


def test_snapshots_are_a_row_a_step(traced):
    model, _ = traced
    kept = {}
    for step in (0, 100):
        with nethook.trace(model, "0") as kept[step]:
            model(torch.randn(1, 1, 8, 8))
    made = figures.snapshots(kept, "0", channels=3)
    assert [note.text for note in made.layout.annotations] == [
        "step 0",
        "1",
        "2",
        "step 100",
        "1",
        "2",
    ]
    np.testing.assert_allclose(made.data[0].z[:6, :6], kept[0]["0"].output[0, 0], rtol=1e-6)


def test_snapshots_of_a_run(tmp_path):
    pictures = np.random.default_rng(0).random((2, 3, 4, 4)).astype(np.float32)
    with RunWriter(tmp_path / "a.db") as writer:
        for step in (0, 50):
            writer.snapshot("conv1", step, pictures + step)
    made = figures.snapshots(tmp_path / "a.db", "conv1", sample=1)
    np.testing.assert_array_equal(made.data[0].z[:4, :4], pictures[1, 0])
    assert [note.text for note in made.layout.annotations][3] == "step 50"
    with pytest.raises(NoSuchSiteError, match=r"no snapshots of 'fc'; it has 'conv1'"):
        figures.snapshots(nethook.open_run(tmp_path / "a.db"), "fc")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: figures.feature_maps("x"), "`tape` must be a tensor or an array.*; got str"),
        (
            lambda: figures.feature_maps(torch.randn(3)),
            r"got \(3,\)\. For other.*figures.activations",
        ),
        (lambda: figures.snapshots({}), r"`pictures` must be .*; got an empty mapping\."),
        (
            lambda: figures.snapshots({0: torch.ones(2, 2), 1: torch.ones(3, 3)}),
            "must all have one shape; got",
        ),
        (
            lambda: figures.activations(torch.ones(2)),
            "`tape` must be a tape or a mapping from names to",
        ),
        (lambda: figures.activations({}), "Nothing in this tape has run yet"),
        (lambda: figures.attention(torch.ones(3)), r"\(samples, heads, queries, keys\)"),
        (lambda: figures.filters(torch.ones(3)), r"\(out, in, height, width\); got \(3,\)"),
    ],
)
def test_what_is_no_picture_is_said(call, message):
    with pytest.raises(InputsError, match=message):
        call()


def test_a_sample_that_is_not_there(traced):
    with pytest.raises(
        OptionError, match="`sample` must be a number below 2, the size of the batch; got 9"
    ):
        figures.feature_maps(traced[1], "0", sample=9)
    with pytest.raises(InputsError, match="`address` must be one of '0', '1'"):
        figures.feature_maps(traced[1])


def test_half_precision_and_complex_numbers_are_drawn():
    figures.feature_maps(torch.randn(1, 2, 4, 4, dtype=torch.bfloat16))
    made = figures.feature_maps(torch.full((1, 1, 2, 2), 3 + 4j))
    np.testing.assert_allclose(values_of(made), 5.0)
