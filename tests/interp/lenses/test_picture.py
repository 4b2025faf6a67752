"""What turns ids into text."""

from __future__ import annotations

import pytest

from nethook.errors import OptionError
from nethook.interp.lenses.picture import reader


class Tokenizer:
    def decode(self, ids: list[int]) -> str:
        return f"<{ids[0]}>"


def test_tokenizers_of_every_kind() -> None:
    assert reader(None)(3) == "3"
    assert reader(Tokenizer())(3) == "<3>"
    assert reader(lambda index: index * 2)(3) == "6"
    assert reader(["a", "b"])(1) == "b"
    with pytest.raises(OptionError, match="got int"):
        reader(5)
