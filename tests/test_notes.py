"""What tutorials say of hooks, held against PyTorch: the proof of docs/notes-put-right.md.

One statement a test, in plain torch: nethook is not imported here. The page cites each by name.
"""

from __future__ import annotations

import collections
import copy
import math
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

calculate_gain = nn.init.calculate_gain


def root_mean_square(function, scale: float = 1.0) -> float:
    """Of function(scale * z) for a normal z, by a sum over a fine grid."""
    z = torch.linspace(-10, 10, 20_001, dtype=torch.float64)
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    return float((function(scale * z).square() * density).sum() * (z[1] - z[0])) ** 0.5


def small_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


# Gains ------------------------------------------------------------------------------------------


def test_calculate_gain_has_no_negative_slope() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'negative_slope'"):
        calculate_gain("leaky_relu", negative_slope=0.2)  # type: ignore[call-arg]
    assert calculate_gain("leaky_relu", 0.2) == calculate_gain("leaky_relu", param=0.2)


def test_gain_of_leaky_relu_is_below_root_two() -> None:
    assert calculate_gain("leaky_relu", 0.2) == pytest.approx(math.sqrt(2 / 1.04))
    assert f"{calculate_gain('leaky_relu', 0.2):.4f}" == "1.3868"
    assert calculate_gain("leaky_relu", 1.0) == pytest.approx(1.0)  # a line is a line


def test_gain_of_selu_is_three_quarters() -> None:
    assert calculate_gain("selu") == 0.75
    # What keeps a self-normalising network at unit variance is 1, and torch calls that "linear".
    assert root_mean_square(F.selu) == pytest.approx(1.0, abs=1e-6)
    assert calculate_gain("linear") == 1


def test_identity_has_no_gain_by_that_name() -> None:
    with pytest.raises(ValueError, match="Unsupported nonlinearity identity"):
        calculate_gain("identity")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["gelu", "silu", "elu", "mish", "softplus"])
def test_most_activations_have_no_gain(name: str) -> None:
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        calculate_gain(name)  # type: ignore[arg-type]


def test_gains_of_tanh_and_sigmoid_are_conventions() -> None:
    assert calculate_gain("tanh") == 5 / 3
    assert 1 / root_mean_square(torch.tanh) == pytest.approx(1.5925, abs=1e-4)
    assert calculate_gain("sigmoid") == 1
    assert 1 / root_mean_square(torch.sigmoid) == pytest.approx(1.8462, abs=1e-4)


def test_tanh_at_five_thirds_does_not_keep_the_scale() -> None:
    scale = 1.0
    for _ in range(100):  # layers, as wide as you like
        scale = root_mean_square(torch.tanh, 5 / 3 * scale)
    assert scale == pytest.approx(0.651, abs=1e-3)  # it settles, and not at 1


def test_relu_at_root_two_keeps_the_mean_square_and_not_the_variance() -> None:
    assert math.sqrt(2) * root_mean_square(F.relu) == pytest.approx(1.0, abs=1e-6)
    torch.manual_seed(0)
    assert float((math.sqrt(2) * torch.randn(1_000_000).relu()).var()) == pytest.approx(
        1 - 1 / math.pi, abs=5e-3
    )


def test_gain_of_relu_belongs_to_kaiming_where_a_layer_is_not_square() -> None:
    torch.manual_seed(0)
    narrow, wide = nn.Linear(1000, 3000, bias=False), nn.Linear(1000, 3000, bias=False)
    nn.init.xavier_uniform_(narrow.weight, calculate_gain("relu"))
    nn.init.kaiming_uniform_(wide.weight, nonlinearity="relu")
    x = math.sqrt(2) * torch.randn(100, 1000).relu()  # mean square 1
    with torch.no_grad():
        # Xavier divides by the mean of both fans: half of what 1000 → 3000 needs.
        assert float((narrow(x).relu() ** 2).mean()) == pytest.approx(0.5, abs=0.03)
        assert float((wide(x).relu() ** 2).mean()) == pytest.approx(1.0, abs=0.06)


def test_xavier_refuses_a_layer_whose_weight_is_a_vector() -> None:
    with pytest.raises(ValueError, match="Fan in and fan out can not be computed"):
        nn.init.xavier_uniform_(nn.BatchNorm2d(3).weight, calculate_gain("relu"))


