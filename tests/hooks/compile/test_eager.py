"""Compiled models run eagerly inside a scope, and as compiled after it."""

import gc
import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import nethook
from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import (
    WhenCompiling,
    around_compiled_call,
    check_hooks_in_graphs,
    run_eagerly_where_compiled,
)
from nethook.hooks.hook import Owner
from tests.hooks.common import net

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Counting:
    """A backend that counts how often compiled code runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, graph, _):
        def run(*args):
            self.runs += 1
            return graph.forward(*args)

        return run


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x) * 3


class Own(nn.Module):
    """A class of the user's: torch does not compile its own ones by `.compile()`."""

    def __init__(self) -> None:
        super().__init__()
        self.body = Body()

    def forward(self, x):
        return self.body(x)


@pytest.fixture
def backend():
    torch._dynamo.reset()
    yield Counting()
    assert stance() == "default"
    torch._dynamo.reset()


def stance() -> str:
    from torch._dynamo.eval_frame import _stance

    return _stance.stance


def attached(model: nn.Module) -> Attachment:
    hooks = Attachment(Owner("nethook.test"))
    run_eagerly_where_compiled(Tree(model), hooks)
    return hooks


def test_fact_a_hook_that_comes_after_compiling_is_passed_by(backend):
    model, seen = net(), []
    compiled = torch.compile(model, backend=backend)
    compiled(torch.ones(1, 4))
    model[0].register_forward_hook(lambda *_: seen.append(1))
    compiled(torch.ones(1, 4))
    assert seen == []


@pytest.mark.parametrize("way", ["wrapper", "in place", "a part"])
def test_every_way_to_compile(backend, way):
    model = called = Own()
    if way == "wrapper":
        called = torch.compile(model, backend=backend)
    else:
        (model if way == "in place" else model.body).compile(backend=backend)
    x = torch.ones(1, 4)
    expected = called(x)
    assert backend.runs == 1
    with nethook.trace(called, grads=True) as tape:
        assert torch.equal(called(x), expected)
        assert backend.runs == 1
    assert list(tape) == ["body.fc"]
    assert torch.equal(tape["body.fc"].output * 3, expected)
    called(x)
    assert backend.runs == 2


def test_a_wrapped_part(backend):
    part = torch.compile(net(), backend=backend)
    model = nn.Sequential(part, nn.ReLU())
    model(torch.ones(1, 4))
    with nethook.trace(model) as tape:
        model(torch.ones(1, 4))
    assert len(tape["0.1"].calls) == 1
    assert backend.runs == 1


def test_what_is_not_compiled_is_left_alone(backend):
    other = torch.compile(net(), backend=backend)
    hooks = attached(nn.DataParallel(net()))
    assert stance() == "default"
    other(torch.ones(1, 4))
    assert backend.runs == 1
    hooks.remove()


def test_a_compiled_model_inside_another_wrapper(backend):
    model = nn.DataParallel(torch.compile(net(), backend=backend))
    hooks = attached(model)
    assert stance() == "force_eager"
    hooks.remove()
    hooks = attached(net())
    assert stance() == "default"
    hooks.remove()


def test_wrappers_where_the_compiler_was_never_imported(monkeypatch):
    model = nn.DataParallel(net())
    monkeypatch.delitem(sys.modules, "torch._dynamo.eval_frame", raising=False)
    hooks = attached(model)
    assert "torch._dynamo.eval_frame" not in sys.modules
    hooks.remove()


def test_a_handle_may_be_removed_twice(backend):
    hooks = attached(torch.compile(net(), backend=backend))
    [handle] = hooks._handles
    handle.remove()
    with torch.compiler.set_stance("eager_on_recompile"):
        hooks.remove()
        assert stance() == "eager_on_recompile"


def test_the_stance_goes_with_the_attachment_and_only_once(backend):
    hooks = attached(torch.compile(net(), backend=backend))
    assert len(hooks) == 1
    assert stance() == "force_eager"
    hooks.remove()
    assert stance() == "default"
    with torch.compiler.set_stance("eager_on_recompile"):
        hooks.remove()
        assert stance() == "eager_on_recompile"


def test_an_exception_restores_the_stance(backend):
    model = torch.compile(net(), backend=backend)
    with pytest.raises(KeyError), nethook.trace(model):
        raise KeyError
    assert stance() == "default"


def test_a_stance_of_the_users_comes_back(backend):
    model = torch.compile(net(), backend=backend)
    with torch.compiler.set_stance("eager_on_recompile"):
        with nethook.trace(model):
            assert stance() == "force_eager"
        assert stance() == "eager_on_recompile"


