"""Options and fixtures of all tests.

    pytest --quick         the quick tests alone (`make quick`; tests/quick.py says which)
    pytest --overwrite     write the golden texts again (tests/golden.py)

Each test leaves the process as it found it: what it left on is switched off, and it fails for it.
"""

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import quick
from tests.golden import Golden
from tests.leftovers import Before

# Cores are shared, so how long one example takes says nothing.
settings.register_profile("nethook", deadline=None)
settings.register_profile("quick", deadline=None, max_examples=quick.EXAMPLES)
settings.load_profile("nethook")


# A shell starts jobs in the background with Ctrl-C ignored, and Python leaves it so, here and in
# every process that a test starts. Tests send it.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="run the quick tests alone")
    parser.addoption("--overwrite", action="store_true", help="write the golden texts again")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("--quick") and quick.is_left_out(collection_path, config.args):
        return True
    return None  # others decide


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    yield
    config = metafunc.config
    only_failures = config.getoption("lf", False)
    if config.getoption("--quick") and quick.takes_first_cases(config.args, only_failures):
        # An item costs far more than its entry in this list, and pytest has no public way to it.
        metafunc._calls = quick.first_cases(metafunc._calls)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        taken = quick.chosen([quick.described(item) for item in items], config.args)
        pairs = list(zip(items, taken, strict=True))
        config.hook.pytest_deselected(items=[item for item, is_taken in pairs if not is_taken])
        items[:] = [item for item, is_taken in pairs if is_taken]
        for item in items:
            quick.try_few_examples(item)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported stays: nobody looks for garbage in it, now or when a test collects some."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What is left after the tests of a file stays: compilers and libraries that they imported.

    Those are millions of objects, and many tests collect garbage.
    """
    yield
    if nextitem is not None and nextitem.path != item.path:
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