# Forward hooks ----------------------------------------------------------------------------------


def test_forward_hooks_modify_outputs() -> None:
    layer, x = nn.Linear(3, 2), torch.ones(1, 3)
    plain = layer(x)
    layer.register_forward_hook(lambda module, args, output: output * 2)
    assert torch.equal(layer(x), plain * 2)


def test_whatever_a_forward_hook_returns_is_the_output() -> None:
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(lambda module, args, output: args is None)  # not None: False
    assert layer(torch.ones(1, 3)) is False


def test_a_pre_hook_may_return_nothing() -> None:
    layer, x, seen = nn.Linear(3, 2), torch.ones(1, 3), []
    plain = layer(x)
    layer.register_forward_pre_hook(lambda module, args: seen.append(args))
    assert torch.equal(layer(x), plain)
    assert seen == [(x,)]


def test_keywords_are_seen_only_with_kwargs() -> None:
    layer, x, plain, full = nn.Linear(3, 2), torch.ones(1, 3), [], []
    layer.register_forward_pre_hook(lambda module, args: plain.append(args))
    layer.register_forward_pre_hook(
        lambda module, args, kwargs: full.append(kwargs), with_kwargs=True
    )
    layer(input=x)
    assert plain == [()]
    assert full == [{"input": x}]


def test_a_forward_hook_runs_after_the_forward_and_may_see_a_changed_input() -> None:
    seen = {}
    relu = nn.ReLU(inplace=True)
    relu.register_forward_pre_hook(lambda module, args: seen.update(before=args[0].clone()))
    relu.register_forward_hook(lambda module, args, output: seen.update(after=args[0].clone()))
    relu(torch.tensor([-1.0, 1.0]))
    assert seen["before"].tolist() == [-1.0, 1.0]
    assert seen["after"].tolist() == [0.0, 1.0]


def test_forward_hooks_run_in_training_and_in_evaluation() -> None:
    net, seen = small_net(), []
    net.register_forward_hook(lambda module, args, output: seen.append(module.training))
    net.train()(torch.ones(1, 4))
    net.eval()
    with torch.no_grad():
        net(torch.ones(1, 4))
    assert seen == [True, False]


def test_a_forward_hook_is_not_called_in_backward() -> None:
    layer, seen = nn.Linear(3, 2), []
    layer.register_forward_hook(lambda module, args, output: seen.append("forward"))
    out = layer(torch.ones(1, 3)).sum()
    assert seen == ["forward"]
    out.backward()
    assert seen == ["forward"]


def test_a_forward_hook_runs_twice_under_checkpointing() -> None:
    layer, seen = nn.Linear(3, 3), []
    layer.register_forward_hook(lambda module, args, output: seen.append("forward"))
    block = nn.Sequential(layer, nn.Tanh())
    checkpoint(block, torch.ones(1, 3), use_reentrant=False).sum().backward()
    assert seen == ["forward", "forward"]


def test_calling_forward_directly_passes_the_hooks_by() -> None:
    layer, seen = nn.Linear(3, 2), []
    layer.register_forward_hook(lambda module, args, output: seen.append("forward"))
    layer.forward(torch.ones(1, 3))
    assert seen == []


def test_a_module_may_be_used_without_being_called() -> None:
    attention, seen = nn.MultiheadAttention(4, 2), []
    attention.out_proj.register_forward_hook(lambda module, args, output: seen.append("out_proj"))
    x = torch.ones(3, 1, 4)
    attention(x, x, x)
    assert seen == []


def test_a_function_has_no_hooks() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2 = nn.Linear(10, 5), nn.Linear(5, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc2(torch.relu(self.fc1(x)))

    net, seen = Net(), []
    for name, module in net.named_modules():
        module.register_forward_hook(lambda module, args, output, name=name: seen.append(name))
    net(torch.ones(1, 10))
    assert seen == ["fc1", "fc2", ""]  # and nothing for torch.relu


def test_a_shared_module_has_one_name_and_many_calls() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc1, self.fc2, self.relu = nn.Linear(4, 4), nn.Linear(4, 4), nn.ReLU()

        def forward(self, x: Tensor) -> Tensor:
            return self.relu(self.fc2(self.relu(self.fc1(x))))

    net, kept = Net(), collections.defaultdict(list)
    for name, module in net.named_modules():
        module.register_forward_hook(lambda module, args, out, name=name: kept[name].append(out))
    net(torch.ones(1, 4))
    assert len(kept["relu"]) == 2  # activations[name] = ... would have kept the last alone


def test_a_detached_output_is_written_over_by_an_in_place_layer() -> None:
    net, kept = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)), {}
    net[0].weight.data = -torch.eye(2)
    net[0].bias.data.zero_()
    net[0].register_forward_hook(lambda module, args, out: kept.update(shared=out.detach()))
    net[0].register_forward_hook(lambda module, args, out: kept.update(own=out.detach().clone()))
    net(torch.ones(1, 2))
    assert kept["shared"].tolist() == [[0.0, 0.0]]
    assert kept["own"].tolist() == [[-1.0, -1.0]]


