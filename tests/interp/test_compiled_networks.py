"""What the networks of these tests are said to do, they do."""

from __future__ import annotations

import math
from typing import Any

import torch

import nethook
from nethook import edits
from tests.interp import compiled_networks as networks


def test_the_compiled_network_completes_every_repeat() -> None:
    texts, answers = networks.repeats(200)
    logits = networks.induction()(texts)[:, -1]
    assert torch.equal(logits.argmax(-1), answers)
    # The softmax is saturated: one key of eight matches.
    expected = math.exp(networks.BETA) / (math.exp(networks.BETA) + networks.LENGTH - 1)
    torch.testing.assert_close(logits.max(-1).values, torch.full((200,), expected))


def test_its_first_layer_finds_the_previous_token() -> None:
    texts, _ = networks.repeats(3)
    probs = nethook.attention_probs(networks.induction(), texts, at="blocks.0")
    for position in range(1, networks.LENGTH):
        assert (probs[:, 0, position, position - 1] > 0.999).all()


def test_its_other_heads_reach_nothing() -> None:
    model, (texts, _) = networks.induction(), networks.repeats(3)
    logits = model(texts)
    for layer in (0, 1):
        op = f"blocks.{layer}.attention/scaled_dot_product_attention#0"
        for heads in ([1], [2]):
            with nethook.edit(model, outputs={op: edits.zero_units(heads)}):
                assert torch.equal(model(texts), logits)
    with nethook.edit(model, outputs={op: edits.zero_units([0])}):
        assert (model(texts) == 0).all()


def test_the_two_readings_of_a_number_cancel() -> None:
    model = networks.Cancellation()
    n = torch.tensor([[1.0], [3.0]], requires_grad=True)
    metric = model(n)
    assert metric.tolist() == [[0.5], [-1.5]]
    assert torch.autograd.grad(metric[0, 0], n)[0][0].item() == 0.0


def test_modular_addition_has_a_closed_form() -> None:
    model = networks.ModularAddition(23, (1, 4, 7))
    a, b = torch.cartesian_prod(torch.arange(23), torch.arange(23)).T
    logits = model(a, b)
    torch.testing.assert_close(logits, model.closed_form(a, b), rtol=0, atol=1e-12)
    assert torch.equal(logits.argmax(-1), (a + b) % 23)
    with nethook.edit(model, outputs={"square": edits.zero_units(range(9, 18))}):
        torch.testing.assert_close(
            model(a, b), model.closed_form(a, b, without=(4,)), rtol=0, atol=1e-12
        )


def test_the_trained_network_repeats_and_has_both_heads() -> None:
    model, texts = networks.trained_induction(), networks.repeated_texts(64)
    logits = model(texts[:, :-1])[:, 8:]
    assert (logits.argmax(-1) == texts[:, 9:]).double().mean() > 0.95
    previous, induction = (
        nethook.attention_probs(model, texts, at=f"blocks.{layer}")[:, 0] for layer in (0, 1)
    )
    rows = torch.arange(9, 15)
    # 8 back is the same token, 7 back what came after it.
    assert induction[:, rows, rows - 7].mean() > 0.75
    # The second layer looks for keys in the first copy: there the first one is nearly saturated.
    assert float(previous[:, torch.arange(1, 8), torch.arange(7)].mean()) > 0.9
    every = torch.arange(1, 16)
    assert 0.65 < float(previous[:, every, every - 1].mean()) < 0.75


def test_the_first_layer_of_the_trained_network_is_needed_in_the_first_copy_alone() -> None:
    model, texts = networks.trained_induction(), networks.repeated_texts(64)

    def accuracy(where: slice) -> float:
        """With the first layer looking at each token itself there, and not at the one before."""

        def itself(args: Any, kwargs: Any, compute: Any) -> Any:
            z, value = compute(*args, **kwargs).clone(), args[2]
            z[:, :, where] = value[:, :, where]
            return z

        op = "blocks.0.attention/scaled_dot_product_attention#0"
        with nethook.edit(model, answers={op: itself}):
            logits = model(texts[:, :-1])[:, 8:]
        return float((logits.argmax(-1) == texts[:, 9:]).double().mean())

    assert accuracy(slice(1, 8)) < 0.2
    assert accuracy(slice(8, 15)) > 0.9


def test_trained_addition_generalises() -> None:
    _, accuracy = networks.trained_addition()
    assert accuracy > 0.995
