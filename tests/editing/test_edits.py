"""The public module of edits: what it lists, and that it is the catalogue."""

import inspect

import torch

import nethook
from nethook.editing import catalogue, edits, recipes


def test_it_is_the_public_module():
    assert nethook.edits is edits


def test_every_edit_of_the_catalogue_is_listed():
    of_catalogue = {
        name
        for name, value in vars(catalogue).items()
        if inspect.isclass(value) and issubclass(value, catalogue.Edit)
    }
    assert set(edits.__all__) == of_catalogue | {"load", "save"}
    assert all(getattr(edits, name) is getattr(catalogue, name) for name in of_catalogue)
    assert edits.save is recipes.save
    assert edits.load is recipes.load


def test_the_lines_of_its_docstring_work(tmp_path):
    direction = torch.tensor([1.0, 0.0])
    value = torch.tensor([[-2.0, 4.0]])
    assert edits.scale(0.5)(value).tolist() == [[-1.0, 2.0]]
    assert edits.clamp(min=0, calls=slice(1, None))(value).tolist() == [[0.0, 4.0]]
    edits.save(tmp_path / "calm.json", outputs={"h.3": edits.steer(direction, -2.0)})
    loaded = edits.load(tmp_path / "calm.json")
    assert loaded == {"outputs": {"h.3": {"": [edits.steer(direction, -2.0)]}}}
