"""What `nethook run` imports: in a short run, imports are most of what it costs.

The oracle is the same script under `python`: what is in `sys.modules` only under `nethook run`, at
the very end of the process, is nethook's doing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.running.both import bare, environment

SCRIPT = """\
import sys
import torch
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(6):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(torch.randn(5, 4)), torch.arange(5) % 2)
    loss.backward()
    optimizer.step()
print("script:", *sorted(sys.modules))
"""

# What is registered first with `atexit` is called last: after the verdict.
COMMAND = """\
import atexit, sys
atexit.register(lambda: print("end:", *sorted(sys.modules)))
{first}
sys.argv = ["nethook", "run", "--to", "run.db", "script.py"]
from nethook.cli.entry import main
main()
"""

# Of other packages: numpy's names for annotations; what saves a batch with a NaN; what torch
# imports when it is asked to leave its modes.
NEEDED = (
    *("numpy.typing", "numpy._typing", "safetensors"),
    "torch._subclasses.schema_check_mode",
)
# Of Python: what a run without HTML and without a pyproject.toml has no use for.
NEEDLESS = ("html", "tomllib", "unittest", "asyncio", "http", "xml", "webbrowser", "pydoc")
# Rooms that have no part in a run.
STRANGERS = (
    *(
        "classic",
        "drawing",
        "editing",
        "examining.checkup",
        "exporting",
        "extracting",
        "figures",
        "init",
    ),
    *("page", "preflight", "types", "cli.main"),
)
# And what a run that nothing is wrong with has no use for, of the rooms that have a part in it.
UNUSED = (
    *("hooks.audit", "hooks.canaries", "running.demo", "running.live.page_process"),
    *(
        "running.live.status_line",
        "runs.reading.comparing.divergence",
        "runs.reading.show",
        "text.table",
    ),
    *("text.tree", "tracing.attention", "tracing.autograd", "tracing.scope", "tracing.sites"),
    *("tracing.tape", "watching.flight.replay_ops", "watching.flight.replaying"),
)


def modules(printed: str, label: str) -> set[str]:
    """The modules that were printed behind a label."""
    (line,) = [line for line in printed.splitlines() if line.startswith(f"{label}: ")]
    return set(line.split()[1:])


def watched(folder: Path, first: str = "") -> str:
    """What the script prints under `nethook run`, and the command behind it."""
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-c", COMMAND.format(first=first)]
    done = subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "6 steps" in done.stderr
    assert "too early to tell: 6 steps" in done.stderr
    return done.stdout


def needless(under: set[str], plain: set[str]) -> set[str]:
    """The modules that only the watched run has and that it has no use for."""
    return {
        name
        for name in under - plain
        if within(name, NEEDLESS)
        or within(name, [f"nethook.{place}" for place in (*STRANGERS, *UNUSED)])
        or not (
            name.partition(".")[0].lstrip("_") in ("nethook", "editable_skbc_nethook")
            or name.partition(".")[0] in sys.stdlib_module_names
            or within(name, NEEDED)
        )
    }


def within(name: str, packages: Iterable[str]) -> bool:
    """Whether a module is one of these, or in one of them."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The modules of the script under `python`."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "script.py").write_text(SCRIPT)
    return modules(bare("script.py", cwd=folder).out, "script")


def test_a_run_imports_nothing_that_it_does_not_need(tmp_path: Path, plain: set[str]) -> None:
    printed = watched(tmp_path)
    assert needless(modules(printed, "end"), plain) == set()
    # The doctor comes when the script has ended, or when a run is 20 seconds old.
    assert not {name for name in modules(printed, "script") if within(name, ["nethook.doctor"])}
    assert "nethook.doctor.rules.symptoms.dead_units" in modules(printed, "end")


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("import rich", "rich"),
        ("import html", "html.entities"),
        ("import torch.utils.tensorboard", "torch.utils.tensorboard"),
        ("import nethook.drawing.scales", "nethook.drawing.scales"),
        ("import nethook.text.table", "nethook.text.table"),
        ("import numpy.ma", "numpy.ma"),
    ],
)
def test_the_test_above_can_fail(
    tmp_path: Path, plain: set[str], statement: str, found: str
) -> None:
    if found in plain:
        pytest.skip(f"the script itself imports {found} with this torch")
    assert found in needless(modules(watched(tmp_path, statement), "end"), plain)


# Python answers this by a look through all modules, of which torch has two thousand.
ASKS = """\
import inspect, traceback
ask = inspect.getmodule
def asked(*given, **named):
    stack = traceback.extract_stack(sys._getframe(1))
    print("asked by", *{frame.filename for frame in stack if "/nethook/hooks/" in frame.filename})
    return ask(*given, **named)
inspect.getmodule = asked
"""


def test_no_hook_asks_which_module_it_is_called_from(tmp_path: Path) -> None:
    printed = watched(tmp_path, ASKS)
    callers = {line for line in printed.splitlines() if line.startswith("asked by")}
    # What the script calls passes through other hooks, and torch may ask in there.
    assert not [line for line in callers if "/hooks/compile/" in line]