def test_an_output_need_not_be_a_tensor() -> None:
    lstm = nn.LSTM(3, 3)
    lstm.register_forward_hook(lambda module, args, output: print(output.shape))
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'shape'"):
        lstm(torch.ones(1, 1, 3))


# Registering ------------------------------------------------------------------------------------


def test_the_names_of_the_registering_methods() -> None:
    assert not hasattr(nn.Module, "register_full_backwards_hook")
    assert hasattr(nn.Module, "register_full_backward_hook")
    assert not hasattr(nn.Module, "register_forward_prehook")
    assert hasattr(nn.Module, "register_forward_pre_hook")


def test_there_are_more_than_three_kinds() -> None:
    assert hasattr(nn.Module, "register_full_backward_pre_hook")
    assert hasattr(nn.Module, "register_state_dict_post_hook")
    assert hasattr(Tensor, "register_hook")
    assert hasattr(Tensor, "register_post_accumulate_grad_hook")
    assert hasattr(torch.optim.Optimizer, "register_step_post_hook")
    assert hasattr(torch.autograd.graph.Node, "register_prehook")


def test_order_is_that_of_registration_except_for_prepend_and_global_hooks() -> None:
    layer, seen = nn.Linear(3, 2), []
    layer.register_forward_hook(lambda *_: seen.append("first"))
    layer.register_forward_hook(lambda *_: seen.append("second"))
    layer.register_forward_hook(lambda *_: seen.append("prepended"), prepend=True)
    on_all = nn.modules.module.register_module_forward_hook(lambda *_: seen.append("global"))
    try:
        layer(torch.ones(1, 3))
    finally:
        on_all.remove()
    assert seen == ["global", "prepended", "first", "second"]


def test_registering_returns_the_handle_and_removing_twice_is_fine() -> None:
    layer, seen = nn.Linear(3, 2), []
    handle = layer.register_forward_hook(lambda *_: seen.append("hook"))
    handle.remove()
    handle.remove()
    layer(torch.ones(1, 3))
    assert seen == []


def test_one_handle_for_many_hooks_removes_the_last_alone() -> None:
    net, seen = small_net(), []
    for module in net.modules():
        if isinstance(module, nn.Linear):
            handle = module.register_forward_hook(lambda *_: seen.append("hook"))
    handle.remove()
    net(torch.ones(1, 4))
    assert seen == ["hook"]


def test_a_copy_of_a_module_keeps_its_hooks() -> None:
    layer, seen = nn.Linear(3, 2), []
    handle = layer.register_forward_hook(lambda *_: seen.append("hook"))
    copied = copy.deepcopy(layer)
    handle.remove()
    copied(torch.ones(1, 3))
    assert seen == ["hook"]


# Backward hooks of modules ----------------------------------------------------------------------


def test_the_old_backward_hook_is_still_there() -> None:
    layer, seen = nn.Linear(3, 2), []
    layer.register_backward_hook(lambda module, grad_input, grad_output: seen.append("hook"))
    with pytest.warns(FutureWarning, match="Please use register_full_backward_hook"):
        out = layer(torch.ones(1, 3, requires_grad=True))
    out.sum().backward()
    assert seen == ["hook"]


def test_the_old_backward_hook_sees_the_last_operation_alone() -> None:
    net, seen = nn.Sequential(nn.Linear(3, 5), nn.Tanh()), {}
    net.register_backward_hook(lambda module, grad_input, grad_output: seen.update(old=grad_input))
    with pytest.warns(FutureWarning, match="non-full backward hook"):
        out = net(torch.ones(1, 3, requires_grad=True))
    out.sum().backward()
    assert [tuple(grad.shape) for grad in seen["old"]] == [(1, 5)]  # of Tanh's input, not of net's


