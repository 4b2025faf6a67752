"""`nethook sites`: the map of a model that is named on the command line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import nethook
from nethook.cli.main import app

MODELS = """
import torch
from torch import nn

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 2)

    def forward(self, ids, mask=None):
        x = self.embed(ids)
        if mask is not None:
            x = x * mask.unsqueeze(-1)
        return self.head(x).relu()

def image():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout())

def large():
    return nn.Linear(200_000, 200_000)

def needs(size):
    return nn.Linear(size, size)

def wrong():
    return 3

def fails():
    raise FileNotFoundError("weights.pt")

class Reads(nn.Module):
    def forward(self, x):
        return x if x.sum().item() else -x

instance = nn.Linear(3, 3)
number = 7
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "models_of_mine.py").write_text(MODELS, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import no_such_package\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["sites", *arguments], terminal_width=200)
    return done.exit_code, done.stdout, done.stderr


def test_a_tree_on_the_command_line(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nethook", "sites", "models_of_mine:image", "--input", "1x3x8x8"],
        capture_output=True, text=True, check=False, cwd=folder, encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(Path(nethook.__file__).parents[1])},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "4 modules, 3 operations"
    assert lines[3].split()[:2] == ['""', "Sequential"]
    assert "(1, 4, 6, 6)" in lines[5]


def test_files_classes_and_instances() -> None:
    code, out, _ = run("models_of_mine.py:Tokens", "--input", "2x5:int64")
    assert code == 0
    assert "embed/embedding#0" in out
    assert run("models_of_mine:instance", "--input", "2x3")[0] == 0


def test_a_file_does_not_find_the_arguments_of_nethook(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["nethook", "sites"])
    text = "import sys, torch\nsize = int(sys.argv[1]) if len(sys.argv) > 1 else 3\n"
    (folder / "reads_arguments.py").write_text(f"{text}net = torch.nn.Linear(size, size)\n")
    assert run("reads_arguments.py:net", "--input", "2x3")[0] == 0


def test_several_inputs_by_place_and_by_name() -> None:
    code, out, _ = run(
        "models_of_mine:Tokens", "--input", "2x5:int64", "--input", "mask=2x5:bool", "--json"
    )
    assert code == 0
    sites = {each["address"]: each for each in json.loads(out)["sites"]}
    assert sites["/mul#0"]["shapes"] == [[2, 5, 4]]
    assert sites[""]["input_shapes"] == [[2, 5]]


def test_without_memory() -> None:
    code, out, _ = run("models_of_mine:large", "--input", "2x200000", "--device", "meta")
    assert code == 0
    assert "(2, 200000)" in out


def test_training_filters_and_depth() -> None:
    _, out, _ = run("models_of_mine:image", "--input", "2x3x8x8", "--train", "--at", "**/add")
    assert "1/add#0" in out  # what a batch norm counts
    _, out, _ = run("models_of_mine:image", "--input", "2x3x8x8", "--depth", "1")
    assert out.splitlines()[0] == "4 modules, 0 operations"
    code, out, err = run("models_of_mine:image", "--input", "2x3x8x8", "--at", "**/add")
    assert (code, out) == (2, "")
    assert err.startswith("nethook sites: no site of this forward matches '**/add'.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models_of_mine", "--input", "1"], "must be MODULE:NAME; got 'models_of_mine'."),
        (["models_of_mine:imag", "--input", "1"], "has no 'imag'. Closest: 'image'."),
        (["no_such_module:x", "--input", "1"], ("'no_such_module' could not be imported: "
         "ModuleNotFoundError: No module named 'no_such_module'")),
        (["broken:x", "--input", "1"], "No module named 'no_such_package'"),
        (["none.py:x", "--input", "1"], "there is no file 'none.py'."),
        (["models_of_mine:number", "--input", "1"], ("MODULE:NAME must be a model, a class "
         "or a function that builds one; got 'models_of_mine:number', which is of type int.")),
        (["models_of_mine:wrong", "--input", "1"], "must return an nn.Module; got int."),
        (["models_of_mine:needs", "--input", "1"], ("was called without arguments and failed: "
         "TypeError: needs() missing 1 required positional argument: 'size'. Name a function")),
        (["models_of_mine:fails", "--input", "1"], "FileNotFoundError: weights.pt"),
        (["models_of_mine:image"], "must be given at least once. Examples: 1x3x224x224"),
        (["models_of_mine:image", "--input", "1x-3"], "must be [NAME=]SHAPE[:DTYPE]; got '1x-3'."),
        (["models_of_mine:image", "--input", "a b=1"], "[NAME=]SHAPE[:DTYPE]; got 'a b=1'."),
        (["models_of_mine:image", "--input", "1:int65"], "Closest: 'int64'"),
        (["models_of_mine:image", "--input", "1:add"], "must have a dtype of torch; got 'add'."),
        (["models_of_mine:image", "--input", "1", "--device", "gpu"], "'gpu'"),
        (["models_of_mine:image", "--input", "2x4x8x8"], ("the model could not be run with --input "
         "2x4x8x8: RuntimeError: Given groups=1")),
        (["models_of_mine:Reads", "--input", "2", "--device", "meta"], "ran the model without"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert code in (1, 2)
    assert out == ""
    assert message in " ".join(err.replace("│", "").split())
    assert "Traceback" not in err


def test_on_a_terminal_it_is_a_tree_of_rich(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torch import nn

    from nethook.cli.commands.sites import _print

    found = nethook.sites(nn.Sequential(nn.Linear(3, 2)), torch.ones(1, 3))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _print(found, as_json=False)
    printed = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
    assert printed.splitlines()[0].startswith("2 modules, 1 operation")
    assert "└── 0/linear#0" in printed
