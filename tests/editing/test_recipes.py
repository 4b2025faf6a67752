"""Recipes: edits as data, saved and loaded without running code."""

import json
import os
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import nethook
from nethook import edits
from nethook.errors import NethookError, RecipeError

DIRECTION = torch.tensor([1.0, -2.0, 0.5])
ALL = {
    "outputs": {
        "fc*": [edits.scale(0.5), edits.add(DIRECTION), edits.clamp(min=0, calls=slice(1, None))],
        "": edits.zero(calls=2),
        "lstm": {"[0]": edits.steer(DIRECTION, 2.0), "[1][0]": edits.zero_units([0, 2])},
        "a": edits.patch([DIRECTION, DIRECTION * 2], index=(slice(None), 0)),
        "b": edits.noise(0.1, seed=3),
    },
    "inputs": {"x": edits.project_out(DIRECTION), "y": edits.keep_units([1], dim=-1)},
    "grads": {"fc1": edits.clip_norm(1.0)},
    "input_grads": {"fc1": edits.replace(0.0)},
    "param_grads": {"**": edits.clip_norm(1.0, 2.0, joint=True)},
    "params": {
        "fc1.weight": edits.add_low_rank(DIRECTION, DIRECTION),
        "c": edits.mask(DIRECTION > 0),
    },
}


def flat(given):
    rows = []
    for quantity, sites in given.items():
        for pattern, value in sites.items():
            parts = value if isinstance(value, dict) else {"": value}
            for path, several in parts.items():
                for one in several if isinstance(several, list) else [several]:
                    rows.append((quantity, pattern, path, one))
    return rows


def test_what_is_loaded_is_what_was_saved(tmp_path):
    edits.save(tmp_path / "all.json", **ALL)
    loaded = flat(edits.load(tmp_path / "all.json"))
    saved = flat(ALL)
    assert [row[:3] for row in loaded] == [row[:3] for row in saved]
    for (*_, one), (*_, other) in zip(loaded, saved, strict=True):
        assert type(one) is type(other)
        assert repr(one).replace("[", "(").replace("]", ")") == repr(other).replace(
            "[", "("
        ).replace("]", ")")


def test_a_recipe_does_what_the_edits_did(tmp_path):
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)), torch.randn(2, 3)
    scope = nethook.edit(
        model,
        outputs={"0": edits.steer(DIRECTION)},
        params={"1.weight": edits.add_low_rank(DIRECTION, DIRECTION)},
    )
    scope.save(tmp_path / "r.json")
    with scope:
        changed = model(x)
    with nethook.edit(model, **edits.load(tmp_path / "r.json")):
        assert torch.equal(model(x), changed)
    assert not torch.equal(model(x), changed)


@pytest.mark.parametrize("index", [(0, 2), (slice(None), 1), (1,), None])
def test_a_patch_takes_over_the_same_part_after_loading(tmp_path, index):
    saved = edits.patch(torch.zeros(3, 3), index=index)
    edits.save(tmp_path / "r.json", outputs={"fc": saved})
    ((*_, loaded),) = flat(edits.load(tmp_path / "r.json"))
    value = torch.ones(3, 3)
    by_hand = value.clone()
    by_hand[... if index is None else index] = 0
    assert torch.equal(loaded(value), by_hand)
    assert loaded == saved


def test_the_files_are_json_and_safetensors(tmp_path):
    edits.save(tmp_path / "r.json", outputs={"fc": edits.steer(DIRECTION)})
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["entries"][0]["arguments"]["direction"] == {"tensor": "0"}
    assert (tmp_path / "r.safetensors").exists()
    edits.save(tmp_path / "plain.json", outputs={"fc": edits.scale(2)})
    assert not (tmp_path / "plain.safetensors").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"outputs": {"fc": torch.relu}}, "is a function, and a recipe is data, never code"),
        ({"outputs": {nn.ReLU: edits.zero()}}, "not a string"),
        ({"nonsense": {"fc": edits.zero()}}, "one of outputs, inputs.*got 'nonsense'"),
    ],
)
def test_what_is_not_data_is_refused_with_the_reason(tmp_path, given, message):
    with pytest.raises(RecipeError, match=message):
        edits.save(tmp_path / "r.json", **given)
    assert not (tmp_path / "r.json").exists()


