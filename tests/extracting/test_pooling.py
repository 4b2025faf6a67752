"""One vector per sample, against numpy and by hand."""

import numpy as np
import pytest
import torch

import nethook
from nethook.errors import OptionError
from nethook.extracting.pooling import check_pool, find_mask, pooled

TOKENS = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0))
LENGTHS = (5, 2, 0)
MASK = torch.tensor([[position < length for position in range(5)] for length in LENGTHS])


def rows_that_count(pool):
    """What numpy makes of the tokens that count; zeros where none does."""
    return np.stack(
        [
            pool(TOKENS[sample, :length].numpy()) if length else np.zeros(4, dtype="f4")
            for sample, length in enumerate(LENGTHS)
        ]
    )


@pytest.mark.parametrize(("pool", "by_numpy"), [("mean", np.mean), ("max", np.max)])
def test_masked_tokens_do_not_count(pool, by_numpy):
    expected = rows_that_count(lambda rows: by_numpy(rows, axis=0))
    spoilt = TOKENS.masked_fill(~MASK.unsqueeze(-1), torch.nan)
    np.testing.assert_allclose(pooled(spoilt, pool, MASK.long()).numpy(), expected, rtol=1e-6)


def test_the_last_token_is_the_last_that_counts_on_either_side():
    assert torch.equal(pooled(TOKENS, "last", MASK)[:2], TOKENS[[0, 1], [4, 1]])
    left = MASK[:2].flip(1)
    assert torch.equal(pooled(TOKENS[:2], "last", left), TOKENS[:2, -1])
    assert torch.equal(pooled(TOKENS, "last", None), TOKENS[:, -1])


@pytest.mark.parametrize("pool", ["first", "cls"])
def test_the_first_token_is_the_first_whatever_is_masked(pool):
    assert torch.equal(pooled(TOKENS, pool, ~MASK), TOKENS[:, 0])


def test_which_dimensions_are_pooled_follows_from_their_number():
    image = torch.arange(24.0).reshape(1, 2, 3, 4)
    assert torch.equal(pooled(image, "mean", None), image.mean((2, 3)))
    assert torch.equal(pooled(image, "max", None), image.amax((2, 3)))
    assert pooled(image, "flatten", None).shape == (1, 24)
    vectors = torch.ones(2, 3)
    for pool in ("mean", "max"):
        assert pooled(vectors, pool, MASK) is vectors
    assert pooled(TOKENS, None, None) is TOKENS


def test_whole_numbers_have_a_masked_maximum_too():
    tokens = torch.tensor([[[-5], [9]]])
    assert pooled(tokens, "max", torch.tensor([[True, False]])).tolist() == [[-5]]


def test_a_mask_is_a_tensor_or_the_name_of_an_input():
    inputs = nethook.inputs(TOKENS, attention_mask=MASK, wrong=[1])
    assert find_mask("attention_mask", inputs) is MASK
    assert find_mask("absent", inputs) is None
    assert find_mask(None, inputs) is None
    assert find_mask(MASK, inputs) is MASK
    with pytest.raises(OptionError, match=r"`mask` must be a tensor of shape .* got list\."):
        find_mask("wrong", inputs)


def test_errors_say_what_to_type():
    with pytest.raises(OptionError, match=r"`pool` must be \"mean\", .* or None; got 'sum'\."):
        check_pool("sum")
    with pytest.raises(OptionError, match=r"shape \(3, 5\) .* got \(3, 4\)\. Pass mask=\.\.\."):
        pooled(TOKENS, "mean", MASK[:, :4])
    with pytest.raises(
        OptionError, match=r"of shape \(2, 3\); got \"last\", which takes one token"
    ):
        pooled(torch.ones(2, 3), "last", None)
    with pytest.raises(OptionError, match=r"`pool` must return a tensor; got float\."):
        pooled(TOKENS, lambda tensor: float(tensor.sum()), None)
