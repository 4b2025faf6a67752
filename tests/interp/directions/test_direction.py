"""A direction steers by its own unit, in generations as well, and is saved."""

import dataclasses

import pytest
import torch
from torch import nn

import nethook
from nethook import edits, interp
from nethook.errors import OptionError
from nethook.interp.directions.direction import Direction
from tests.interp.directions.planted import SITE, gaussian, gpt2


@pytest.fixture(scope="module")
def v():
    ids = torch.arange(1, 25).reshape(4, 6)
    return interp.direction(gpt2(), ids, ids + 3, at=SITE)


def test_a_strength_adds_as_many_standard_deviations_and_nothing_else(v):
    ids = torch.arange(1, 13).reshape(2, 6)
    with torch.no_grad(), nethook.trace(gpt2(), SITE) as plain:
        gpt2()(ids)
    edit = {SITE: v.steer(2.5)}
    with torch.no_grad(), nethook.edit(gpt2(), outputs=edit), nethook.trace(gpt2(), SITE) as tape:
        gpt2()(ids)
    before, after = plain[SITE].output, tape[SITE].output
    moved = v.project(after) - v.project(before)
    torch.testing.assert_close(moved, torch.full_like(moved, 2.5), rtol=1e-12, atol=1e-12)
    across = (after - before) - (after - before) @ v.vector[:, None] * v.vector
    assert float(across.abs().max()) < 1e-12
    both = torch.cat([v.positive, v.negative])
    assert v.std == pytest.approx(float(both.std()))


def test_cache_on_is_cache_off_and_a_batch_is_its_texts(v):
    ids = torch.tensor([[0, 0, 3, 5, 7], [2, 4, 6, 8, 10]])
    mask = (ids != 0).long()

    def made(ids, mask, cached):
        with torch.no_grad(), nethook.edit(gpt2(), outputs={SITE: v.steer(6.0, phase="decode")}):
            return gpt2().generate(
                ids, attention_mask=mask, max_new_tokens=4, do_sample=False, use_cache=cached,
                eos_token_id=None, pad_token_id=0,
            )  # fmt: skip

    assert torch.equal(made(ids, mask, True), made(ids, mask, False))
    assert torch.equal(made(ids, mask, True)[0, 2:], made(ids[:1, 2:], mask[:1, 2:], True)[0])


def test_projected_out_nothing_is_left(v):
    value = torch.randn(3, 5, 16, dtype=torch.double)
    edit = v.project_out()
    assert isinstance(edit, edits.project_out)
    assert float(v.project(edit(value)).abs().max()) < 1e-12


def test_effects_over_strengths_and_nested_outputs(v):
    def metric(out):
        return out.logits[:, -1, 3]

    ids = torch.arange(1, 13).reshape(2, 6)
    curve = v.effects(gpt2(), ids, metric=metric, strengths=(-1, 0, 1))
    with torch.no_grad():
        assert torch.equal(curve.values[1], gpt2()(ids).logits[:, -1, 3])
        with nethook.edit(gpt2(), outputs={SITE: v.steer(1)}):
            assert torch.equal(curve.values[2], gpt2()(ids).logits[:, -1, 3])
    with pytest.raises(OptionError, match="got a direction without a site"):
        dataclasses.replace(v, site="").effects(gpt2(), ids, metric=metric)
    lstm = nn.LSTM(3, 4, batch_first=True)
    nested = interp.direction(lstm, torch.ones(3, 5, 3), torch.zeros(3, 5, 3), at={"": "[0]"})
    assert nested.path == "[0]"


def test_auc_gap_files_and_looks(tmp_path):
    x, labels, _ = gaussian(rows=300)
    v = interp.direction(None, x[labels == 1], x[labels == 0])
    from sklearn.metrics import roc_auc_score

    along = torch.cat([v.positive, v.negative]).numpy()
    truth = [1] * len(v.positive) + [0] * len(v.negative)
    assert v.auc == pytest.approx(roc_auc_score(truth, along))
    assert v.gap == pytest.approx(float(v.positive.mean() - v.negative.mean()) / v.std)
    v.save(tmp_path / "v.json")
    again = Direction.load(tmp_path / "v.json")
    assert torch.equal(again.vector, v.vector)
    assert repr(again) == repr(v)
    assert repr(v).startswith("direction at features (mean, 12 features): gap ")
    assert len(v.figure().data) == 2
    edits.save(tmp_path / "s.json", outputs={"h": v.steer(2.0, phase="decode")})
    assert edits.load(tmp_path / "s.json")["outputs"]["h"][""][0] == v.steer(2.0, phase="decode")
