"""Features in chunks, and labels of every kind."""

import pytest
import torch

from nethook import load_features
from nethook.errors import OptionError
from nethook.interp.directions import samples
from nethook.interp.directions.samples import Samples, classes_of, sites_of


def test_chunks_cover_every_row_once(monkeypatch):
    monkeypatch.setattr(samples, "_NUMBERS", 12)
    x = torch.arange(21.0).reshape(7, 3)
    read = Samples(x)
    assert read.rows == 4
    assert torch.equal(torch.cat([chunk for _, chunk in read.chunks()]), x.double())
    x[5, 1] = torch.inf
    with pytest.raises(OptionError, match="`X` must be finite; got NaN or an infinity in row 5"):
        list(read.chunks())
    with pytest.raises(OptionError, match=r"a tensor \(samples, features\); got \(2, 3, 4\)"):
        Samples(torch.ones(2, 3, 4))


def test_labels():
    numbers, names = classes_of(["cat", "dog", "cat"], 3)
    assert (numbers.tolist(), names) == ([0, 1, 0], ("cat", "dog"))
    assert classes_of(torch.tensor([7, 5]), 2)[1] == ("5", "7")
    assert classes_of(torch.tensor([True, False]), 2)[0].tolist() == [1, 0]
    assert classes_of([0.5, 1.5], 2)[1] == ()
    assert classes_of(torch.ones(2, 3), 2)[0].shape == (2, 3)
    for wrong, match in (
        (["a", "a"], "at least two classes"), (["a"], "one label per row, 2; got 1"),
        (torch.tensor([1]), "one label per row"), (torch.tensor([1.0, torch.nan]), "finite"),
    ):  # fmt: skip
        with pytest.raises(OptionError, match=match):
            classes_of(wrong, 2)


def test_sites_of_stored_features(tmp_path):
    import nethook

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 4))
    data = [(torch.randn(4, 2), torch.arange(4))]
    nethook.extract(model, data, at=["0", "1"], to=tmp_path / "two", progress=False)
    nethook.extract(model, data, at=["1"], to=tmp_path / "one", progress=False)
    assert sorted(sites_of(load_features(tmp_path / "two"))) == ["0", "1"]
    assert sites_of(load_features(tmp_path / "one")).shape == (4, 4)
    with pytest.raises(OptionError, match="at least one site"):
        sites_of({})
