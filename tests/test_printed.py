"""What nethook prints, as a whole: tables, reprs, verdicts and help, against tests/golden.

The numbers in the tables of values are exact sums of fractions of four, or have few enough digits
for every torch to give the same; where training decides them, they are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import nethook
from nethook.text.finding_lines import finding_lines
from nethook.text.paragraphs import WIDTH, Style
from tests.golden import Golden, replaced
from tests.running.both import under
from tests.watching.patient import patient  # noqa: F401 - used by every test

SCRIPTS = Path(__file__).with_name("scripts")
COMMANDS = (
    "run", "diagnose", "replay", "report", "diff", "export", "merge", "metrics", "publish", "ui",
    "sites", "demo", "selftest",
)  # fmt: skip
# What training decides: numbers with a point or an exponent.
FRACTIONS = {r"-?\d[\d,]*(\.\d+(e[+-]?\d+)?|e[+-]?\d+)": "#"}


class Net(nn.Module):
    """A layer that is called twice, an operation without a module, a layer that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.relu = nn.ReLU()
        self.head = nn.Linear(32, 2)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.conv(x))
        x = self.relu(x + 1)
        return self.head(x.flatten(1)).softmax(-1)


def exact(model: nn.Module) -> nn.Module:
    """The model with fractions of four for weights."""
    with torch.no_grad():
        for parameter in model.parameters():
            values = torch.arange(parameter.numel()) * 5 % 7 - 3
            parameter.copy_(values.reshape(parameter.shape) / 4)
    return model


def image() -> torch.Tensor:
    return (torch.arange(32.0).reshape(2, 1, 4, 4) % 5 - 2) / 2


def mlp() -> nn.Module:
    return exact(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return (torch.arange(32.0).reshape(8, 4) * 3 % 11 - 5) / 4, torch.arange(8) % 2


def test_a_tape(golden: Golden) -> None:
    model = exact(Net())
    with nethook.trace(model, grads=True, param_grads=True) as tape:
        model(image())[:, 0].sum().backward()
    shown = [tape, tape["conv"], tape["relu"], tape["relu"].calls, *tape.params.values()]
    golden("tape", "\n\n".join(map(repr, shown)))


def test_a_tape_of_operations(golden: Golden) -> None:
    model = exact(Net())
    with nethook.trace(model, "conv", "**/*") as tape:
        model(image())
    golden("tape_of_operations", repr(tape))


def test_the_sites_of_a_model(golden: Golden) -> None:
    found = nethook.sites(exact(Net()), image())
    text = "\n\n".join([repr(found), repr(found.filter("**/relu*")), found.tree()])
    golden("sites", replaced(text, {r"test_printed\.py:\d+": "net.py:LINE"}))


def test_what_patterns_select(golden: Golden) -> None:
    model = exact(Net())
    chosen = {
        pattern: {name: type(module).__name__ for name, module in modules.items()}
        for pattern in ("*", "{conv,head}", "un*")
        for modules in [nethook.select(model, pattern)]
    }
    golden("select", "\n".join(f"{pattern}: {names}" for pattern, names in chosen.items()))


def test_a_plan(golden: Golden) -> None:
    plan = nethook.init.plan(exact(Net()), image())
    he = nethook.init.plan(exact(Net()), image(), "he")
    golden("plan", f"{plan!r}\n\n{plan.diff(he)!r}")


def test_a_proof_of_a_start(golden: Golden) -> None:
    golden("verify", repr(nethook.init.verify(exact(Net()), image())))


def test_a_checkup(golden: Golden) -> None:
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.125)
    found = nethook.checkup(model, batch(), nn.CrossEntropyLoss(), optimizer, steps=12)
    # Tables are as wide as what is in them.
    made = {r"\d+ made, nothing found.*": "# made, nothing found"}
    wide = {"─{5,}": "─────", " {3,}": "   "}
    golden("checkup", replaced(repr(found), {**FRACTIONS, **made, **wide}))


def test_an_edit_and_the_hooks_of_a_model(golden: Golden) -> None:
    model = mlp()
    with nethook.edit(model, outputs={"1": nethook.edits.scale(2)}) as edit:
        before = repr(edit)
        model(batch()[0])
        shown = [before, repr(edit), repr(nethook.audit(model))]
    golden("edit", "\n\n".join([*shown, repr(edit)]))


