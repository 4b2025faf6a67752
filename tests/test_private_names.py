"""How private names of torch are looked up and listed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from nethook.errors import TorchChangedError
from nethook.private_names import NAMES, exists, look_up, name, note, reader

MISSING = "torch._C._no_such_name_of_torch"


@pytest.fixture(autouse=True)
def _list_as_before() -> Iterator[None]:
    before = dict(NAMES)
    yield
    NAMES.clear()
    NAMES.update(before)


def test_a_missing_name_takes_the_plain_way() -> None:
    plain = object()
    assert name(MISSING, "Is it there?", "nothing is lost", plain) is plain
    refuse = name(MISSING, "Is it there?", "the moon cannot be seen")
    with pytest.raises(TorchChangedError, match=r"has no torch\._C\._no.*the moon cannot be"):
        refuse(1, two=2)
    assert look_up("torch.nn.Linear") is nn.Linear


def test_a_path_is_followed_and_imported_on_the_way() -> None:
    program = (
        "import sys, torch\n"
        "from nethook.private_names import exists, look_up\n"
        "assert 'torch.nn.utils.prune' not in sys.modules\n"
        "assert look_up('torch.nn.utils.prune.Identity').__name__ == 'Identity'\n"
        "assert 'torch.nn.utils.prune' in sys.modules\n"
        "assert not exists('torch.utils.no_such_module.name')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("path", "there"),
    [("torch.nn.Linear", True), ("torch.nn.Linnear", False), ("torch.no.such.thing", False)],
)
def test_whether_a_name_exists(path: str, there: bool) -> None:
    assert exists(path) is there


def test_a_name_is_listed_with_what_it_is_for() -> None:
    assert note(MISSING, "Is it there?", "nothing", has_plain_way=True, since="2.9", until="2.10")
    listed = NAMES[MISSING]
    assert (listed.path, listed.question, listed.lost) == (MISSING, "Is it there?", "nothing")
    assert (listed.since, listed.until, listed.has_plain_way) == ("2.9", "2.10", True)


@pytest.mark.parametrize(
    ("version", "since", "until", "expected"),
    [
        ("2.9.1", "2.8", "", True),
        ("2.9.1", "2.10", "", False),
        ("2.9.1", "2.8", "2.9", True),
        ("2.10.0+cpu", "2.8", "2.9", False),
        ("2.16.0.dev20261116", "2.16", "", True),
    ],
)
def test_a_name_is_expected_inside_its_window(
    version: str, since: str, until: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    note(MISSING, "Is it there?", "nothing", since=since, until=until)
    assert NAMES[MISSING].is_expected is expected


def test_a_reader_reads_the_last_word_of_a_path() -> None:
    read = reader("torch.nn.Module.training", "Does it train?", "nothing")
    assert read(nn.Linear(1, 1)) is True
    assert read(nn.Linear(1, 1).eval()) is False


@pytest.mark.parametrize(
    ("asked", "plain"),
    [("", []), ("torch.nn.Linear", ["Linear"]), ("all", ["Linear", "ReLU"])],
)
def test_the_plain_way_can_be_asked_for(asked: str, plain: list[str]) -> None:
    program = (
        "from nethook.private_names import name, note, reader\n"
        "for word in ('Linear', 'ReLU'):\n"
        "    got = name(f'torch.nn.{word}', 'Is it there?', 'nothing', plain=int)\n"
        "    read = reader(f'torch.nn.{word}', 'Is it there?', 'nothing', plain=abs)\n"
        "    assert (got is int) is (read is abs)\n"
        "    print(word if got is int else '')\n"
        "assert note('torch.nn.Linear', 'Is it there?', 'all', has_plain_way=False)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "NETHOOK_PLAIN": asked},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == plain
