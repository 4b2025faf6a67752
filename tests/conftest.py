"""Options and fixtures of all tests.

    pytest --overwrite     write the golden texts again (tests/golden.py)

Each test leaves the process as it found it: what it left on is switched off, and it fails for it.
"""

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.golden import Golden
from tests.leftovers import Before

# Cores are shared, so how long one example takes says nothing.
settings.register_profile("nethook", deadline=None)
settings.load_profile("nethook")


# A shell starts jobs in the background with Ctrl-C ignored, and Python leaves it so, here and in
# every process that a test starts. Tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--overwrite", action="store_true", help="write the golden texts again")


def pytest_collection_finish() -> None:
    """What was imported stays: who collects garbage in a test need not look through it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares a text with a file in tests/golden: `golden("tape", repr(tape))`."""
    return Golden(overwrite=request.config.getoption("--overwrite"))


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Puts back global hooks and modes after each test, and fails the test that left them."""
    before = Before()
    yield
    left = before.put_back()
    if left:
        pytest.fail("This test left switched on:\n  " + "\n  ".join(left), pytrace=False)
