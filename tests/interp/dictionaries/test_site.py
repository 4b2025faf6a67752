"""One spliced site: what it refuses, and its picture."""

import pytest
import torch

from nethook import edits
from nethook.errors import OptionError, ReadError
from nethook.interp.dictionaries.site import SplicedSite
from tests.interp.dictionaries.dictionaries import SAE


def made(**given):
    return SplicedSite("h", SAE(), error=True, grads=False, reads_input=False, **given)


def test_what_has_not_run_and_what_does_not_fit():
    site = made()
    assert repr(site) == "<dictionary at 'h': not run yet>"
    with pytest.raises(ReadError, match="'h' has not run since the splice"):
        site.features
    value = torch.ones(2, 8, dtype=torch.double)
    assert site.spliced(value, value) is value
    with pytest.raises(ReadError, match="splice with grads=True"):
        site.grad
    with pytest.raises(OptionError, match="must decode to the shape of the value"):
        site.spliced(torch.ones(2, 9, dtype=torch.double), value)
    site.set(24, 1.0)
    with pytest.raises(OptionError, match="`unit` must lie between 0 and 23 at 'h'; got 24"):
        site.spliced(value, value)
    site.reset()
    site.change(lambda f: f[:, :3])
    with pytest.raises(OptionError, match="must keep their shape"):
        site.spliced(value, value)
    with pytest.raises(OptionError, match="must have no limits of its own"):
        site.change(edits.zero(positions=1))
    with pytest.raises(OptionError, match="`function` must be callable"):
        site.change(3)


def test_the_picture_has_the_strongest_features():
    site = made()
    value = torch.randn(2, 5, 8, dtype=torch.double)
    site.spliced(value, value)
    assert site.l0 == pytest.approx(float((site.features != 0).sum(-1).double().mean()))
    figure = site.figure(list("abcde"), row=1, top=6)
    (trace,) = figure.data
    strongest = int(site.features[1].abs().amax(0).argmax())
    assert trace.y[-1] == f"feature {strongest}"
    torch.testing.assert_close(torch.tensor(trace.z[-1]), site.features[1, :, strongest])
    with pytest.raises(OptionError, match="a text for each of the 5 tokens; got 2"):
        site.figure(["a", "b"])
