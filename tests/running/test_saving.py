"""Files that a script saves under `nethook run` are those it saves without."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running.both import Warm
from tests.zoo.saved import contents

PROGRAM = Path(__file__).with_name("saving_program.py")
# The stack of Python's calls at the moment of `torch.jit.trace`: files and lines, ours among them.
STACK = ".debug_pkl"


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    process = Warm()
    yield process
    process.stop()


def test_every_file_is_the_same(tmp_path: Path, warm: Warm) -> None:
    project, done, files = tmp_path / "project", [], []
    ours = ("-m", "nethook", "run", "--to", str(tmp_path / "run.db"))
    for before in ((), (), ours):
        project.mkdir()  # the same path each time: files name it
        shutil.copy(PROGRAM, project / "program.py")
        done.append(warm.run(*before, "program.py", cwd=project))
        assert done[-1].code == 0, done[-1].err
        files.append(contents(project / "saved"))
        shutil.rmtree(project)
    one, two, watched = files
    assert done[2].out == done[0].out
    assert watched.keys() == one.keys()
    stable = {name for name, saved in one.items() if two[name] == saved}
    assert len(stable) > 0.95 * len(one), sorted(one.keys() - stable)
    differ = {name for name in stable if watched[name] != one[name]}
    said = {name for name in one if name.startswith("traced.pt") and name.endswith(STACK)}
    checksum = {"traced.pt: traced/.data/serialization_id"}  # of all the names and sums beside it
    assert said
    assert differ <= said | checksum, sorted(differ)
