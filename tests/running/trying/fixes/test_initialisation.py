"""Another start."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from nethook.running.trying.change import Change
from nethook.running.trying.comparing import compare
from nethook.running.trying.fixes import initialisation
from tests.running.trying.trials import both, with_fault


@pytest.mark.parametrize("code", initialisation.CODES)
def test_each_finding_gets_a_start(code: str) -> None:
    change = initialisation.propose({"code": code}, SimpleNamespace())  # type: ignore[arg-type]
    assert change is not None
    assert "nethook.init" in change.said


BUILT = "optimizer = torch"
SYMMETRIC = (
    (BUILT, f"for p in model.parameters(): nn.init.constant_(p, 0.1)\n{BUILT}"),
    ("y = (x @ torch.randn(8, 1, generator=generator)).tanh()", "y = x[:, :1] * x[:, 1:2]"),
    ("lr=0.1", "lr=0.2"),
)
LARGE = ((BUILT, f"for p in model.parameters(): nn.init.normal_(p, std=8.0)\n{BUILT}"),)
BY_NAME = (*LARGE, ("model(batch)", "model(input=batch)"))


@pytest.mark.parametrize(("fault", "steps"), [(SYMMETRIC, 70), (LARGE, 40), (BY_NAME, 40)])
def test_a_start_is_tried(tmp_path: Path, fault: tuple[tuple[str, str], ...], steps: int) -> None:
    change = Change("initialisation", "bad-init-scale")
    before, after = both(tmp_path, with_fault(*fault), change, steps=steps)
    assert (after.end.how, after.end.error, after.end.changed) == ("steps", "", 1)
    compared = compare(before.losses, after.losses, "train")
    assert compared.helped, compared


def test_random_numbers_are_those_of_the_script(tmp_path: Path) -> None:
    """With a start that changes nothing of the data, the batches are the same."""
    noisy = (
        "optimizer.zero_grad()",
        "optimizer.zero_grad(); open('noise', 'a').write(f'{torch.rand(1).item()} ')",
    )
    change = Change("initialisation", "bad-init-scale")
    before, after = both(tmp_path, with_fault(noisy), change, steps=5)
    one, other = ((made.inside / "noise").read_text(encoding="utf-8") for made in (before, after))
    assert one
    assert one == other
