"""Folders from strangers: pipes, links, folders and nonsense where nethook looks for its files."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import nethook
from nethook.errors import NethookError
from nethook.page.folder import Folder
from nethook.page.summaries import summary_of
from nethook.watching.flight import file
from tests.limited import run_limited
from tests.runs.made import write_run

TITLE = "hostile folders"
TRIES = 300
SHORT = 12

PRECIOUS = b"what lies outside must stay as it is"


@functools.cache
def original() -> Path:
    """A folder with everything that nethook reads: a run of two ranks, features, recipes."""
    place = Path(tempfile.mkdtemp(prefix="nethook-faults-")) / "folder"
    for rank in range(2):
        write_run(place / "run.db", 10, seed=rank, rank=rank, world_size=2)
    flight = file.Flight({"site": "0"}, (torch.ones(3),), {"x": [1, {"y": torch.ones(2)}]})
    file.save(file.flight_path(place / "run.db"), flight)
    model = nn.Sequential(nn.Identity())
    nethook.extract(model, [torch.ones(5, 3), torch.zeros(5, 3)], "0", place / "features")
    nethook.edits.save(
        place / "recipe.json",
        outputs={"0": nethook.edits.add(torch.ones(3)), "1": nethook.edits.scale(0.5)},
    )
    return place


def attempt(seed: int, folder: Path) -> None:
    """Makes a folder hostile in ways that the seed decides, and has every reader look at it."""
    chance = random.Random(seed)
    outside = folder / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(PRECIOUS)
    write_run(outside / "other.db", 3)
    place = Path(shutil.copytree(original(), folder / "folder"))
    for _ in range(chance.choice([1, 1, 2, 5])):
        chance.choice(WAYS)(place, outside, chance)
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    run_limited(lambda: read_all(place))
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before


def read_all(place: Path) -> None:
    """Every reader answers, or refuses in nethook's words."""
    readers: list[Callable[[], object]] = [
        lambda: read_run(place / "run.db"),
        lambda: read_run(place / "run.rank1.db"),
        lambda: read_features(place / "features"),
        lambda: nethook.extract(
            nn.Sequential(nn.Identity()), [torch.ones(5, 3)], "0", place / "features"
        ),
        lambda: use_recipe(place / "recipe.json"),
        lambda: file.load(place / "run.db"),
        lambda: list_runs(place),
        lambda: write_run(place / "new.db", 2),
    ]
    for path in place.iterdir():
        if path.suffix == ".db":
            readers.append(functools.partial(read_run, path))
    for read in readers:
        try:
            read()
        except NethookError as error:
            said = str(error)
        else:
            said = ""
        assert "\x1b" not in said


def read_run(path: Path) -> None:
    with nethook.open_run(path) as run:
        repr(run)
        assert len(run.ranks) <= 100_000
        for info in run.catalogue:
            run.series(info.address, info.quantity)


def read_features(folder: Path) -> None:
    data = nethook.load_features(folder)
    repr(data)
    for row in range(min(3, len(data))):
        data[row]
    for site in data.sites:
        data.tensor(site)


def use_recipe(path: Path) -> None:
    model = nn.Sequential(nn.Identity(), nn.Identity())
    with nethook.edit(model, strict=False, **nethook.edits.load(path)):
        model(torch.ones(2, 3))


def list_runs(place: Path) -> None:
    folder = Folder(place)
    for entry in folder.entries():
        folder.open(entry)
        summary_of(entry)


# What is done to a folder


def _some_file(place: Path, chance: random.Random) -> Path:
    found = (path for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    files = sorted(path for path in found if path.stat().st_size < 1 << 24)
    return chance.choice(files)


def put_pipe(place: Path, outside: Path, chance: random.Random) -> None:
    path = _some_file(place, chance)
    path.unlink()
    os.mkfifo(path)


def put_folder(place: Path, outside: Path, chance: random.Random) -> None:
    path = _some_file(place, chance)
    path.unlink()
    (path / "more").mkdir(parents=True)


def put_link(place: Path, outside: Path, chance: random.Random) -> None:
    path = _some_file(place, chance)
    path.unlink()
    goals = [
        outside / "precious",
        outside / "other.db",
        outside / "nothing",
        path,
        Path("/dev/zero"),
    ]
    path.symlink_to(chance.choice(goals))


def put_beside(place: Path, outside: Path, chance: random.Random) -> None:
    """Something under a name that belongs to a file."""
    names = ["run.db-wal", "run.db-shm", "run.db-journal", "run.rank1.db-wal", "new.db-wal"]
    names += ["run.rank2.db", "run.rank99999.db", "run.rank999999999999999.db", "run.rank01.db"]
    names += ["features/rank-00000.json", "features/rank-00000.lock", "features/rank-00000x.tmp"]
    names += [
        "features/index.json.7.tmp",
        "deep.db",
        "a\nb\x1b[31m.db",
        "x" * 250 + ".db",
        "new.db",
    ]
    path = place / chance.choice(names)
    if os.path.lexists(path):
        return
    kind = chance.randrange(5)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to(chance.choice([outside / "precious", outside / "nothing", place]))
    elif kind == 3:
        path.write_bytes(chance.randbytes(chance.choice([0, 10, 5000])))
    else:
        with path.open("wb") as stream:
            stream.truncate(1 << 41)  # of holes


def damage(place: Path, outside: Path, chance: random.Random) -> None:
    path = _some_file(place, chance)
    data = bytearray(path.read_bytes())
    if data and chance.random() < 0.7:
        for _ in range(chance.choice([1, 10])):
            data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    else:
        data = data[: chance.randrange(len(data) + 1)]
    path.write_bytes(data)


def grow(place: Path, outside: Path, chance: random.Random) -> None:
    """A file that says that it has a terabyte."""
    with _some_file(place, chance).open("r+b") as stream:
        stream.truncate(1 << 40)


STRANGE: tuple[Any, ...] = (
    None, True, -1, 0.5, 10**400, 2**63, float("nan"), float("inf"), "", "x" * 300, "\x1b[2J\n",
    "../x", "/etc/passwd", "a\0b", [], {}, [[[]]], {"tensor": "9"}, {"slice": [0, 1, 0]},
    {"slice": [10**30, None, -1]}, [10**30] * 3,
)  # fmt: skip


def change_json(place: Path, outside: Path, chance: random.Random) -> None:
    """One value of an index or of a recipe is another."""
    path = place / chance.choice(["features/index.json", "recipe.json"])
    if not path.is_file() or path.is_symlink() or path.stat().st_size > 1_000_000:
        return
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    at = data
    while isinstance(at, dict | list) and at:
        key = chance.choice(sorted(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or chance.random() < 0.3:
            at[key] = chance.choice(STRANGE)
            break
        at = at[key]
    path.write_text(json.dumps(data))


def nest_deeply(place: Path, outside: Path, chance: random.Random) -> None:
    path = place / chance.choice(["features/index.json", "recipe.json"])
    if path.is_file() and not path.is_symlink():
        depth = chance.choice([500, 5000, 100_000])
        path.write_text(
            chance.choice(["[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth])
        )


def hide(place: Path, outside: Path, chance: random.Random) -> None:
    """A file, or a folder, that may not be read (which does not stop root)."""
    _some_file(place, chance).chmod(0)


WAYS: list[Callable[[Path, Path, random.Random], None]] = [
    put_pipe, put_folder, put_link, put_beside, put_beside, damage, grow, change_json, change_json,
    nest_deeply, hide,
]  # fmt: skip
