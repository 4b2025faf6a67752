"""Runs tests in a fork, in which a mutant is loaded in place of its file."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.util
import os
import resource
import shlex
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NamedTuple

from tools.mutants.changes import Mutant
from tools.mutants.guards import ROOT

_MEMORY = 8 << 30  # bytes that a fork may have
_BROKEN = 70  # a fork that did not come to its end


class Limit(NamedTuple):
    """Seconds that tests may take; a mutant that takes more hangs."""

    processor: int = 600
    clock: int = 1200


def run(mutant: Mutant | None, tests: list[str], limit: Limit = Limit()) -> str:  # noqa: B008
    """Runs tests in a fork, against a mutant; None is the source as it is.

    Returns "survived" if all pass, else "killed" or "hung".
    """
    child = os.fork()
    if child == 0:
        try:
            code = _in_fork(mutant, tests, limit)
        except BaseException:
            code = _BROKEN
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what its tests have left behind
    code = os.waitstatus_to_exitcode(status)
    # Failed tests are 1, files that cannot be imported 2, errors of pytest's own 3; a signal is
    # negative. The rest is no answer: no such file, no such test.
    if code > 3:
        sys.exit(f"pytest {shlex.join(tests)} ends with {code} ({mutant or 'no mutant'})")
    if -code in (signal.SIGXCPU, signal.SIGALRM):
        return "hung"
    return "killed" if code else "survived"


def _in_fork(mutant: Mutant | None, tests: list[str], limit: Limit) -> int:
    os.setsid()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (limit.processor, limit.processor + 5))
    signal.alarm(limit.clock)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    if mutant is not None:
        sys.meta_path.insert(0, _Changed(mutant))
    import pytest

    try:
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], [_Quickly()]))
    except BaseException:  # what a mutant breaks may break pytest as well
        return 3


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from changed code."""

    def __init__(self, mutant: Mutant) -> None:
        package = mutant.file.relative_to(ROOT / "src").with_suffix("")
        self._name = ".".join(package.parts)
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._mutant.file, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._mutant.code, module.__dict__)


class _Quickly:
    """A plugin of pytest: hypothesis tries the same examples every time, and makes none smaller."""

    def pytest_configure(self) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutants",
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow],
        )
        settings.load_profile("mutants")
