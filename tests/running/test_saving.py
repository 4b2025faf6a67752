"""Files that a script saves under `nethook run` are those it saves without."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running.both import Warm
from tests.zoo import EXHIBITS
from tests.zoo.saved import contents

PROGRAM = Path(__file__).with_name("saving_program.py")
ZOO = Path(__file__).with_name("saving_zoo_program.py")
ROOT = Path(__file__).parents[2]
FOLLOWED = 16  # models that `nethook run` follows at most
# The stack of Python's calls at the moment of `torch.jit.trace`: files and lines, ours among them.
STACK = ".debug_pkl"


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    process = Warm()
    yield process
    process.stop()


@pytest.mark.short
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


@pytest.mark.parametrize("first", range(0, len(EXHIBITS), FOLLOWED))
def test_every_model_of_the_zoo_is_saved_the_same(first: int, tmp_path: Path, warm: Warm) -> None:
    names = [exhibit.name for exhibit in EXHIBITS[first : first + FOLLOWED]]
    ours = ("-m", "nethook", "run", "--to", str(tmp_path / "run.db"))
    found = []
    for before in ((), (), ours):
        done = warm.run(*before, str(ZOO), str(ROOT), *names, cwd=tmp_path)
        assert done.code == 0, done.err
        lines = [json.loads(line) for line in done.out.splitlines() if line.startswith("[")]
        assert [name for name, _, _ in lines] == names
        found.append(lines)
    for (name, one, _), (_, two, _), (_, watched, _) in zip(*found, strict=True):
        stable = {way for way, saved in one.items() if two[way] == saved}
        assert [way for way in stable if watched[way] != one[way]] == [], name
        assert len(stable) >= len(one) / 2
    assert sum(hooked for _, _, hooked in found[2]) >= len(names) / 2
