"""`cb.on_node`: functions on autograd nodes, against the same hooks put on by hand."""

import gc
import weakref

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import EditError, InPlaceEditError, NoSuchSiteError, PatternError, ScopeError
from tests.editing.callbacks.net import Net


def grads_of(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


def by_hand(model, x, *, pre=None, post=None, at="fc2"):
    """The gradients with plain hooks of torch on the node of a layer's output."""

    def put_on(module, args, out):
        if pre is not None:
            out.grad_fn.register_prehook(pre)
        if post is not None:
            out.grad_fn.register_hook(post)

    handle = model.get_submodule(at).register_forward_hook(put_on)
    model.zero_grad()
    model(x).square().sum().backward()
    handle.remove()
    return grads_of(model)


def test_it_sees_what_a_hook_put_on_by_hand_sees(model, cb, x):
    expected, seen = [], []
    by_hand(
        model,
        x,
        pre=lambda go: expected.append(("before", [g.clone() for g in go])),
        post=lambda gi, go: expected.append(("after", [g.clone() for g in (*gi, *go)])),
    )
    cb.on_node("fc2", before=True)(lambda go: seen.append(("before", list(go))))
    cb.on_node("fc2")(lambda gi, go: seen.append(("after", [*gi, *go])))
    with cb:
        model(x).square().sum().backward()
    assert [when for when, _ in seen] == ["before", "after"]
    for (_, one), (_, other) in zip(seen, expected, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert cb.firings == {"nodes['fc2']": 2}


def test_a_replacement_after_the_node_changes_what_flows_on(model, cb, x):
    expected = by_hand(model, x, post=lambda gi, go: tuple(g * 3 for g in gi))
    cb.on_node("fc2")(lambda gi, go: tuple(g * 3 for g in gi))
    model.zero_grad()
    with cb:
        model(x).square().sum().backward()
    assert all(map(torch.equal, grads_of(model), expected))


def test_a_replacement_before_the_node_changes_what_it_is_given(model, cb, x):
    expected = by_hand(model, x, pre=lambda go: (go[0].clamp(min=0),))
    cb.on_node("fc2", before=True)(lambda go: go[0].clamp(min=0))  # the only one, by itself
    model.zero_grad()
    with cb:
        model(x).square().sum().backward()
    assert all(map(torch.equal, grads_of(model), expected))


def test_none_in_a_tuple_leaves_that_gradient(model, cb, x):
    plain = by_hand(model, x)

    @cb.on_node("fc2")
    def only_the_bias(grad_inputs, grad_outputs):
        assert [tuple(g.shape) for g in grad_inputs] == [(3,), (5, 6), (6, 3)]
        return (grad_inputs[0] * 0, None, None)

    model.zero_grad()
    with cb:
        model(x).square().sum().backward()
    changed = grads_of(model)
    assert not changed[3].any()
    assert all(map(torch.equal, changed[:3], plain[:3]))


def test_the_site_is_named_by_parameter_or_place(model, cb, x):
    seen = []
    cb.on_node("fc*", before=True)(lambda go, place: seen.append(place))
    cb.on_node("fc*")(lambda gi, go, place: seen.append(place))
    cb.on_node("fc1")(lambda gi, go, *, site: seen.append(f"{site}!"))
    with cb:
        model(x).sum().backward()
    assert seen == ["fc2", "fc2", "fc1", "fc1", "fc1!"]


def test_order_is_that_of_registration_higher_priority_first(model, cb, x):
    seen = []
    cb.on_node("fc1")(lambda gi, go: seen.append("first"))
    cb.on_node("fc1")(lambda gi, go: seen.append("second"))
    cb.on_node("fc1", priority=1)(lambda gi, go: seen.append("important"))
    with cb:
        model(x).sum().backward()
    assert seen == ["important", "first", "second"]


def test_each_sees_what_the_one_before_returned(model, cb, x):
    seen = []
    cb.on_node("fc2", before=True)(lambda go: go[0] * 2)
    cb.on_node("fc2", before=True)(lambda go: seen.append(go[0]))
    with cb:
        model(x).sum().backward()
    assert torch.equal(seen[0], torch.full((5, 3), 2.0))


def test_nothing_is_called_after_removal_also_on_graphs_from_before(model, cb, x):
    seen = []
    cb.on_node("fc1")(lambda gi, go: seen.append(1))
    cb.attach()
    loss = model(x).sum()
    cb.remove()
    loss.backward()
    model(x).sum().backward()
    assert seen == []
    assert not nethook.audit(model)
    with cb:
        model(x).sum().backward()
        with pytest.raises(ScopeError):
            cb.on_node("fc1")(print)
    assert seen == [1]


def test_a_view_that_is_written_in_place_keeps_its_callback():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.relu = nn.Linear(4, 4), nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.fc(x))  # of a batch of sequences: a view, and written in place

    model, seen = Net(), []
    x = torch.randn(2, 3, 4)
    model(x).sum().backward()
    plain = grads_of(model)
    cb = nethook.Callbacks(model)
    cb.on_node("fc")(lambda gi, go: seen.append(go[0].shape))
    model.zero_grad()
    with cb:
        model(x).sum().backward()
    assert seen == [torch.Size([2, 3, 4])]
    assert all(map(torch.equal, grads_of(model), plain))


def test_inner_nodes_are_chosen_by_kind():
    layer, seen = nn.Linear(4, 2), []
    before = torch.randn(2, 3, 4, requires_grad=True)
    cb = nethook.Callbacks(layer)
    cb.on_node("")(lambda gi, go: seen.append(("last", len(gi), tuple(go[0].shape))))
    cb.on_node("", kind="Addmm*")(lambda gi, go: seen.append(("addmm", len(gi), go[0].shape)))
    with cb:
        layer(before * 2).sum().backward()  # the Mul is not the layer's
    assert seen == [("last", 1, (2, 3, 2)), ("addmm", 3, (6, 2))]


def test_a_kind_that_no_node_has_is_told_with_those_there_are(model, x):
    cb = nethook.Callbacks(model)
    cb.on_node("fc1", kind="Conv*")(lambda gi, go: None)
    with pytest.warns(UserWarning, match="never applied") as caught, cb:
        model(x).sum().backward()
    assert str(caught[0].message) == (
        "the edit at nodes['fc1'] was never applied: 'fc1' made no node 'Conv*'; it made "
        "AddmmBackward0, TBackward0."
    )


def test_a_callback_that_no_gradient_reached_is_told(model, x):
    cb = nethook.Callbacks(model)
    cb.on_node("fc1")(lambda gi, go: None)
    with pytest.warns(UserWarning, match="no gradient reached 'fc1'"), cb:
        model(x)


def test_what_a_module_only_passes_on_is_not_changed_for_others():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.same = nn.Identity()

        def forward(self, x):
            h = x * 1
            return h + self.same(h)

    model, x = Net(), torch.ones(1, requires_grad=True)
    cb = nethook.Callbacks(model)
    cb.on_node("same")(lambda gi, go: gi[0] * 100)
    with cb:
        model(x).sum().backward()
    assert x.grad.item() == 101

    x.grad = None
    leaf = nn.Identity()
    cb = nethook.Callbacks(leaf)
    cb.on_node("")(lambda gi, go: gi[0] * 5)
    with cb:
        leaf(x).sum().backward()
    assert x.grad.item() == 5
    x.grad = None
    leaf(x).sum().backward()
    assert x.grad.item() == 1  # nothing stays on the leaf


def test_several_outputs_of_one_node_are_one_call():
    class Halves(nn.Module):
        def forward(self, x):
            return torch.split(x * 2, 2)

    model, seen = Halves(), []
    cb = nethook.Callbacks(model)
    cb.on_node("")(lambda gi, go: seen.append([None if g is None else tuple(g.shape) for g in go]))
    with cb:
        first, _ = model(torch.ones(4, requires_grad=True))
        first.sum().backward()
    assert seen == [[(2,), None]]


@pytest.mark.parametrize(
    ("before", "result", "message"),
    [
        (
            True,
            (torch.zeros(5, 3), None),
            (
                "must return None or a tuple of 1 gradients, as many as "
                "grad_outputs of 'fc2' has; got 2 of them."
            ),
        ),
        (
            True,
            3.0,
            (
                "must return None or a tuple of 1 gradients, as many as grad_outputs of 'fc2' "
                "has; got float."
            ),
        ),
        (
            True,
            torch.zeros(5),
            (
                "returned a gradient of shape (5,), type torch.float32 on cpu as "
                "number 0 of grad_outputs of 'fc2'; it must have shape (5, 3), type torch.float32 "
                "on cpu."
            ),
        ),
        (
            False,
            (torch.zeros(3, dtype=torch.float64), None, None),
            (
                "returned a gradient of shape (3,), type torch.float64 on cpu as number 0 of "
                "grad_inputs of 'fc2'; it must have shape (3,), type torch.float32 on cpu."
            ),
        ),
        (
            False,
            (torch.zeros(3, device="meta"), None, None),
            (
                "returned a gradient of shape (3,), type torch.float32 on meta as number 0 of "
                "grad_inputs of 'fc2'; it must have shape (3,), type torch.float32 on cpu."
            ),
        ),
        (
            False,
            (1.0, None, None),
            (
                "returned a float as number 0 of grad_inputs of 'fc2'; a "
                "gradient is a tensor, or None for no change."
            ),
        ),
    ],
)
def test_a_wrong_replacement_is_refused(model, cb, x, before, result, message):
    if before:
        cb.on_node("fc2", before=True)(lambda go: result)
    else:
        cb.on_node("fc2")(lambda gi, go: result)
    with pytest.raises(EditError) as caught, cb:
        model(x).sum().backward()
    assert str(caught.value) == f"the callback at nodes['fc2'] {message}"


def test_a_gradient_that_nobody_needs_cannot_be_replaced(model, cb, x):
    cb.on_node("fc1")(lambda gi, go: (None, torch.zeros(5, 4), None))
    with pytest.raises(EditError) as caught, cb:
        model(x).sum().backward()
    assert str(caught.value) == (
        "the callback at nodes['fc1'] returned a gradient as number 1 of grad_inputs of 'fc1', "
        "where there is none because nothing needs it. Return None there."
    )


def test_writing_in_place_is_refused_and_reaches_nobody(model, cb, x):
    @cb.on_node("fc2", before=True)
    def write(grad_outputs) -> None:
        grad_outputs[0].mul_(2)

    with pytest.raises(InPlaceEditError) as caught, cb:
        model(x).sum().backward()
    assert str(caught.value) == (
        "the callback at nodes['fc2'] wrote to a gradient of 'fc2' in place and returned None. "
        "Return the new gradients instead."
    )


def test_wrong_functions_and_patterns_are_refused_at_once(model, cb):
    with pytest.raises(EditError) as caught:
        cb.on_node("fc1")(lambda a, b, c, d: None)
    assert str(caught.value) == (
        "The callback at nodes['fc1'] must take grad_inputs and grad_outputs, and may take the "
        "address of its site; got a function that requires 4 arguments. Give the others defaults."
    )
    with pytest.raises(EditError, match="A callback must be a function; got int"):
        cb.on_node("fc1")(3)
    with pytest.raises(PatternError):
        cb.on_node("fc1", kind="Addmm[")(lambda gi, go: None)
    cb.on_node("fc3")(lambda gi, go: None)
    with pytest.raises(NoSuchSiteError):
        cb.attach()
    assert not nethook.audit(model)


def test_callbacks_keep_no_graph_and_no_model_alive(x):
    model = Net()
    cb = nethook.Callbacks(model)
    cb.on_node("fc1")(lambda gi, go: None)
    with cb:
        out = model(x)
        out.sum().backward()
        saved = weakref.ref(out)
        del out
        gc.collect()
        assert saved() is None
    gone = weakref.ref(model)
    del model, cb
    gc.collect()
    assert gone() is None


def test_under_checkpointing_each_backward_is_seen_once(x):
    from torch.utils.checkpoint import checkpoint

    for reentrant in (False, True):
        model, seen = Net(), []
        cb = nethook.Callbacks(model)
        cb.on_node("fc1")(lambda gi, go, seen=seen: seen.append(1))
        with cb:
            given = x.clone().requires_grad_()
            checkpoint(model, given, use_reentrant=reentrant).sum().backward()
        assert seen == [1]


def test_penalties_and_other_callbacks_go_along(model, cb, x):
    seen = []
    cb.on_grad("fc1")(lambda grad: seen.append("grad"))
    cb.on_node("fc1", before=True)(lambda go: seen.append("before"))
    cb.on_node("fc1")(lambda gi, go: seen.append("after"))
    cb.on_param_grad("fc1.bias")(lambda grad: seen.append("param"))
    with cb:
        model(x).sum().backward()
    assert seen == ["grad", "before", "after", "param"]


def test_operations_have_nodes_too():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            h = torch.sin(self.fc(x))
            h += x
            return h.softmax(-1).view(-1)

    torch.manual_seed(0)
    model, x, seen = Net(), torch.randn(3, 4), []
    cb = nethook.Callbacks(model)
    cb.on_node("/*")(lambda gi, go, site: seen.append((site, len(gi))))
    cb.on_node("/sin", before=True)(lambda go: go[0] * 2)
    cb.on_node("**/linear", kind="Addmm*")(lambda gi, go, site: seen.append((site, len(gi))))
    model(x).square().sum().backward()
    plain = grads_of(model)
    model.zero_grad()
    with cb:
        model(x).square().sum().backward()
    assert seen == [
        ("/view#0", 1),
        ("/softmax#0", 1),
        ("/add#0", 2),
        ("/sin#0", 1),
        ("fc/linear#0", 3),
    ]
    assert all(
        torch.equal(one, 2 * other) for one, other in zip(grads_of(model), plain, strict=True)
    )


def test_an_operation_that_never_runs_is_told(model, x):
    cb = nethook.Callbacks(model)
    cb.on_node("/gelu")(lambda gi, go: None)
    with pytest.warns(UserWarning, match=r"never applied: no such operation has run"), cb:
        model(x).sum().backward()
