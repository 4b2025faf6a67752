"""What ran, in words; and what two runs were set up with that is not the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.runs.reading.comparing.facts import differing_facts, facts_in_words, joined
from nethook.runs.writing.writer import RunWriter


def differing(one: Path, two: Path) -> dict[str, tuple[str, str]]:
    with nethook.open_run(one) as first, nethook.open_run(two) as second:
        return {name: (a, b) for name, a, b in differing_facts(first, second)}


def written(path: Path, **info: Any) -> Path:
    with RunWriter(path) as writer:
        writer.info(**info)
    return path


def test_what_ran_is_told_in_words() -> None:
    info = {
        "command": ["python", "train.py", "--lr", "0.1"],
        "git": {"commit": "1f3c", "branch": "main"},
        "versions": {"python": "3.11", "torch": "2.13"},
        "devices": ["cpu: x86_64", "cuda:0"],
        "optimizers": {"0": "AdamW"},
        "models": {"": {"type": "GPT", "parameters": 162053}},
        "watch": {"quantities": ["outputs", "param_grads"], "phases": ["train"], "budget": 0.03,
                  "batches": 3, "snapshots": {}},
    }  # fmt: skip
    assert facts_in_words(info) == {
        "command": "python train.py --lr 0.1",
        "commit": "1f3c",
        "branch": "main",
        "versions": "python 3.11, torch 2.13",
        "devices": "cpu: x86_64, cuda:0",
        "optimizer": "AdamW",
        "model": "GPT, 162,053 parameters",
        "watched": "outputs, parameter gradients; train; budget 3 %",
    }


def test_several_models_and_optimizers_have_their_names() -> None:
    info = {
        "optimizers": {"generator": "Adam", "critic": "SGD"},
        "models": {"G": {"type": "Net", "parameters": 5}, "D": {"type": "D", "parameters": 1000}},
        "watch": {"budget": None},
    }
    assert facts_in_words(info) == {
        "optimizer": "generator: Adam, critic: SGD",
        "model": "G: Net, 5 parameters; D, 1,000 parameters",
        "watched": "no budget",
    }


@pytest.mark.parametrize("odd", [None, 3, "text", ["a", {"b": [None]}], {"x": {"y": 1}}])
def test_a_file_may_say_anything(odd: object, tmp_path: Path) -> None:
    names = ("command", "git", "versions", "devices", "optimizers", "models", "watch", "loaders")
    info = dict.fromkeys(names, odd)
    facts_in_words(info)
    plain = written(tmp_path / "a.db")
    rows = differing(written(tmp_path / "b.db", **info), plain)
    assert all(isinstance(text, str) for row in rows.values() for text in row)


def test_settings_of_the_optimizer_that_the_script_has_are_compared(tmp_path: Path) -> None:
    for name, momentum in (("a", 0.9), ("b", 0.5)):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
        with nethook.watch(model, optimizer, to=tmp_path / f"{name}.db"):
            for _ in range(2):
                optimizer.zero_grad()
                model(torch.ones(4, 3)).sum().backward()
                optimizer.step()
    assert differing(tmp_path / "a.db", tmp_path / "b.db") == {"momentum": ("0.9", "0.5")}


def test_of_optimizers_of_two_kinds_what_both_have_is_compared(tmp_path: Path) -> None:
    for name, kind in (("a", torch.optim.SGD), ("b", torch.optim.AdamW)):
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = kind(model.parameters(), lr=0.1)
        with nethook.watch(model, optimizer, to=tmp_path / f"{name}.db"):
            optimizer.zero_grad()
            model(torch.ones(4, 3)).sum().backward()
            optimizer.step()
    rows = differing(tmp_path / "a.db", tmp_path / "b.db")
    assert rows.pop("optimizer") == ("SGD", "AdamW")
    assert rows == {"weight_decay": ("0", "0.01")}


def test_what_was_chosen_comes_before_what_ran(tmp_path: Path) -> None:
    one = written(
        tmp_path / "a.db", command=["python", "t.py", "--width", "4"], git={"commit": "1"},
        models={"": {"type": "Net", "parameters": 9}}, versions={"torch": "2.8"},
        loaders=[{"batches": 7, "starts": [[0, 1, 2]]}], evaluation_sizes={"": [64]},
    )  # fmt: skip
    two = written(
        tmp_path / "b.db", command=["python", "t.py", "--width", "8"], git={"commit": "2"},
        models={"": {"type": "Net", "parameters": 18}}, versions={"torch": "2.13"},
        loaders=[{"batches": 9, "starts": [[0, 5, 6]]}], evaluation_sizes={"": [13]},
    )  # fmt: skip
    rows = differing(one, two)
    assert rows == {
        "width": ("4", "8"),
        "commit": ("1", "2"),
        "model": ("Net, 9 parameters", "Net, 18 parameters"),
        "batches in a pass": ("7", "9"),
        "version of torch": ("2.8", "2.13"),
    }
    assert next(iter(rows)) == "width"


def test_scripts_are_named_where_no_option_tells_them_apart(tmp_path: Path) -> None:
    one = written(tmp_path / "a.db", command=["python", "one.py"])
    two = written(tmp_path / "b.db", command=["python", "two.py"])
    assert differing(one, two) == {"command": ("python one.py", "python two.py")}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["python", "train.py"], "python, train.py"),
        ([1, 2], "1, 2"),
        ({"torch": "2.8", "more": {"a": 1}}, "torch 2.8, more a 1"),
        (None, ""),
    ],
)
def test_plain_data_in_words(value: object, text: str) -> None:
    assert joined(value) == text
