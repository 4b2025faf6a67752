"""The result: numbers by hand, tables, files."""

import json

import pytest
import torch

from nethook.errors import OptionError, ResultError
from nethook.interp import Attribution
from nethook.types import Attribution as PublicAttribution


def result(**given):
    options = {
        "method": "integrated gradients", "values": torch.tensor([[1.0, -3.0], [2.0, -5.0]]),
        "score": torch.tensor([1.0, 2.0]), "start": torch.tensor([3.0, 5.0]),
        "delta": torch.tensor([0.0, 1e-4]), "steps": torch.tensor([8, 16]), "baseline": "0",
    }  # fmt: skip
    return Attribution(**(options | given))


def test_means_and_intervals_over_rows():
    assert PublicAttribution is Attribution
    first, second = result().top()
    assert (first.place, first.value) == ("1", -4.0)
    assert first.low == pytest.approx(-4 - 12.7062, abs=1e-3)  # t of one degree of freedom
    assert (second.place, second.value) == ("0", 1.5)
    (one,) = result().top(1, row=0, names=["a", "b"])
    assert one.place == "b"
    assert one.value == -3.0
    assert one.low != one.low


def test_intervals_of_what_was_sampled():
    errors = torch.tensor([[0.5, 0.1], [0.5, 0.1]])
    one = result(errors=errors).top(2, row=0)
    assert one[0].low == pytest.approx(-3 - 0.196, abs=1e-4)
    assert one[1].high == pytest.approx(1 + 0.98, abs=1e-4)


def test_sums_per_place():
    values = torch.arange(24.0).reshape(1, 2, 3, 4)
    one = result(
        values=values,
        kind="pixels",
        score=torch.ones(1),
        start=torch.ones(1),
        delta=None,
        steps=None,
    )
    assert torch.equal(one.summed, values.sum(1))
    assert torch.equal(one.shown(), values.sum(1))
    gradient = result(
        values=-values, kind="pixels", score=torch.ones(1), start=None, delta=None, steps=None
    )
    assert torch.equal(gradient.shown(), -values[:, 1])  # the larger of the two channels


def test_tables(golden):
    many = result(
        values=torch.arange(40.0).reshape(1, 40), score=torch.ones(1), start=None, delta=None,
        steps=None, method="saliency", notes=("a note",), baseline="",
    )  # fmt: skip
    table = result().table(row=1, names=["a", "b"]).text()
    golden("attribution", f"{result()!r}\n\n{table}\n\n{many!r}")
    assert "<table>" in result()._repr_html_()


def test_files(tmp_path):
    one = result(inputs=torch.ones(2, 2), notes=("x",), at="layer", runs=3)
    one.save(tmp_path / "a.json")
    again = Attribution.load(tmp_path / "a.json")
    assert repr(again) == repr(one)
    assert torch.equal(again.steps, one.steps)
    assert again.notes == ("x",)
    assert again.errors is None
    assert again.runs == 3


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"runs": "3"}, "'runs' must be a int"),
        ({"notes": [1]}, "'notes' must be a list of texts"),
        ({"kind": "x"}, "'kind' must be one of"),
        ({"other": 1}, "must have exactly the fields"),
        ({"nethook_attribution": 2}, "must be a file that this nethook has saved"),
    ],
)
def test_files_of_others_are_refused(tmp_path, change, match):
    path = tmp_path / "a.json"
    result().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ResultError, match=match):
        Attribution.load(path)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ResultError, match="`values` must have a row for each of the 3 scores"):
        result(score=torch.ones(3))
    with pytest.raises(OptionError, match="`names` must have a text for each of the 2 features"):
        result().top(names=["a"])


def test_names_stay_with_the_result(tmp_path):
    ids = torch.tensor([[5, 6, 7], [7, 6, 5]])
    values = torch.tensor([[[1.0], [-2.0], [0.5]], [[3.0], [1.0], [0.0]]])
    found = Attribution(
        method="m", values=values, score=torch.ones(2), start=torch.zeros(2), kind="tokens",
        inputs=ids,
    )  # fmt: skip
    named = found.named(lambda index: f"w{index}")
    assert named.names == (("w5", "w6", "w7"), ("w7", "w6", "w5"))
    assert [part.place for part in named.top(2, row=0)] == ["w6", "w5"]
    assert [part.place for part in found.top(2, row=0)] == ["1", "0"]
    named.save(tmp_path / "a.json")
    again = Attribution.load(tmp_path / "a.json")
    assert again.names == named.names
    texts = [note["text"] for note in again.figure(row=1).to_plotly_json()["layout"]["annotations"]]
    assert texts[:3] == ["w7", "w6", "w5"]
    # Over several texts there is no name for a place, and files without names are as before.
    assert named.top(1)[0].place == "0"
    found.save(tmp_path / "b.json")
    assert "names" not in (tmp_path / "b.json").read_text()
    assert Attribution.load(tmp_path / "b.json").names == ()


def test_names_of_features_are_of_all_rows(tmp_path):
    found = Attribution(method="m", values=torch.randn(3, 2), score=torch.ones(3))
    named = found.named(["age", "height"])
    assert {part.place for part in named.top(2)} == {"age", "height"}
    assert {part.place for part in named.top(2, row=1)} == {"age", "height"}
    with pytest.raises(OptionError, match="`names` must have a text for each of the 2 features"):
        found.named(["age"])
    with pytest.raises(OptionError, match="once or for each row; got 2, 2"):
        found.named([["a", "b"], ["a", "b"]])
    named.save(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text().replace('"age"', "5")
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ResultError, match="'names' must be lists of texts"):
        Attribution.load(tmp_path / "a.json")
