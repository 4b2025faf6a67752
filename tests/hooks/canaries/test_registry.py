"""Which canary belongs to which name."""

from __future__ import annotations

import pytest

from nethook.hooks.canaries.registry import CANARIES, canary
from nethook.hooks.canaries.report import works

pytestmark = pytest.mark.short
PATHS = ("torch._first_of_a_test", "torch._second_of_a_test")


@pytest.fixture(autouse=True)
def _as_before():
    before = dict(CANARIES)
    yield
    CANARIES.clear()
    CANARIES.update(before)


def test_one_check_may_serve_several_names() -> None:
    @canary(*PATHS)
    def check() -> bool:
        return True

    assert check() is True  # the decorator hands the function on as it is
    assert CANARIES[PATHS[0]] is CANARIES[PATHS[1]] is check
    assert all(works(path) for path in PATHS)


def test_the_last_check_of_a_name_counts() -> None:
    canary(PATHS[0])(lambda: True)
    canary(PATHS[0])(lambda: False)
    assert not works(PATHS[0])


def test_a_check_that_raises_has_failed() -> None:
    def check() -> bool:
        raise AttributeError("torch has no such name")

    canary(PATHS[0])(check)
    assert not works(PATHS[0])