@pytest.mark.parametrize("first", [0, 1])
def test_scopes_may_be_left_in_any_order(backend, first):
    model = torch.compile(net(), backend=backend)
    scopes = [attached(model), attached(model)]
    scopes.pop(first).remove()
    assert stance() == "force_eager"
    scopes.pop().remove()
    assert stance() == "default"


WAYS = {
    "the model": lambda model, **options: torch.compile(model, **options),
    "by name": lambda model, **options: torch.compile(model=model, **options),
    "a decorator": lambda model, **options: torch.compile(**options)(model),
    "in place": lambda model, **options: model.compile(**options) or model,
    "a part in place": lambda model, **options: model.body.compile(**options) or model,
    "what holds it": lambda model, **options: torch.compile(nn.Sequential(model), **options),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_compiled_inside_the_scope_runs_eagerly_in_it(backend, way):
    """Not around the hooks, in pieces; a whole graph would be refused."""
    model, x = Own(), torch.ones(1, 4)
    before = torch.compile
    with nethook.trace(model, grads=True) as tape:
        compiled = WAYS[way](model, fullgraph=True, backend=backend)
        out = compiled(x)
        out.sum().backward()
        assert stance() == "force_eager"
    assert torch.compile is before
    assert stance() == "default"
    assert backend.runs == 0
    assert torch.equal(tape["body.fc"].output * 3, out)
    assert torch.equal(tape["body.fc"].grad, torch.full((1, 2), 3.0))
    assert torch.equal(compiled(x), out)
    assert backend.runs == 1  # whole, as if there had been no scope


def test_an_edit_applies_to_what_is_compiled_inside_its_scope(backend):
    model, x = Own(), torch.ones(1, 4)
    with nethook.edit(model, outputs={"body.fc": nethook.edits.zero()}):
        compiled = torch.compile(model, fullgraph=True, backend=backend)
        assert not compiled(x).any()
    assert compiled(x).any()


def test_another_model_that_is_compiled_inside_the_scope_stays_compiled(backend):
    model, other, x = Own(), Own(), torch.ones(1, 4)
    with nethook.trace(model):
        compiled = torch.compile(other, fullgraph=True, backend=backend)
        function = torch.compile(lambda x: x + 1, fullgraph=True, backend=backend)
        assert stance() == "default"
        compiled(x), function(x)
        assert backend.runs == 2


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_scopes_each_lets_it_run_eagerly(backend, first):
    model, x = Own(), torch.ones(1, 4)
    before = torch.compile
    scopes = [nethook.trace(model), nethook.trace(model)]
    tapes = [scope.__enter__() for scope in scopes]
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    compiled(x)
    scopes[first].__exit__(None, None, None)
    compiled(x)
    assert stance() == "force_eager"
    scopes[1 - first].__exit__(None, None, None)
    assert torch.compile is before
    assert [len(tape["body.fc"].calls) for tape in tapes] == [1 + first, 2 - first]
    assert backend.runs == 0


def test_what_is_compiled_when_the_scope_is_gone_is_left_alone(backend):
    model = Own()
    hooks = attached(model)
    kept = torch.compile  # somebody may have taken it while the scope was open
    hooks.remove()
    kept(model, backend=backend)(torch.ones(1, 4))
    assert stance() == "default"
    assert backend.runs == 1


def test_hooks_without_a_block_leave_torch_compile_alone():
    """They may never be taken off: a `Trace` of the classic kind that nobody keeps stays on."""
    hooks, before = Attachment(Owner("nethook.test")), torch.compile
    run_eagerly_where_compiled(Tree(net()), hooks, in_block=False)
    assert torch.compile is before
    assert len(hooks) == 0
    with nethook.classic.Trace(Own(), "body"):
        assert torch.compile is before


def test_audit_does_not_list_what_stands_around_torch_compile():
    model = Own()
    with nethook.trace(model):
        kinds = {info.kind for info in nethook.audit(model)}
    assert "forward" in kinds
    assert "function" not in kinds


def test_nothing_of_the_compiler_is_imported_where_nothing_is_compiled():
    code = (
        "import sys, torch, nethook\n"
        "model = torch.nn.Linear(2, 2)\n"
        "with nethook.trace(model): model(torch.ones(1, 2))\n"
        "sys.exit('torch._dynamo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_torch_does_not_warn_of_hooks_on_all_modules_that_are_ours():
    # A fresh process: the compiler is imported inside the scope, by the first torch.compile. A
    # fused encoder is watched through a hook on all modules, and so are operations.
    code = (
        "import nethook, torch, sys; from torch import nn\n"
        "encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()\n"
        "with torch.no_grad(), nethook.trace(encoder):\n"
        "    assert 'torch._dynamo' not in sys.modules\n"
        "    torch.compile(encoder, backend='eager')(torch.ones(1, 3, 8))\n"
        "other = nn.ReLU()\n"
        "with torch.no_grad(), nethook.trace(other, '/relu'):\n"
        "    other(torch.ones(1))\n"
        "    torch.compile(encoder, backend='eager')(torch.ones(1, 3, 8))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error:Using `torch.compile:UserWarning", "-c", code],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_operations_of_a_compiled_model_are_seen(backend):
    # Also without the warning of torch's about global hooks, which would be an error here.
    compiled, x = torch.compile(Own(), backend=backend), torch.randn(2, 4)
    expected = compiled(x)
    runs = backend.runs
    with nethook.trace(compiled, "**/*") as tape:
        seen = compiled(x)
    assert list(tape) == ["body.fc/linear#0", "body/mul#0"]
    assert torch.equal(seen, expected)
    assert torch.equal(tape["body/mul"].output, expected)
    assert backend.runs == runs  # eagerly
    before = list(warnings.filters)
    with nethook.edit(compiled, outputs={"body/mul": nethook.edits.zero()}):
        assert warnings.filters == before  # another filter would have warnings shown again
        assert not compiled(x).any()
    assert warnings.filters == before
    assert torch.equal(compiled(x), expected)


def test_a_compiled_part_that_is_no_module_runs_as_ever_while_operations_are_seen(backend):
    part = torch.compile(lambda x: torch.relu(x) * 2, backend=backend)

    class Partly(nn.Module):
        def forward(self, x):
            return part(x.exp()).sin()

    model, x = Partly(), torch.randn(2, 4)
    for _ in range(2):  # compiled inside the scope, and before it
        with nethook.trace(model, "**/*") as tape:
            seen = model(x)
        assert torch.equal(seen, (torch.relu(x.exp()) * 2).sin())
        assert {"/exp#0", "/sin#0"} <= set(tape)
        assert torch.equal(model(x), seen)


# torch warns itself while it looks through the hooks, and fails where that is an error.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gradients_of_a_model_that_is_compiled_inside_the_scope(backend):
    model, x = net(), torch.randn(2, 4)
    with nethook.trace(model, grads=True) as expected:
        model(x).sum().backward()
    compiled = torch.compile(model, backend=backend)  # and not called before the scope
    with nethook.trace(model, grads=True) as tape:
        compiled(x).sum().backward()
    assert list(tape) == list(expected)
    for address in tape:
        assert torch.equal(tape[address].grad, expected[address].grad)


def compiled_whole(function, backend="eager"):
    return torch.compile(function, backend=backend, fullgraph=True)


@pytest.mark.parametrize("first", [0, 1])
def test_torch_does_not_warn_that_a_scope_runs_a_whole_graph_eagerly(backend, first):
    """It would on 2.12, where it says so once; after the scopes it may."""
    torch._dynamo.reset()  # it may have said so before
    model, x = Own(), torch.ones(1, 4)
    compiled = compiled_whole(model, backend)
    scopes = [nethook.trace(compiled), nethook.trace(compiled)]
    for scope in scopes:
        scope.__enter__()
    compiled(x)
    scopes[first].__exit__(None, None, None)
    compiled(x)
    scopes[1 - first].__exit__(None, None, None)
    with warnings.catch_warnings(record=True) as caught, torch.compiler.set_stance("force_eager"):
        warnings.simplefilter("always")
        compiled(x)
    said = [each for each in caught if "found no compiled frames" in str(each.message)]
    assert len(said) == torch.__version__.startswith("2.12.")


def test_before_and_after_torch_compiles_it_is_told(backend):
    notes: list[str] = []
    both = WhenCompiling(lambda: notes.append("start"), lambda: notes.append("end"))
    alone = WhenCompiling(lambda: notes.append("alone"))
    compiled_whole(lambda x: x + 1)(torch.ones(1))
    assert sorted(notes[:2]) == ["alone", "start"]
    assert notes[2:] == ["end"]
    notes.clear()
    both.remove()
    both.remove()
    compiled_whole(lambda x: x + 2)(torch.ones(1))
    assert notes == ["alone"]
    alone.remove()
    compiled_whole(lambda x: x + 3)(torch.ones(1))
    assert notes == ["alone"]


def test_torch_may_have_forgotten_whom_to_tell(backend):
    handle = WhenCompiling(lambda: None, lambda: None)
    torch._dynamo.reset()
    handle.remove()


def test_graphs_check_their_hooks_while_anybody_wants_it(backend):
    config = torch._dynamo.config
    before = config.skip_nnmodule_hook_guards
    model = Own()
    x = torch.ones(1, 4)
    compiled = torch.compile(model, backend=backend)
    compiled(x)
    called: list[int] = []
    attachments = [Attachment(Owner("nethook.test")) for _ in range(2)]
    for hooks in attachments:
        check_hooks_in_graphs(hooks)
        assert config.skip_nnmodule_hook_guards is False
    handle = model.body.register_forward_hook(lambda *_: called.append(1))
    compiled(x)
    assert called  # what was compiled without the hook is not used
    handle.remove()
    attachments[0].remove()
    attachments[0].remove()
    assert config.skip_nnmodule_hook_guards is False
    attachments[1].remove()
    assert config.skip_nnmodule_hook_guards is before is True


def test_where_it_is_asked_for_again_what_is_compiled_stays(backend):
    """Only the first one makes torch compile anew."""
    starts: list[int] = []
    seen = WhenCompiling(lambda: starts.append(1))
    run = compiled_whole(lambda x: x * 7)
    run(torch.ones(1))
    first, second = Attachment(Owner("nethook.a")), Attachment(Owner("nethook.b"))
    check_hooks_in_graphs(first)
    run(torch.ones(1))
    assert len(starts) == 2
    check_hooks_in_graphs(second)
    run(torch.ones(1))
    assert len(starts) == 2
    first.remove()
    second.remove()
    seen.remove()


class Scaled(nn.Module):
    def forward(self, x, *, scale=1.0):
        if scale == 0.0:
            raise ValueError("nothing left")
        return x * scale


def events_around(module):
    events: list[tuple] = []
    hooks = Attachment(Owner("nethook.test"))
    told = around_compiled_call(
        module,
        hooks,
        lambda *given: events.append(("begins", *given)),
        lambda *given: events.append(("ends", *given)),
    )
    return events, hooks, told


def test_a_module_that_was_compiled_in_place_is_told_of_from_outside(backend):
    module = Scaled()
    module.compile(backend=backend)
    own = module._compiled_call_impl
    events, hooks, told = events_around(module)
    assert told is True
    x = torch.ones(2)
    out = module(x, scale=3.0)
    assert torch.equal(out, torch.full((2,), 3.0))
    assert backend.runs == 1
    assert events == [("begins", module, (x,), {"scale": 3.0}), ("ends", module, (x,), out)]
    events.clear()
    with pytest.raises(ValueError, match="nothing left"):
        module(x, scale=0.0)
    assert events == [("begins", module, (x,), {"scale": 0.0}), ("ends", module, (x,), None)]
    events.clear()
    around = module._compiled_call_impl
    hooks.remove()
    assert module._compiled_call_impl is own
    assert torch.equal(around(x, scale=3.0), out)  # somebody may hold it still
    assert torch.equal(module(x, scale=3.0), out)
    assert events == []


def test_who_stands_around_ours_keeps_his_place(backend):
    module = Scaled()
    module.compile(backend=backend)
    _, hooks, _ = events_around(module)
    ours = module._compiled_call_impl
    module._compiled_call_impl = theirs = lambda *args, **kwargs: ours(*args, **kwargs)
    hooks.remove()
    assert module._compiled_call_impl is theirs
    assert torch.equal(module(torch.ones(2), scale=2.0), torch.full((2,), 2.0))


def test_a_module_that_is_gone_needs_nothing(backend):
    module = Scaled()
    module.compile(backend="eager")
    events, hooks, _ = events_around(module)
    call, own = module._compiled_call_impl, lambda *args, **kwargs: (args, kwargs)
    call._original = own
    del module
    gc.collect()
    assert call(1, a=2) == ((1,), {"a": 2})
    hooks.remove()
    assert events == []


def test_of_a_module_that_was_not_compiled_nothing_is_told():
    module = Scaled()
    events, hooks, told = events_around(module)
    module(torch.ones(1))
    assert told is False
    assert module._compiled_call_impl is None
    assert events == []
    hooks.remove()
