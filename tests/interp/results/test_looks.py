"""Figures of attributions, by what their places are."""

import pytest
import torch

from nethook.drawing.stills.axes import array_of
from nethook.errors import OptionError
from nethook.interp import Attribution
from nethook.interp.results.looks import token_texts


def result(values, kind, **more):
    score = torch.ones(len(values))
    return Attribution(method="m", values=values, score=score, start=score, kind=kind, **more)


def traces(figure):
    return figure.to_plotly_json()["data"]


def test_pictures():
    one = result(torch.randn(8, 3, 4, 4), "pixels", inputs=torch.rand(8, 3, 4, 4))
    assert len(traces(one.figure())) == 6 * 3  # the first six: picture, map, map alone
    assert len(traces(one.figure(row=-1))) == 3
    assert len(traces(result(torch.randn(1, 2, 4, 4), "pixels").figure())) == 3  # over nothing


def test_tokens_with_a_tokenizer():
    ids = torch.tensor([[5, 6, 7]])
    one = result(torch.tensor([[[1.0], [-2.0], [0.5]]]), "tokens", inputs=ids)

    class Tokenizer:
        def convert_ids_to_tokens(self, ids):
            return [f"t{i}" for i in ids]

    for names, first in ((None, "5"), (Tokenizer(), "t5"), (["a", "b", "c"], "a"), (hex, "0x5")):
        layout = one.figure(names).to_plotly_json()["layout"]
        assert layout["annotations"][0]["text"] == first
    with pytest.raises(
        OptionError, match="`names` must have a text for each of the 3 tokens; got 1"
    ):
        one.figure(["a"])

    class Decoder:
        def decode(self, ids):
            return f"d{ids[0]}"

    assert token_texts(Decoder(), ids[0]) == ["d5", "d6", "d7"]
    assert token_texts(None, None) == []


def test_signals_and_features():
    signal = result(torch.randn(2, 1, 50), "samples", inputs=torch.randn(2, 1, 50))
    assert [trace["type"] for trace in traces(signal.figure(row=1))] == ["scatter"] * 3
    assert len(traces(result(torch.randn(2, 50), "samples").figure())) == 2
    (bars,) = traces(result(torch.randn(9, 4), "features").figure(names=list("abcd")))
    assert bars["type"] == "bar"
    assert set(bars["y"]) == set("abcd")
    assert len(array_of(bars["error_x"]["array"])) == 4
    (bars,) = traces(result(torch.randn(9, 100), "features").figure(row=2))
    assert len(bars["y"]) == 40
    assert "error_x" not in bars


def test_what_has_no_figure():
    with pytest.raises(OptionError, match="a figure needs pixels, tokens, samples or features"):
        result(torch.randn(1, 2, 2, 2, 2), "elements").figure()
    with pytest.raises(OptionError, match="`row` must be one of 2 rows; got 2"):
        result(torch.randn(2, 4), "features").figure(row=2)
