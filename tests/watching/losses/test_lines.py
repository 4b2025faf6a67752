"""The lines of a script that make losses: each is known again, and each loss has a name."""

from __future__ import annotations

import pytest
import torch

from nethook.hooks.process.source_line import line_of_script
from nethook.watching.losses.lines import Lines
from nethook.watching.losses.record import analyse


@pytest.fixture
def analysis():
    return analyse((torch.ones(3, requires_grad=True) ** 2).mean().grad_fn, scaled=False)


def test_a_line_is_the_same_at_every_pass_and_another_line_is_another(analysis):
    lines, seen = Lines(), []
    for _ in range(3):
        seen.append(lines.calling(0))
    other, of_other = lines.calling(0)
    assert len({where for where, _ in seen}) == 1
    assert all(of_line is seen[0][1] for _, of_line in seen)
    assert other.line == seen[0][0].line + 1
    assert of_other is not seen[0][1]
    assert len(lines) == 2


def test_a_way_of_making_a_loss_is_counted_and_kept_with_its_line(analysis):
    lines = Lines()
    where, of_line = lines.calling(0)
    first = lines.add(where, of_line, analysis)
    second = lines.add(where, of_line, analysis)
    assert of_line == [first, second]
    assert lines.ways == 2
    assert (first.root, first.last_record) == (analysis.root, -1)
    assert [first.name, second.name] == [str(where), f"{where}#1"]


def test_without_gradient_each_function_of_a_line_has_losses_of_its_own():
    lines, where = Lines(), line_of_script()
    mse, l1 = lines.evaluated(where, "mse"), lines.evaluated(where, "l1")
    assert lines.evaluated(where, "mse") is mse
    assert [mse.name, l1.name] == [str(where), f"{where}#1"]
    assert (mse.analysis, len(lines), lines.ways) == (None, 0, 0)
