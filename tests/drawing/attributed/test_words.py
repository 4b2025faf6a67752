"""Coloured tokens: lines, colours, hover."""

import numpy as np

from nethook.drawing.attributed.words import words_spec
from nethook.drawing.rendering.render import figure
from nethook.drawing.stills.still import still

TOKENS = ["the", "<b>", "", "w" * 50, *["word"] * 40]
VALUES = np.linspace(-1.0, 2.0, len(TOKENS))


def test_every_token_has_its_cells_and_its_text():
    spec = words_spec("t", TOKENS, VALUES)
    (trace,) = spec["data"]
    notes = spec["layout"]["annotations"]
    assert [note["text"] for note in notes[:3]] == ["the", "&lt;b&gt;", "␣"]
    assert len(notes) == len(TOKENS)
    assert len(notes[3]["text"]) <= 24
    z = np.asarray(trace["z"])
    for number, note in enumerate(notes):
        cell = z[note["y"], round(note["x"])]
        assert cell == VALUES[number]
        assert trace["customdata"][note["y"]][round(note["x"])].startswith(f"{number}: ")
    assert z.shape[0] > 3  # several lines
    assert np.isnan(z).any()  # gaps between them
    axis = spec["layout"]["coloraxis"]
    assert (axis["cmin"], axis["cmax"]) == (-2.0, 2.0)


def test_text_can_be_read_on_its_colour():
    notes = words_spec("t", ["a", "b"], np.array([2.0, 0.1]))["layout"]["annotations"]
    assert [note["font"]["color"] for note in notes] == ["#ffffff", "#1f2933"]


def test_plotly_takes_it_and_a_still_shows_it():
    picture = still(figure(words_spec("t", TOKENS, VALUES)).to_plotly_json())
    assert picture.count(">word<") == 40
    assert 'fill="#ffffff"' in picture
    nothing = words_spec("t", [], np.zeros(0))
    assert nothing["layout"]["coloraxis"]["cmax"] == 1.0