def test_old_and_full_backward_hooks_do_not_mix() -> None:
    layer = nn.Linear(3, 2)
    layer.register_backward_hook(lambda *_: None).remove()
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        layer.register_full_backward_hook(lambda *_: None)


def test_grad_input_of_the_old_hook_mixes_in_the_parameters() -> None:
    layer, seen = nn.Linear(3, 2), {}
    layer.register_backward_hook(lambda module, grad_input, grad_output: seen.update(g=grad_input))
    with pytest.warns(FutureWarning, match="This hook will be missing some grad_input"):
        out = layer(torch.ones(4, 3, requires_grad=True))
    out.sum().backward()
    # Bias, input, weight transposed: the order of addmm's arguments, not (x, w, b).
    assert [tuple(grad.shape) for grad in seen["g"]] == [(2,), (4, 3), (3, 2)]


def test_grad_input_of_the_full_hook_is_that_of_the_input_alone() -> None:
    layer, seen = nn.Linear(3, 2), {}
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: seen.update(g=grad_in))
    layer(torch.ones(4, 3, requires_grad=True)).sum().backward()
    assert [tuple(grad.shape) for grad in seen["g"]] == [(4, 3)]


def test_a_linear_fires_once() -> None:
    layer, forward, backward = nn.Linear(3, 2), [], []
    layer.register_forward_hook(lambda module, args, output: forward.append(args))
    layer.register_full_backward_hook(lambda *_: backward.append("backward"))
    x = torch.ones(4, 3, requires_grad=True)
    layer(x).sum().backward()
    assert len(forward) == len(backward) == 1
    assert len(forward[0]) == 1  # the tuple holds the arguments of the one call
    assert type(F.linear(x, layer.weight, layer.bias).grad_fn).__name__ == "AddmmBackward0"


def test_grad_output_comes_in_and_grad_input_goes_out() -> None:
    layer, seen = nn.Linear(3, 2), {}

    def hook(module, grad_input, grad_output) -> None:
        seen.update(input=grad_input[0], output=grad_output[0])

    layer.register_full_backward_hook(hook)
    x = torch.randn(4, 3, requires_grad=True)
    out = layer(x)
    of_out, of_x = torch.autograd.grad(out.square().sum(), [out, x], retain_graph=True)
    out.square().sum().backward()
    assert torch.equal(seen["output"], of_out)  # of the loss, with respect to the output
    assert torch.equal(seen["input"], of_x)  # of the loss, with respect to the input


def test_full_hooks_are_not_ambiguous_whatever_a_module_does_inside() -> None:
    class Many(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 3)

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return (self.fc(self.fc(x)) * y + x).tanh()

    many, seen = Many(), {}
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(2, 3, requires_grad=True)
    expected = torch.autograd.grad(many(x, y).sum(), [x, y])
    many.register_full_backward_hook(lambda module, grad_in, grad_out: seen.update(g=grad_in))
    many(x, y).sum().backward()
    assert all(torch.equal(*pair) for pair in zip(seen["g"], expected, strict=True))


def test_the_first_layer_has_no_grad_input() -> None:
    layer, seen = nn.Linear(3, 2), []
    handle = layer.register_full_backward_hook(
        lambda module, grad_in, grad_out: seen.append(grad_in)
    )
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        layer(torch.ones(1, 3)).sum().backward()  # a batch of data requires no gradient
    assert seen == [(None,)]

    handle.remove()
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: (torch.ones(1, 3),))
    with (
        pytest.warns(UserWarning, match="no inputs require gradients"),
        pytest.raises(RuntimeError, match="Backward hook for Modules where no input requires"),
    ):
        layer(torch.ones(1, 3)).sum().backward()


def test_a_full_backward_hook_and_an_in_place_layer_do_not_mix() -> None:
    relu, seen = nn.ReLU(inplace=True), []
    handle = relu.register_full_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        relu(nn.Linear(3, 3)(torch.ones(1, 3)))
    handle.remove()
    out = relu(nn.Linear(3, 3)(torch.ones(1, 3)))
    out.register_hook(lambda grad: seen.append(tuple(grad.shape)))
    out.sum().backward()
    assert seen == [(1, 3)]


