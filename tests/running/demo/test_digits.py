"""The script of the demo: drawn digits, the same every time."""

from __future__ import annotations

import pytest
import torch

from nethook.running.demo.digits import GLYPHS, Net, draw, main


def test_there_are_ten_glyphs_of_five_by_seven() -> None:
    rows = [row.split() for row in GLYPHS.split("\n") if row]
    assert [len(row) for row in rows] == [10] * 7
    assert {len(word) for row in rows for word in row} == {5}
    glyphs = {tuple(row[digit] for row in rows) for digit in range(10)}
    assert len(glyphs) == 10


def test_digits_are_normalised_and_the_same_for_the_same_seed() -> None:
    images, labels = draw(64, torch.Generator().manual_seed(3))
    again, same_labels = draw(64, torch.Generator().manual_seed(3))
    assert images.shape == (64, 1, 28, 28)
    assert labels.min() >= 0
    assert labels.max() <= 9
    assert torch.equal(images, again)
    assert torch.equal(labels, same_labels)
    torch.testing.assert_close(images.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(images.std(), torch.tensor(1.0))


def test_the_network_maps_images_to_ten_classes() -> None:
    assert Net()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_it_can_be_run_as_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--epochs", "0"])
    assert capsys.readouterr().out.endswith("of 128 new digits are read correctly\n")
