"""A map with a frame."""

import numpy as np

from nethook.drawing.rendering.render import figure
from nethook.drawing.stills.still import still
from nethook.drawing.studies.fields import field_map


def test_the_frame_is_around_the_lines_that_are_read():
    spec = field_map("t", np.eye(6), (1, 4, 2, 5))
    assert spec["data"][1]["x"] == [1.5, 4.5, 4.5, 1.5, 1.5]
    assert spec["data"][1]["y"] == [0.5, 0.5, 3.5, 3.5, 0.5]
    assert "<image" in still(figure(spec).to_plotly_json())
    assert "scaleanchor" not in field_map("t", np.ones((1, 6)), (0, 1, 2, 5))["layout"]["yaxis"]