def entry(**changes):
    plain = {
        "quantity": "outputs",
        "pattern": "fc",
        "path": "",
        "edit": "scale",
        "arguments": {"factor": 0.5},
        "calls": None,
    }
    return plain | changes


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "lacks the field 'nethook_recipe'"),
        ({"nethook_recipe": 2}, "of version 2; this nethook reads version 1"),
        ({"nethook_recipe": 1}, "lacks its list of entries"),
        ({"nethook_recipe": 1, "entries": [3]}, "entry 0 must have exactly the fields"),
        (
            {"nethook_recipe": 1, "entries": [entry(edit="eval")]},
            "'eval' is not one of nethook.edits",
        ),
        ({"nethook_recipe": 1, "entries": [entry(edit="save")]}, "'save' is not one of"),
        ({"nethook_recipe": 1, "entries": [entry(edit="Edit")]}, "'Edit' is not one of"),
        ({"nethook_recipe": 1, "entries": [entry(edit="__class__")]}, "is not one of"),
        (
            {"nethook_recipe": 1, "entries": [entry(quantity="calls")]},
            "A quantity must be .*got 'calls'",
        ),
        ({"nethook_recipe": 1, "entries": [entry(pattern=3)]}, "pattern must be a string"),
        ({"nethook_recipe": 1, "entries": [entry(path="oops")]}, "not a path inside a value"),
        (
            {"nethook_recipe": 1, "entries": [entry(arguments={})]},
            r"has the arguments \['factor'\]",
        ),
        (
            {"nethook_recipe": 1, "entries": [entry(arguments={"factor": "__import__('os')"})]},
            r"`factor` of scale must be of type float \| int \| Tensor; got",
        ),
        (
            {"nethook_recipe": 1, "entries": [entry(arguments={"factor": {"tensor": "9"}})]},
            "the tensor '9' is missing",
        ),
        (
            {"nethook_recipe": 1, "entries": [entry(calls={"slice": [1]})]},
            "must be a number, a string",
        ),
        (
            {"nethook_recipe": 1, "entries": [entry(calls="all")]},
            "`calls` must be the number of a call",
        ),
    ],
)
def test_a_broken_recipe_says_what_is_wrong(tmp_path, data, message):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(data))
    with pytest.raises(RecipeError, match=message):
        edits.load(path)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"{", b"[" * 100_000, pickle.dumps({"nethook_recipe": 1}), b"nan"],
    ids=["empty", "not text", "cut", "deep", "pickle", "nan"],
)
def test_what_is_no_json_is_refused(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(RecipeError, match=r"r.json"):
        edits.load(path)


def test_a_missing_a_large_and_a_torn_file_are_refused(tmp_path):
    with pytest.raises(RecipeError, match="No such file"):
        edits.load(tmp_path / "none.json")
    (tmp_path / "large.json").write_bytes(b" " * 16_000_001)
    with pytest.raises(RecipeError, match="larger than 16,000,000 bytes"):
        edits.load(tmp_path / "large.json")
    edits.save(tmp_path / "r.json", outputs={"fc": edits.steer(DIRECTION)})
    tensors = tmp_path / "r.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:20])
    with pytest.raises(RecipeError):
        edits.load(tmp_path / "r.json")


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=5,
)
names = st.sampled_from(
    ["scale", "steer", "clamp", "patch", "noise", "zero_units", "mask", "nothing"]
)