def test_a_watch_and_its_run(golden: Golden, tmp_path: Path) -> None:
    model, (x, y) = mlp(), batch()
    optimizer = torch.optim.SGD(model.parameters(), 0.125)
    path = tmp_path / "run.db"
    with nethook.watch(model, to=path, optimizer=optimizer, budget=None) as watch:
        shown = [repr(watch)]
        for _ in range(6):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    shown.append(repr(watch))
    with nethook.open_run(path) as run:
        shown += [repr(run), repr(run.series("0", "outputs"))]
        shown += map(repr, run.scalars.values())
        shown += [f"{info.address!r} {info.quantity}" for info in run.catalogue]
    names = {
        str(tmp_path): "FOLDER",
        r"test_printed\.py:\d+": "train.py:LINE",
        r"overhead [\d.]+%": "overhead #%",
        r"(_fingerprint': .* last) \S+": r"\1 #",
        **FRACTIONS,
    }
    golden("watch", replaced("\n".join(shown), names))


FINDINGS = [
    {
        "code": "dead-units",
        "severity": "error",
        "sites": ["relu1", "relu2", "relu3", "relu4", "relu5"],
        "first_step": 12,
        "last_step": 300,
        "evidence": {"dead_share": {"value": 0.92, "threshold": 0.5}, "windows": 7},
        "message": "92 % of the units of relu1 were silent over whole windows, and so were most of "
        "those of four other layers.",
        "fix": "Lower the learning rate: try 0.001 instead of 0.1.",
    },
    {
        "code": "input-not-normalized",
        "severity": "warning",
        "sites": [""],
        "first_step": 0,
        "last_step": 0,
        "evidence": {"mean": {"value": 130.5, "threshold": 10}},
        "message": "The inputs have mean 130.5.",
        "fix": "Subtract the mean and divide by the standard deviation.",
    },
]


def test_findings(golden: Golden) -> None:
    golden("findings", "\n".join(finding_lines(FINDINGS, Style())))


@pytest.mark.parametrize(
    ("script", "code"), [("plain", 0), ("crashes", 1), ("diverges", 0), ("gan", 0)]
)
def test_the_verdict_of_a_script(golden: Golden, script: str, code: int, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__", "outputs"))
    done = under(f"{script}.py", ours=("--to", "run.db", "--budget", "none"), cwd=folder)
    assert done.code == code
    names = {
        r"(?s)nethook\.\s*r.{5,500}? again\.": "nethook.replay(...) runs the batch again.",
        re.escape(str(folder)): "FOLDER",
    }
    # In a run this short there may be no steady step.
    cost = r"watching cost ((less than )?[\d.,]+ % per step and )?(less than )?[\d.]+ s in all"
    # How many experiments there is time for depends on the machine.
    examined = r"(?s)examined in (less than )?[\d.]+ s: \d+ experiments? on copies.*?\n(?=\S)"
    # A model that counts its calls fails on a copy only if examining began late.
    fails = r"not examined: the model fails on it.*\n"
    costs = {
        cost: "watching cost # s in all",
        examined: "examined in # s: # experiments\n",
        fails: "",
    }
    text = unwrapped(replaced(done.closing, names))
    golden(f"verdict_{script}", replaced(text, {**costs, **FRACTIONS, r"\b\d+ %": "# %"}))


def unwrapped(text: str) -> str:
    """Paragraphs in one line each: where they are wrapped depends on how long the numbers are."""
    lines: list[str] = []
    last = ""
    for line in text.splitlines():
        word = next(iter(line.split()), "")
        if line.startswith("  ") and len(last) + 1 + len(word) > WIDTH:
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
        last = line
    return "\n".join(lines)


def help_of(*words: str) -> str:
    """What a command prints with --help, 100 columns wide and without colours."""
    forced = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "CLICOLOR_FORCE")
    environment = {name: value for name, value in os.environ.items() if name not in forced}
    environment |= {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "nethook", *words, "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_help(golden: Golden) -> None:
    golden("help/nethook", help_of())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command(golden: Golden, command: str) -> None:
    golden(f"help/{command}", help_of(command))


def test_every_command_has_its_help_here() -> None:
    from typer.main import get_command

    from nethook.cli.main import app

    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert sorted(COMMANDS) == sorted(name for name, it in commands.items() if not it.hidden)


def test_the_help_of_make(golden: Golden) -> None:
    root = Path(__file__).parents[1]
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    golden("help/make", done.stdout)