def clipping_hook(module, grad_input, grad_output, max_norm: float = 1.0):
    """The hook of the notes: it writes to what it was given."""
    norm = sum(grad.data.norm(2).item() ** 2 for grad in grad_output if grad is not None) ** 0.5
    if max_norm / (norm + 1e-6) < 1:
        for grad in grad_output:
            if grad is not None:
                grad.data.mul_(max_norm / (norm + 1e-6))
    return grad_input


def clipped_net(*, hook: bool) -> nn.Sequential:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2), nn.Tanh())
    if hook:
        net[2].register_full_backward_hook(clipping_hook)
    (1000 * net(torch.ones(3, 4))).sum().backward()
    return net


def test_the_clipping_hook_comes_too_late() -> None:
    plain, hooked = clipped_net(hook=False), clipped_net(hook=True)
    assert plain[2].weight.grad.norm() > 1000
    # Both what the layer gives its parameters and what it passes back are computed by then.
    for one, two in zip(plain.parameters(), hooked.parameters(), strict=True):
        assert torch.equal(one.grad, two.grad)


def test_the_clipping_hook_fails_on_a_gradient_that_is_expanded() -> None:
    layer = nn.Linear(3, 2)
    layer.register_full_backward_hook(clipping_hook)
    loss = 1000 * layer(torch.ones(1, 3, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        loss.backward()


def test_a_norm_per_layer_is_not_the_norm_of_all_gradients() -> None:
    net = clipped_net(hook=False)
    each = [parameter.grad.norm() for parameter in net.parameters()]
    total = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
    assert torch.allclose(total, torch.stack(each).norm())
    after = torch.stack([parameter.grad.norm() for parameter in net.parameters()])
    assert after.norm().item() == pytest.approx(1.0, abs=1e-3)  # together, directions kept


def test_writing_to_grad_output_corrupts_a_sum_beside_it() -> None:
    layer, x = nn.Linear(1, 1, bias=False), torch.ones(1, 1, requires_grad=True)
    layer.weight.data.fill_(1)

    def write(module, grad_input, grad_output) -> None:
        grad_output[0].mul_(100)

    layer.register_full_backward_hook(write)
    h = x * 1
    (h + layer(h)).sum().backward()  # d/dx is 2
    assert x.grad.item() == 101


def test_a_pre_hook_of_backward_clips_what_a_module_uses() -> None:
    layer, x = nn.Linear(3, 2), torch.ones(1, 3, requires_grad=True)

    def clip(module, grad_output):
        return tuple(grad / grad.norm().clamp(min=1) for grad in grad_output)

    layer.register_full_backward_pre_hook(clip)
    (1000 * layer(x).sum()).backward()
    assert layer.bias.grad.norm().item() == pytest.approx(1.0)


# Hooks on tensors and nodes ---------------------------------------------------------------------


def test_hooks_see_gradients() -> None:
    layer, seen = nn.Linear(3, 2), []
    layer.weight.register_hook(lambda grad: seen.append(("weight", tuple(grad.shape))))
    layer.register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.append(("output", tuple(grad_output[0].shape)))
    )
    layer(torch.ones(4, 3, requires_grad=True)).sum().backward()
    assert sorted(seen) == [("output", (4, 2)), ("weight", (2, 3))]


def test_a_tensor_hook_sees_one_backward_and_grad_the_sum_of_all() -> None:
    weight, seen = torch.ones(1, requires_grad=True), []
    weight.register_hook(lambda grad: seen.append(grad.item()))
    (weight * 3).backward()
    (weight * 3).backward()
    assert seen == [3.0, 3.0]
    assert weight.grad.item() == 6.0


def test_a_tensor_inside_the_graph_keeps_no_grad() -> None:
    x, seen = torch.ones(1, requires_grad=True), []
    y = x * 2
    y.register_hook(lambda grad: seen.append(grad.item()))
    (y * 3).backward()
    assert seen == [3.0]
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert y.grad is None
    z = x * 2
    z.retain_grad()
    (z * 3).backward()
    assert z.grad.item() == 3.0


def test_writing_to_grad_in_a_tensor_hook_corrupts_what_shares_it() -> None:
    x = torch.ones(1, requires_grad=True)
    h = x * 1
    m = h * 1
    m.register_hook(lambda grad: grad.mul_(100) and None)
    (h + m).sum().backward()
    assert x.grad.item() == 200  # a returned gradient gives 101

    x.grad = None
    h = x * 1
    m = h * 1
    m.register_hook(lambda grad: grad * 100)
    (h + m).sum().backward()
    assert x.grad.item() == 101


def test_a_tensor_without_gradient_takes_no_hook() -> None:
    layer = nn.Linear(3, 2)
    with (
        torch.no_grad(),
        pytest.raises(RuntimeError, match="doesn't require gradient"),
    ):
        layer(torch.ones(1, 3)).register_hook(lambda grad: grad.clamp(min=0))


def test_a_hook_on_a_view_is_lost_when_the_next_layer_writes_in_place() -> None:
    def firings(layer: nn.Module) -> int:
        relu, seen = nn.ReLU(inplace=True), []
        out = layer(nn.Linear(3, 3)(torch.ones(8, 3)))
        assert out.grad_fn is not None
        out.register_hook(seen.append)
        relu(out).sum().backward()
        return len(seen)

    assert firings(nn.Linear(3, 3)) == 1
    assert firings(nn.Unflatten(0, (2, 4))) == 0  # it returns a view


def test_a_parameter_hook_belongs_to_the_tensor_and_not_to_the_name() -> None:
    layer, seen = nn.Linear(3, 2), []
    layer.bias.register_hook(seen.append)
    layer.load_state_dict(nn.Linear(3, 2).state_dict(), assign=True)
    layer(torch.ones(1, 3)).sum().backward()
    assert seen == []


def test_a_node_hook_may_return_nothing() -> None:
    x, seen = torch.ones(1, requires_grad=True), []
    y = x * 3
    y.grad_fn.register_hook(
        lambda grad_inputs, grad_outputs: seen.append((grad_inputs, grad_outputs))
    )
    y.backward()
    assert x.grad.item() == 3.0
    ((grad_inputs, grad_outputs),) = seen
    assert (grad_inputs[0].item(), grad_outputs[0].item()) == (3.0, 1.0)


def test_a_node_hook_takes_two_arguments() -> None:
    y = torch.ones(1, requires_grad=True) * 3
    y.grad_fn.register_hook(lambda grad_inputs: grad_inputs)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        y.backward()


def test_a_node_of_the_graph_has_no_forward_hook() -> None:
    y = torch.ones(1, requires_grad=True) + 1
    assert type(y.grad_fn).__name__ == "AddBackward0"
    registering = {name for name in dir(y.grad_fn) if name.startswith("register_")}
    assert registering == {"register_hook", "register_prehook"}  # after and before its backward


def test_a_gradient_hook_must_keep_the_type_of_the_gradient() -> None:
    bias = torch.ones(5, dtype=torch.float64, requires_grad=True)
    bias.register_hook(lambda grad: torch.zeros(grad.shape))  # float32, and on the CPU
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        (bias * 2).sum().backward()
    other = torch.ones(5, dtype=torch.float64, requires_grad=True)
    other.register_hook(torch.zeros_like)
    (other * 2).sum().backward()
    assert other.grad.tolist() == [0.0] * 5


# The example with the clamp ---------------------------------------------------------------------


class Clamped(nn.Module):
    """The network of the notes, with its hook in the forward."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 10, 2, stride=2)
        self.relu = nn.ReLU()
        self.flatten = lambda x: x.view(-1)
        self.fc1 = nn.Linear(160, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.conv(x))
        x.register_hook(lambda grad: torch.clamp(grad, min=0))
        return self.fc1(self.flatten(x))


def test_a_forward_that_registers_hooks_fails_without_gradient() -> None:
    with torch.no_grad(), pytest.raises(RuntimeError, match="doesn't require gradient"):
        Clamped()(torch.randn(1, 3, 8, 8))


def test_view_of_minus_one_takes_a_batch_of_one_alone() -> None:
    net = Clamped()
    assert net(torch.randn(1, 3, 8, 8)).shape == (5,)
    with pytest.raises(RuntimeError, match=r"size mismatch|cannot be multiplied"):
        net(torch.randn(2, 3, 8, 8))


def test_a_lambda_in_a_module_cannot_be_pickled() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(Clamped())


def test_clamping_what_reaches_a_convolution_leaves_its_weights_negative_gradients() -> None:
    torch.manual_seed(0)
    net, seen = Clamped(), []
    net.conv.register_forward_hook(
        lambda module, args, out: out.register_hook(seen.append) and None
    )
    (1 - net(torch.randn(1, 3, 8, 8))).mean().backward()
    assert bool((seen[0] >= 0).all())
    assert bool((net.conv.weight.grad < 0).any())


def test_a_zero_gradient_is_not_a_zero_bias() -> None:
    net = Clamped()
    net.fc1.bias.register_hook(torch.zeros_like)
    (1 - net(torch.randn(1, 3, 8, 8))).mean().backward()
    assert net.fc1.bias.grad.tolist() == [0.0] * 5
    assert bool((net.fc1.bias != 0).all())


# Modules and parameters -------------------------------------------------------------------------


def test_parameters_are_kept_in_a_plain_dict() -> None:
    layer = nn.Linear(3, 2)
    assert type(layer._parameters) is type(layer._modules) is type(layer._buffers) is dict
    assert type(layer._forward_hooks) is collections.OrderedDict  # prepend= needs it


def test_a_parameter_is_a_tensor_and_a_layer_is_a_module() -> None:
    assert issubclass(nn.Parameter, Tensor)
    assert not issubclass(nn.Linear, nn.Parameter)
    assert issubclass(nn.Linear, nn.Module)


def test_a_learnable_module_is_registered_as_a_module() -> None:
    net = nn.Module()
    net.fc = nn.Linear(3, 2)
    net.scale = nn.Parameter(torch.ones(1))
    assert list(net._parameters) == ["scale"]
    assert list(net._modules) == ["fc"]
    assert [name for name, _ in net.named_parameters()] == ["scale", "fc.weight", "fc.bias"]


def test_setattr_keeps_parameters_out_of_the_instance() -> None:
    layer = nn.Linear(3, 2)
    assert "weight" not in vars(layer)  # object.__setattr__ was not called: __getattr__ finds it
    assert layer.weight is layer._parameters["weight"]


def test_tensors_and_lists_are_not_registered() -> None:
    net = nn.Module()
    net.scale = torch.ones(1, requires_grad=True)
    net.layers = [nn.Linear(3, 2)]
    assert list(net.parameters()) == []
    net.more = nn.ModuleList([nn.Linear(3, 2)])
    assert len(list(net.parameters())) == 2


def test_a_tied_weight_is_listed_once() -> None:
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    net[1].weight = net[0].weight
    assert [name for name, _ in net.named_parameters()] == ["0.weight"]
    both = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert both == ["0.weight", "1.weight"]


def test_super_with_and_without_arguments() -> None:
    class Long(nn.Module):
        def __init__(self) -> None:
            super(Long, self).__init__()  # noqa: UP008 - the spelling that is meant

    class Short(nn.Module):
        def __init__(self) -> None:
            super().__init__()

    assert vars(Long()).keys() == vars(Short()).keys()


def test_tabs_and_spaces_in_one_block_do_not_compile() -> None:
    source = "class Net:\n\tdef __init__(self):\n\t\tself.a = 1\n        self.b = 2\n"
    with pytest.raises(TabError):
        compile(source, "net.py", "exec")


def test_functional_is_not_named_f_by_importing_nn() -> None:
    names: dict[str, object] = {}
    exec("import torch.nn as nn", names)
    assert "F" not in names
    assert F is nn.functional


def test_a_view_of_minus_one_hides_a_wrong_size() -> None:
    maps = torch.zeros(2, 64, 14, 14)  # of two images of 56×56
    assert maps.view(-1, 64 * 7 * 7).shape == (8, 64 * 7 * 7)  # eight rows: no error, no sense
    assert maps.flatten(1).shape == (2, 64 * 14 * 14)  # the Linear that follows would refuse


def test_a_loop_without_a_loss_does_not_train() -> None:
    net = small_net()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        net(torch.ones(3, 4)).backward()
    F.cross_entropy(net(torch.ones(3, 4)), torch.tensor([0, 1, 0])).backward()


def test_zero_grad_after_the_step_is_right_too() -> None:
    def train(*, first: bool) -> list[float]:
        net, x = small_net(), torch.ones(3, 4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            if first:
                optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
            if not first:
                optimizer.zero_grad()
        return nn.utils.parameters_to_vector(net.parameters()).tolist()

    assert train(first=True) == train(first=False)


def test_torch_has_get_parameter_too_and_it_knows_no_buffers() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    assert net.get_parameter("0.weight") is net[0].weight
    with pytest.raises(AttributeError, match=r"is not an nn\.Parameter"):
        net.get_parameter("1.running_mean")


# Monitors ---------------------------------------------------------------------------------------


def test_zeros_in_a_batch_are_not_dead_units() -> None:
    torch.manual_seed(0)
    layer, alive = nn.Linear(8, 32), torch.zeros(32, dtype=torch.bool)
    shares = []
    with torch.no_grad():
        for _ in range(50):
            out = layer(torch.randn(16, 8)).relu()
            shares.append((out == 0).float().mean().item())
            alive |= (out > 0).any(0)
    assert 0.4 < sum(shares) / len(shares) < 0.6  # "dead ratio": half
    assert bool(alive.all())  # dead units: none


def test_the_deviation_of_one_value_is_not_a_number() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        std = nn.Linear(3, 1)(torch.ones(1, 3)).std().item()
    assert math.isnan(std)


def test_a_loss_of_detached_activations_trains_nothing() -> None:
    layer, kept = nn.Linear(3, 2), {}
    layer.register_forward_hook(lambda module, args, out: kept.update(cut=out.detach(), whole=out))
    layer(torch.ones(1, 3))
    assert not kept["cut"].abs().mean().requires_grad
    kept["whole"].abs().mean().backward()
    assert layer.weight.grad is not None


def test_a_kept_output_keeps_its_graph() -> None:
    layer, kept = nn.Linear(3, 2), {}
    layer.register_forward_hook(lambda module, args, out: kept.update(cut=out.detach(), whole=out))
    layer(torch.ones(1, 3))
    assert kept["whole"].grad_fn is not None
    assert kept["cut"].grad_fn is None


# Evaluation and devices -------------------------------------------------------------------------


def test_no_grad_does_not_switch_to_evaluation() -> None:
    net, x = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)), torch.randn(64, 3) + 5
    with torch.no_grad():
        out = net(x)
    assert net.training
    assert bool((out == 0).any())  # dropout went on dropping
    assert bool((net[0].running_mean != 0).all())  # and the statistics went on running
    net.eval()
    with torch.no_grad():
        assert torch.equal(net(x), net(x))


def test_evaluation_mode_does_not_switch_gradients_off() -> None:
    assert small_net().eval()(torch.ones(1, 4)).requires_grad


def test_gradients_are_wanted_outside_training_too() -> None:
    net, x = small_net().eval(), torch.ones(1, 4, requires_grad=True)
    (saliency,) = torch.autograd.grad(net(x)[0, 0], x)
    assert saliency.shape == x.shape


def test_a_forward_computes_no_gradients() -> None:
    net = small_net()
    out = net(torch.ones(1, 4))
    assert out.grad_fn is not None  # it notes how they could be computed
    assert all(parameter.grad is None for parameter in net.parameters())


def test_inference_mode_does_more_than_no_grad() -> None:
    layer = nn.Linear(3, 2)
    with torch.inference_mode():
        out = layer(torch.ones(1, 3))
    assert out.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        out * layer.weight.sum()


def test_to_returns_another_tensor_and_the_same_module() -> None:
    tensor = torch.randn(3, 3)
    moved = tensor.to("meta")
    assert (tensor.device.type, moved.device.type) == ("cpu", "meta")
    assert tensor.to("cpu") is tensor  # nothing to move
    layer = nn.Linear(3, 2)
    assert layer.to("meta") is layer
    assert layer.weight.device.type == "meta"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_to_cuda_fails_where_there_is_none() -> None:
    with pytest.raises((AssertionError, RuntimeError), match=r"CUDA|NVIDIA"):
        torch.randn(3, 3).to("cuda")


def test_the_device_at_hand_can_be_asked_for() -> None:
    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    assert torch.ones(2).to(device).device.type == device.type


def test_hook_and_nethook_are_no_part_of_torch() -> None:
    assert not hasattr(torch, "hook")
    assert not hasattr(torch, "nethook")
    assert not hasattr(nn, "hook")
