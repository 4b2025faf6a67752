"""One vector per row: the tokens that count."""

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import OptionError
from nethook.interp.directions.values import check_at, check_pooling, site_values
from tests.interp.directions.planted import SITE, gpt2

IDS = torch.tensor([[0, 0, 3, 5, 7], [2, 4, 6, 8, 10]])
MASK = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])


def values(pool, **given):
    inputs = {"input_ids": IDS, "attention_mask": MASK, "use_cache": False, **given}
    return site_values(gpt2(), inputs, SITE, pool, name="data")


def test_last_mean_and_positions_count_real_tokens():
    with torch.no_grad(), nethook.trace(gpt2(), SITE) as tape:
        gpt2()(IDS, attention_mask=MASK, use_cache=False)
    out = tape[SITE].output
    torch.testing.assert_close(values("last"), out[:, -1])
    torch.testing.assert_close(values("mean"), torch.stack([out[0, 2:].mean(0), out[1].mean(0)]))
    torch.testing.assert_close(values(0), torch.stack([out[0, 2], out[1, 0]]))
    torch.testing.assert_close(values([0, -1])[0], (out[0, 2] + out[0, -1]) / 2)
    torch.testing.assert_close(values(slice(1, 3))[1], out[1, 1:3].mean(0))
    with pytest.raises(OptionError, match="row 0 has no such token"):
        values(4)


def test_other_models_and_refusals():
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.9)).train()
    x = torch.randn(130, 3)  # more than one piece
    found = site_values(model, x, "1", "last", name="data")
    torch.testing.assert_close(found, model[0](x).detach().double())  # evaluation: no dropout
    assert model.training
    assert not nethook.audit(model)
    tokens = site_values(model, torch.ones(2, 5, 3), "0", 3, name="data")
    assert tokens.shape == (2, 4)
    conv = nn.Conv2d(1, 2, 1)
    with pytest.raises(OptionError, match=r"one vector per row or per token.* got \(1, 2, 4, 4\)"):
        site_values(conv, torch.ones(1, 1, 4, 4), "", "mean", name="data")
    for wrong in ("first", None, [], 1.5):
        with pytest.raises(OptionError, match="`pool` must be"):
            check_pooling(wrong)
    assert check_at({"lstm": "[0]"}) == ("lstm", "[0]")
    with pytest.raises(OptionError, match="`at` must be the address of one site"):
        check_at(["a", "b"])
