"""Maps over pictures: table, sizes, files."""

import json

import pytest
import torch

from nethook.errors import ResultError
from nethook.interp import Cam
from nethook.types import Cam as PublicCam

MAPS = torch.tensor([[[1.0, -2.0], [0.0, 3.0]]])


def cam(**given):
    options = {
        "maps": MAPS, "score": torch.ones(1), "method": "++", "at": "layer4", "layout": "tokens",
        "skipped": 1, "images": torch.rand(1, 3, 8, 8),
    }  # fmt: skip
    return Cam(**(options | given))


def test_numbers_and_the_table():
    assert PublicCam is Cam
    one = cam()
    assert one.positive.tolist() == [[[1.0, 0.0], [0.0, 3.0]]]
    assert one.resized(4, 4).shape == (1, 4, 4)
    assert repr(one).splitlines() == [
        "Grad-CAM++ at layer4: 2 × 2 (tokens, 1 other tokens)",
        "row  score  largest  at row, column  smallest",
        "───  ─────  ───────  ──────────────  ────────",
        "0        1        3  1, 1                  -2",
    ]
    assert "Layer-CAM" in repr(cam(method="layer"))
    assert "<table>" in one._repr_html_()


def test_files(tmp_path):
    one = cam()
    one.save(tmp_path / "c.json")
    again = Cam.load(tmp_path / "c.json")
    assert repr(again) == repr(one)
    assert torch.equal(again.images, one.images)
    without = cam(images=None)
    without.save(tmp_path / "d.json")
    assert Cam.load(tmp_path / "d.json").images is None


@pytest.mark.parametrize(
    ("change", "match"),
    [({"skipped": "1"}, "'skipped' must be a int"), ({"more": 1}, "must have exactly the fields")],
)
def test_files_of_others_are_refused(tmp_path, change, match):
    path = tmp_path / "c.json"
    cam().save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ResultError, match=match):
        Cam.load(path)


def test_the_shape_is_checked():
    with pytest.raises(ResultError, match=r"`maps` must have the shape \(rows, height, width\)"):
        cam(maps=torch.ones(2, 2))
