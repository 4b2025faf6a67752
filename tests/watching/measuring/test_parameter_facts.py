"""What is known of one parameter besides its numbers."""

from __future__ import annotations

import torch
from torch import nn

from nethook.runs.names import PART
from nethook.watching.measuring.parameter_facts import ParameterFacts


def test_a_parameter_of_one_process_is_one_part_and_lies_here():
    parameter = nn.Parameter(torch.zeros(2, 3))
    facts = ParameterFacts("fc.weight", parameter)
    assert facts.local is parameter
    assert facts.held is None
    assert facts.part.parts == 1
    assert (facts.steps, facts.with_grad, facts.moved) == (0, 0, [0, 0])


def test_its_gradient_is_that_of_now():
    facts = ParameterFacts("w", nn.Parameter(torch.zeros(2)))
    assert facts.grad is None
    facts.parameter.grad = torch.ones(2)
    assert facts.grad is facts.parameter.grad


def test_another_tensor_is_looked_up_anew():
    facts = ParameterFacts("w", nn.Parameter(torch.zeros(2)))
    facts.parameter = nn.Parameter(torch.ones(2))
    assert facts.local is not facts.parameter
    facts.settle()
    assert facts.local is facts.parameter


def test_only_runs_of_several_ranks_say_which_part_it_is():
    facts = ParameterFacts("w", nn.Parameter(torch.zeros(2)))
    assert facts.info(1) is None
    assert facts.info(2) == {PART: list(facts.part)}
