"""Errors and warnings in the middle of a training that is followed look as they do without."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import nethook
from nethook.errors import NethookError
from nethook.running.program import Program
from nethook.running.tracebacks import clean, reached_script
from tests.running.both import Warm, without_module_calls

HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(6, 4), torch.randint(3, (6,))
def step(loss_of):
    optimizer.zero_grad()
    loss = loss_of(model(x))
    loss.backward()
    optimizer.step()
for _ in range(3):
    step(lambda output: nn.functional.cross_entropy(output, y))
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a.clone()
    @staticmethod
    def backward(ctx, grad):
        raise ValueError("in backward")
def closure():
    raise KeyError("closure")
"""
ERRORS = {
    "in the backward": "step(lambda output: Bad.apply(output).sum())",
    "a target": "nn.functional.cross_entropy(model(x), torch.full((6,), 9))",
    "a shape": "model(torch.ones(2, 5))",
    "a closure": "optimizer.step(closure)",
    "a clip": "nn.utils.clip_grad_norm_(model.parameters(), 'x')",
    "a scheduler": "torch.optim.lr_scheduler.StepLR(optimizer, 1).step(1, 2, 3)",
    "warnings": """
s = torch.optim.lr_scheduler.StepLR(optimizer, 1); s.step(); s.step()
other = torch.optim.SGD(model.parameters(), lr=0.1)
torch.optim.lr_scheduler.StepLR(other, 1).step()
nn.functional.mse_loss(torch.ones(3), torch.ones(3, 1))
nn.MSELoss()(model(x)[:, 0], torch.ones(6, 1)).backward()
with torch.no_grad():
    nn.MSELoss()(model(x)[:, 0], torch.ones(6, 1))
""",
}


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    process = Warm()
    yield process
    process.stop()


@pytest.mark.parametrize("where", ERRORS)
def test_they_look_as_ever(where: str, tmp_path: Path, warm: Warm) -> None:
    """The bare traceback begins with the frames of tests/running/warm.py and of runpy."""
    project = tmp_path / "project"
    project.mkdir()
    script = project / "script.py"
    script.write_text(HEAD + ERRORS[where] + "\n")
    plain = warm.run(str(script), cwd=project)
    ours = ("-m", "nethook", "run", "--to", str(tmp_path / "run.db"))
    followed = warm.run(*ours, str(script), cwd=project)
    assert (followed.code, followed.out) == (plain.code, plain.out)
    frames = plain.err.split("  File ")
    kept = [each for each in frames if "warm.py" not in each and "<frozen runpy>" not in each]
    bare = "  File ".join(kept)
    assert without_module_calls(followed.err) == without_module_calls(bare)
    assert followed.err.count("nethook") == bare.count("nethook")
    # A step that was begun and not ended counts.
    assert "3 steps" in followed.closing or "4 steps" in followed.closing


def _called_from(file: str, then: object = None) -> None:
    """Raises, or calls `then`, from a function that stands in a file of nethook's."""
    names = {"then": then}
    program = "def call():\n    if then is None: raise KeyboardInterrupt\n    then()\n"
    exec(compile(program, str(Path(nethook.__file__).parent / file), "exec"), names)
    names["call"]()  # type: ignore[operator]


@pytest.mark.parametrize("room", ["running", "watching", "hooks", "runs", "stats", "addresses"])
def test_frames_of_nethook_are_taken_out_wherever_they_are(room: str) -> None:
    def of_the_script() -> None:
        _called_from(f"{room}/inner.py")

    with pytest.raises(KeyboardInterrupt) as caught:
        _called_from(f"{room}/outer.py", of_the_script)
    group = BaseExceptionGroup("several", [caught.value])
    later = ValueError("later")
    later.__cause__ = group
    later.__context__ = later  # a circle does no harm
    clean(later)
    shown = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert shown[-2:] == ["of_the_script", "_called_from"]
    assert "call" not in shown


def test_frames_of_what_a_script_asked_for_stay() -> None:
    for error, file in ((ValueError, "editing/x.py"), (NethookError, "hooks/x.py")):

        def fail(kind: type[Exception] = error) -> None:
            raise kind

        with pytest.raises(error) as caught:
            _called_from(file, fail)
        clean(caught.value)
        assert "call" in [f.name for f in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize(
    ("program", "reached"),
    [
        (Program("none.py"), False),
        (Program("no.such.module", module=True), False),
        (Program("."), False),
        (Program("exits.py"), True),
        (Program("exits", module=True), True),
    ],
)
def test_whether_there_was_a_script_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Program, reached: bool
) -> None:
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(2)\n")
    monkeypatch.chdir(tmp_path)
    for name in ("argv", "orig_argv", "path"):
        monkeypatch.setattr(sys, name, list(getattr(sys, name)))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    with pytest.raises(SystemExit) as ended:
        program.run()
    assert reached_script(ended.value) is reached
