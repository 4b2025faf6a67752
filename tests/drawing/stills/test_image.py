"""A still picture as an image: what it shows, and what it is called."""

from __future__ import annotations

import base64
import re

import pytest

from nethook.drawing.stills.image import image


@pytest.mark.parametrize(
    ("picture", "said"),
    [
        ('<svg aria-label="loss &lt;of&gt; größe"><text>a</text></svg>', "loss &lt;of&gt; größe"),
        ("<svg></svg>", "figure"),
    ],
)
def test_the_picture_is_in_its_address_and_its_name_beside_it(picture: str, said: str) -> None:
    found = re.fullmatch(
        r'<img alt="([^"]*)" style="max-width:100%" src="data:image/svg\+xml;base64,([^"]*)">',
        image(picture),
    )
    assert found
    assert found[1] == said
    assert base64.b64decode(found[2]).decode() == picture