@settings(max_examples=200)
@given(
    changes=st.dictionaries(
        st.sampled_from(["quantity", "pattern", "path", "edit", "arguments", "calls", "more"]), junk
    ),
    name=names,
    values=st.dictionaries(
        st.sampled_from(["factor", "direction", "strength", "min", "max", "units", "dim"]), junk
    ),
)
def test_whatever_a_file_holds_it_loads_as_edits_or_is_refused(
    tmp_path_factory, changes, name, values
):
    path = tmp_path_factory.mktemp("fuzz") / "r.json"
    row = entry(edit=name, arguments=values) | changes
    path.write_text(json.dumps({"nethook_recipe": 1, "entries": [row]}))
    try:
        loaded = edits.load(path)
    except RecipeError:
        return
    except NethookError as error:  # pragma: no cover
        pytest.fail(f"another error than RecipeError: {error!r}")
    assert all(isinstance(one, edits.Edit) for *_, one in flat(loaded))


def recipe_of(path, edit, arguments, calls=None):
    row = {"quantity": "outputs", "pattern": "0", "path": "", "edit": edit, "calls": calls}
    path.write_text(json.dumps({"nethook_recipe": 1, "entries": [row | {"arguments": arguments}]}))


@pytest.mark.parametrize(
    ("edit", "arguments", "message"),
    [
        ("scale", {"factor": 10**400}, "must fit into 64 bits; got one of more than 100 digits"),
        ("add", {"other": 2**63}, "must fit into 64 bits; got one of 19 digits"),
        ("scale", {"factor": float("nan")}, "must not be NaN"),
        ("zero_units", {"units": [0, -(10**30)], "dim": 1}, "must fit into 64 bits"),
        ("patch", {"source": [], "index": [{"slice": [None, None, -1]}]}, "cannot go backwards"),
        ("patch", {"source": [], "index": [{"slice": [0, 5, 0]}]}, "or a slice; got"),
        ("patch", {"source": [], "index": [{"slice": [10**30, None, None]}]}, "64 bits"),
    ],
)
def test_numbers_that_no_tensor_holds_are_refused(tmp_path, edit, arguments, message):
    recipe_of(tmp_path / "r.json", edit, arguments)
    with pytest.raises(RecipeError, match=message):
        edits.load(tmp_path / "r.json")


def test_an_infinity_is_a_number(tmp_path):
    given = {"0": [edits.replace(float("-inf")), edits.clip_norm(1.0, float("inf"))]}
    edits.save(tmp_path / "r.json", outputs=given)
    assert edits.load(tmp_path / "r.json")["outputs"]["0"][""] == given["0"]
    with pytest.raises(RecipeError, match="must not be NaN"):
        edits.save(tmp_path / "r.json", outputs={"0": edits.scale(float("nan"))})


def test_a_version_is_a_number(tmp_path):
    (tmp_path / "r.json").write_text('{"nethook_recipe": true, "entries": []}')
    with pytest.raises(RecipeError, match="version True"):
        edits.load(tmp_path / "r.json")


@pytest.mark.parametrize("name", ["r.json", "r.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_something_else_than_a_file_is_refused_at_once(tmp_path, name, kind):
    """A pipe would have waited for ever, to be read and to be written."""
    edits.save(tmp_path / "r.json", outputs={"fc": edits.steer(DIRECTION)})
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name) if kind == "pipe" else (tmp_path / name).mkdir()
    with pytest.raises(RecipeError, match=f"is a {kind}"):
        edits.load(tmp_path / "r.json")
    with pytest.raises(RecipeError, match=f"cannot be written: it is a {kind}"):
        edits.save(tmp_path / "r.json", outputs={"fc": edits.steer(DIRECTION)})


@pytest.mark.parametrize("name", ["a\0b.json", "x" * 300 + ".json", "no/such/r.json"])
def test_a_name_that_cannot_be(tmp_path, name):
    with pytest.raises(RecipeError) as caught:
        edits.load(tmp_path / name)
    with pytest.raises(RecipeError, match="cannot be written"):
        edits.save(tmp_path / name, outputs={"fc": edits.zero()})
    assert "\0" not in str(caught.value)
