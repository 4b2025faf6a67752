"""How a test asks for exhibits."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest

from tests.zoo import EXHIBITS, Exhibit

__all__ = ["every_exhibit", "exhibits_that"]


def exhibits_that(wanted: Callable[[Exhibit], object]) -> pytest.MarkDecorator:
    """Run a test once for each exhibit that answers; those that lack a package are skipped."""
    chosen = [
        pytest.param(
            item,
            id=item.name,
            marks=[pytest.mark.skipif(find_spec(name) is None, reason=name) for name in item.needs],
        )
        for item in EXHIBITS
        if wanted(item)
    ]
    return pytest.mark.parametrize("exhibit", chosen)


every_exhibit = exhibits_that(lambda _: True)
