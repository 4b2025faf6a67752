"""What passed in `make trainers` becomes rows of build/integrations.json.

A trainer has a row where all its tests ran: `make trainers ARGS="-k keras"` writes that of Keras.
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import pytest

from tests.trainers.measuring import workers
from tools.integrations_page import add_rows
from zoo.measure import Workers


class Trainer(NamedTuple):
    """A trainer: its name, its package, and what its user gets."""

    name: str
    package: str
    gets: str


_STOPS: Final = "can stop a training"
_GOES_ON: Final = f"its metrics; runs that continue from a checkpoint; {_STOPS}"
_GETS: Final = f"callback; {_GOES_ON}"
TRAINERS: Final = {
    "lightning": Trainer("Lightning", "lightning", f"{_GETS}; errors end the run"),
    "hf": Trainer("transformers", "transformers", _GETS),
    "trl": Trainer("TRL", "trl", "the callback of transformers, for SFT and DPO"),
    "st": Trainer(
        "sentence-transformers", "sentence-transformers", "the callback of transformers"
    ),
    "accelerate": Trainer("Accelerate", "accelerate", "tracker; what the script logs"),
    "keras": Trainer(
        "Keras (on torch)", "keras",
        f"callback; its metrics; a loaded model continues its run; {_STOPS}; "
        "losses; outputs, weights and updates per layer",
    ),
    "fastai": Trainer(
        "fastai", "fastai", f"callback; its metrics; `start_epoch` continues a run; {_STOPS}"
    ),
    "ignite": Trainer("Ignite", "pytorch-ignite", f"handler; {_GOES_ON}; errors end the run"),
    "skorch": Trainer(
        "skorch", "skorch", f"callback; its history; `partial_fit` continues a run; {_STOPS}"
    ),
    "sb3": Trainer("Stable-Baselines3", "stable-baselines3", _GETS),
}  # fmt: skip
_PAGES: Final = {"transformers": "hf", "sentence-transformers": "st"}
"""Pages that are not called as their trainer is called here."""
# Which trainer a test is of: a program or a page by its name, a callback by its file.
_OF: Final = re.compile(r"\[(?:faulty_)?([a-z0-9]+)[_\]]|integrations/test_([a-z0-9]+)\.py")


@pytest.fixture(scope="session")
def worker() -> Iterator[Workers]:
    """A process that forks for each program."""
    made = workers()
    yield made
    made.close()


passed: Counter[str] = Counter()
failed: Counter[str] = Counter()
left_out: set[str | None] = set()


def trainer_of(test: str) -> str | None:
    """The trainer that a test is of, by the name of the test."""
    for page, key in _PAGES.items():
        test = test.replace(f"[{page}]", f"[{key}]")
    found = _OF.search(test)
    key = (found[1] or found[2]) if found else ""
    return key if key in TRAINERS else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    key = trainer_of(report.nodeid)
    if key is not None and report.when == "call":
        passed[key] += report.passed
    if key is not None:
        failed[key] += report.failed


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    left_out.update(trainer_of(item.nodeid) for item in items)


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    """Rows of those of whom all tests ran; fastai has few, in an environment of its own."""
    whole = {"tests/trainers", "tests/integrations"} <= {*session.config.args}
    ran = {key for key in TRAINERS if passed[key] or failed[key]} - left_out
    if importlib.util.find_spec("fastai"):
        ran &= {"fastai"}
    elif whole and importlib.util.find_spec("keras"):
        ran -= {"fastai"}
    else:
        return
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if ended and not hasattr(session.config, "workerinput"):
        add_rows(
            {
                "kind": "trainer", "name": TRAINERS[key].name,
                "version": version(TRAINERS[key].package), "gets": TRAINERS[key].gets,
                "passed": not failed[key],
            }
            for key in TRAINERS if key in ran
        )  # fmt: skip
