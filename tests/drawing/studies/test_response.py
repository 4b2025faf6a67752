"""A number over another that was set."""

import numpy as np

from nethook.drawing.rendering.render import figure
from nethook.drawing.stills.still import still
from nethook.drawing.studies.response import response


def test_points_are_in_order_and_the_band_is_there_where_it_is_known():
    x, y = np.array([2.0, 0.0, 1.0]), np.array([4.0, 0.0, 1.0])
    spec = response("t", x, y, y - 1, y + 1, axes=("a", "b"))
    assert [trace.get("fill") for trace in spec["data"]] == [None, "tonexty", None]
    assert spec["layout"]["showlegend"] is False  # plotly would call the line "trace 2"
    assert spec["data"][-1]["x"].tolist() == [0, 1, 2]
    assert spec["data"][1]["y"].tolist() == [1, 2, 5]
    assert "<polygon" in still(figure(spec).to_plotly_json())
    assert len(response("t", x, y, y * np.nan, y * np.nan, axes=("a", "b"))["data"]) == 1
