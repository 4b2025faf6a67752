"""Splices: nothing by themselves, and features that can be read, set and differentiated."""

import pytest
import torch
from torch import nn

import nethook
from nethook import edits, interp
from nethook.errors import NoSuchSiteError, OptionError, ResultError, ScopeError, UnfiredError
from nethook.interp.dictionaries.splice import Recovered
from tests.interp.dictionaries.dictionaries import SAE, Rotation, network

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)


def test_without_a_change_the_run_is_bit_equal_and_nothing_stays():
    model, sae = network(), SAE()
    plain = model(X)
    with interp.splice(model, {"1": sae}) as s:
        assert torch.equal(model(X), plain)
        hidden = torch.tanh(model[0](X))
        torch.testing.assert_close(s["1"].features, sae.encode(hidden))
        torch.testing.assert_close(s["1"].error + sae.decode(s["1"].features), hidden)
        assert "24 features" in repr(s)
    assert not nethook.audit(model)
    assert torch.equal(model(X), plain)
    float_model = network().float()
    before = float_model(X.float())
    with interp.splice(float_model, {"1": sae}):
        assert torch.equal(float_model(X.float()), before)


def test_features_are_set_ablated_changed_and_reset():
    model, sae = network(), SAE()
    hidden = torch.tanh(model[0](X)).detach()
    rest = nn.Sequential(*list(model)[2:])
    f = sae.encode(hidden).detach()

    def expected(new):
        return rest(hidden + sae.decode(new) - sae.decode(f))

    with interp.splice(model, {"1": sae}) as s:
        s.set("1", unit=3, to=8.0)
        new = f.clone()
        new[:, 3] = 8
        torch.testing.assert_close(model(X), expected(new))
        assert float(s["1"].features[0, 3]) == 8
        s.ablate("1", [5, -1])
        new[:, [5, 23]] = 0
        torch.testing.assert_close(model(X), expected(new))
        s.reset()
        s.change("1", edits.scale(2.0))
        torch.testing.assert_close(model(X), expected(2 * f))
        s.reset()
        assert torch.equal(model(X), rest(torch.tanh(model[0](X))))
    assert len(s["1"].calls) == 4


def test_an_orthonormal_dictionary_is_the_identity_without_its_error():
    model = network()
    with interp.splice(model, {"1": Rotation()}, error=False):
        torch.testing.assert_close(model(X), network()(X))
    with interp.splice(model, {"1": SAE()}, error=False):
        sae, hidden = SAE(), torch.tanh(model[0](X))
        torch.testing.assert_close(model(X), model[3](model[2](sae.decode(sae.encode(hidden)))))


def test_gradients_reach_features_and_the_error_is_a_constant():
    model, sae = network(), SAE().requires_grad_(False)
    with interp.splice(model, {"1": sae}, grads=True) as s:
        out = model(X)
        assert torch.equal(out, network()(X))
        out[:, 0].sum().backward()
        found = s["1"].grad
    expected = (model[3].weight[0] @ model[2].weight) @ sae.W_dec.T  # linear behind the site
    torch.testing.assert_close(found, expected.detach().expand(4, 24))
    active = (s["1"].features > 0).double()  # back through the features alone
    back = (found * active) @ sae.W_enc.T
    hidden = torch.tanh(network()[0](X))
    torch.testing.assert_close(model[0].bias.grad, (back * (1 - hidden**2)).sum(0).detach())
    frozen = network().requires_grad_(False)
    with interp.splice(frozen, {"1": sae}, grads=True) as s:
        frozen(X)[:, 0].sum().backward()
    torch.testing.assert_close(s["1"].grad, found)


def test_a_transcoder_reads_the_input_and_writes_the_output():
    model, t = network(), SAE()
    plain = model(X)
    with interp.splice(model, transcoders={"2": t}) as s:
        assert torch.equal(model(X), plain)
        hidden = torch.tanh(model[0](X))
        torch.testing.assert_close(s["2"].features, t.encode(hidden))
        s.ablate("2", list(range(24)))
        change = t.decode(0 * s["2"].features) - t.decode(s["2"].features)
        same = network()  # `model[2]` itself would be spliced here
        torch.testing.assert_close(model(X), same[3](same[2](hidden) + change))
    t.W_skip = nn.Parameter(torch.zeros(8, 8))
    with pytest.raises(OptionError, match="`error` must be True for the dictionary at '2'"):
        interp.splice(model, transcoders={"2": t}, error=False)


def test_loss_recovered(tmp_path):
    model = network().train()
    loss = lambda out: out.square().mean(1)  # noqa: E731
    found = interp.splice(model, {"1": SAE()}).loss_recovered(X, loss)
    sae, hidden = SAE(), torch.tanh(model[0](X))
    rest = nn.Sequential(*list(model)[2:])
    losses = [float(loss(rest(h)).mean().detach())
              for h in (hidden, sae.decode(sae.encode(hidden)), 0 * hidden)]  # fmt: skip
    assert [found.loss, found.spliced, found.zeroed] == pytest.approx(losses)
    assert found.recovered == pytest.approx((losses[2] - losses[1]) / (losses[2] - losses[0]))
    assert interp.splice(model, {"1": Rotation()}).loss_recovered(X, loss).recovered == (
        pytest.approx(1)
    )
    assert model.training
    assert not nethook.audit(model)
    found.save(tmp_path / "r.json")
    assert repr(Recovered.load(tmp_path / "r.json")) == repr(found)
    with pytest.raises(ResultError, match="zeros have the same loss"):
        Recovered(sites=("1",), loss=1.0, spliced=2.0, zeroed=1.0).recovered


def test_refusals():
    model = network()
    with pytest.raises(OptionError, match="`dictionaries` must map an address"):
        interp.splice(model)
    with pytest.raises(OptionError, match="got two for '1'"):
        interp.splice(model, {"1": SAE()}, transcoders={"1": SAE()})
    with pytest.raises(NoSuchSiteError), interp.splice(model, {"7": SAE()}):
        pass
    assert not nethook.audit(model)
    with pytest.raises(UnfiredError), interp.splice(model, {"1": SAE()}):
        pass
    with interp.splice(model, {"1": SAE()}) as s:
        model(X)
        with pytest.raises(ScopeError, match="open already"):
            s.__enter__()
        with pytest.raises(NoSuchSiteError, match="no dictionary is at '2'"):
            s["2"]
