"""The models that all these tests share stay as they were built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interp import families


@pytest.fixture(autouse=True)
def models_stay_as_built() -> Iterator[None]:
    """Fails the test that leaves a shared model in another type or mode; the next gets a new."""
    yield
    changed = families.changed()
    if changed:
        pytest.fail(
            f"This test changed the shared {', '.join(changed)}; take a copy.", pytrace=False
        )
