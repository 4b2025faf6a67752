from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest

import nethook
from nethook.errors import MissingLibraryError, OptionError
from nethook.sinks import known
from nethook.sinks.known import check_name, chosen_sinks, split_name
from nethook.sinks.sink import Sink


def test_names_may_say_how_much():
    assert split_name("wandb") == ("wandb", "few")
    assert split_name("wandb:all") == ("wandb", "all")
    wrong = "`sinks` must be names such as 'wandb' or 'wandb:all'; got 'wandb:some'."
    with pytest.raises(OptionError, match=re.escape(wrong)):
        split_name("wandb:some")


def test_a_name_that_is_not_known_is_refused():
    with pytest.raises(OptionError, match=r"`sinks` must be some of wandb, .*; got 'wanddb'"):
        check_name("wanddb")


def test_what_is_not_installed_is_named_with_its_package(monkeypatch):
    none = known._Tracker("wandb", "WandbSink", "no_such_library", "no-such-package")
    monkeypatch.setitem(known.TRACKERS, "wandb", none)
    with pytest.raises(MissingLibraryError, match="pip install no-such-package"):
        check_name("wandb")


def test_sinks_are_names_or_objects():
    own = Sink()
    made = chosen_sinks([own, "tensorboard:all"])
    assert made[0] is own
    assert made[1].detail == "all"
    assert chosen_sinks(own) == [own]
    with pytest.raises(OptionError, match="must be names of trackers or Sink objects; got int"):
        chosen_sinks([3])  # type: ignore[list-item]


@pytest.mark.parametrize("name", known.TRACKERS)
def test_a_file_imports_no_tracker_by_itself(name):
    tracker = known.TRACKERS[name]
    module = importlib.import_module(f"nethook.sinks.trackers.{tracker.module}")
    assert issubclass(getattr(module, tracker.kind), nethook.sinks.Sink)


def test_checking_a_name_imports_neither_numpy_nor_a_tracker():
    program = (
        "import sys; from nethook.sinks.known import check_name; check_name('tensorboard'); "
        "print([m for m in ('numpy', 'torch', 'tensorboard', 'wandb') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
