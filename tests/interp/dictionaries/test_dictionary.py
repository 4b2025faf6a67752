"""Dictionaries of every make as one."""

import pytest
import torch

from nethook.errors import OptionError
from nethook.interp.dictionaries.dictionary import Dictionary
from tests.interp.dictionaries.dictionaries import SAE, Pair, Sparse


def test_every_make_gives_dense_features_that_decode_as_its_own():
    x = torch.randn(3, 5, 8, dtype=torch.double)
    plain, sparse, pair = (Dictionary(make(), "h") for make in (SAE, Sparse, Pair))
    f = plain.encode(x)
    assert torch.equal(pair.encode(x), f)
    top = sparse.encode(x)
    assert top.shape == f.shape
    assert int((top != 0).sum(-1).max()) == 4
    own = Sparse()
    torch.testing.assert_close(sparse.decode(top), own.decode(*own.encode(x)))
    torch.testing.assert_close(plain.decode(f), SAE().decode(f))
    assert plain.encode(x.float()).dtype == torch.double  # the dictionary's own type


def test_refusals():
    with pytest.raises(
        OptionError, match="must have methods encode and decode; got Linear without"
    ):
        Dictionary(torch.nn.Linear(2, 2), "h")

    class Wrong:
        def encode(self, x):
            return {"f": x}

        def decode(self, f):
            return [f]

    with pytest.raises(OptionError, match="must return features as a tensor; got dict"):
        Dictionary(Wrong(), "h").encode(torch.ones(2))
    with pytest.raises(OptionError, match="must return a tensor; got list"):
        Dictionary(Wrong(), "h").decode(torch.ones(2))
