"""What could not be compiled before is compiled by the test that needs it."""

import torch
from torch import nn

from tests.compiling import forget_compiled


def graphs_of(model: nn.Module) -> int:
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    torch.compile(model, backend=backend)(torch.ones(1, 4))
    return len(graphs)


def test_modules_of_torchs_own_are_compiled_though_that_was_given_up():
    from torch._dynamo.external_utils import wrap_inline
    from torch._dynamo.types import FrameAction, FrameExecStrategy

    forget_compiled()
    given_up = FrameExecStrategy(FrameAction.SKIP, FrameAction.SKIP)
    torch._C._dynamo.eval_frame.set_code_exec_strategy(wrap_inline(print).__code__, given_up)
    assert graphs_of(nn.Linear(4, 3)) == 0
    forget_compiled()
    assert graphs_of(nn.Linear(4, 3)) == 1
