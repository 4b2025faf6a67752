"""What a hook of nethook is, and what becomes of it in a copy or a file."""

import contextlib
import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

import nethook
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import OUR_FLAG, Hook, Owner, is_ours
from tests.hooks.common import Spy, all_hooks, net

EVERYTHING = {"inputs": True, "grads": True, "input_grads": True, "param_grads": True}


def with_hooks_of_every_kind(model: nn.Module, hooks: Attachment) -> None:
    """Puts on what a copy of a model takes along, with every option."""
    for module in model.modules():
        hooks.forward_pre(module, Spy())
        hooks.forward(module, Spy())
        hooks.forward(module, Spy(), with_kwargs=True)
        hooks.forward(module, Spy(), always_call=True)
    for parameter in model.parameters():
        hooks.tensor(parameter, Spy())
        hooks.accumulated(parameter, Spy())


def the_same_run(left: nn.Module, right: nn.Module) -> None:
    """Forward and backward give the same bits, and so does a forward that raises."""
    outputs = []
    for model in (left, right):
        model.zero_grad()
        x = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        y = model(x)
        y.square().sum().backward()
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(torch.ones(3, 7))
        outputs.append([y, x.grad, *(p.grad for p in model.parameters())])
    for a, b in zip(*outputs, strict=True):
        assert torch.equal(a, b)


def test_a_deep_copy_holds_no_hook_of_ours_and_runs_the_same():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    with hooks:
        with_hooks_of_every_kind(model, hooks)
        theirs = copy.deepcopy(model)
        spies = [hook for each in all_hooks(model).values() for _, hook in each if callable(hook)]
        assert len(spies) == 4 * 4 + 4 * 2
        assert all_hooks(theirs) == {}
        the_same_run(theirs, net())
        assert all(spy.seen == [] for spy in spies)  # the copy tells nobody anything
    assert all_hooks(model) == {}


def test_a_copy_of_a_traced_model_writes_nothing_on_the_tape():
    model = net()
    with nethook.trace(model, **EVERYTHING) as tape:
        theirs = copy.deepcopy(model)
        theirs(torch.ones(1, 4)).sum().backward()
    assert tape.forwards == 0
    assert all(not record.calls for record in tape.values())
    assert all(parameter.kept == [] for parameter in tape.params.values())


LOAD = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "nethook":
            raise ImportError("nethook is not installed")

sys.meta_path.insert(0, Refuse())
try:
    import nethook
except ImportError:
    pass
else:
    raise SystemExit("nethook could be imported")
import torch

model = torch.load(sys.argv[1], weights_only=False)
x = torch.linspace(-1, 1, 12).reshape(3, 4)
y = model(x)
y.square().sum().backward()
torch.save([y.detach(), *(p.grad for p in model.parameters())], sys.argv[2])
"""


def test_a_file_loads_and_runs_the_same_where_nethook_cannot_be_imported(tmp_path):
    model, hooks = net(), Attachment(Owner("nethook.test"))
    with hooks, nethook.trace(model, **EVERYTHING):
        with_hooks_of_every_kind(model, hooks)
        torch.save(model, tmp_path / "model.pt")
    assert b"nethook" not in (tmp_path / "model.pt").read_bytes()
    files = [str(tmp_path / "model.pt"), str(tmp_path / "seen.pt")]
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    y = model(torch.linspace(-1, 1, 12).reshape(3, 4))
    y.square().sum().backward()
    expected = [y, *(p.grad for p in model.parameters())]
    for a, b in zip(torch.load(files[1]), expected, strict=True):
        assert torch.equal(a, b)


def test_a_file_of_the_weights_alone_is_what_it_would_be_without_hooks(tmp_path):
    def saved(model: nn.Module) -> bytes:
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        return file.getvalue()

    model = net()
    bare = saved(model)
    with nethook.trace(model, **EVERYTHING):
        assert saved(model) == bare


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))]
)
def test_a_hook_by_itself_is_copied_as_a_function_that_does_nothing(copied):
    spy = Spy(answer="something")
    function = copied(spy)
    assert function() is None
    assert function(1, 2, 3, 4) is None
    assert spy.seen == []
    assert not isinstance(function, Hook)
    assert function.__self__.__class__ is contextlib.nullcontext


def test_the_flag_of_a_hook_is_true_and_is_copied_as_that():
    for copied in (OUR_FLAG, copy.deepcopy(OUR_FLAG), pickle.loads(pickle.dumps(OUR_FLAG))):
        assert copied
        assert copied == True  # noqa: E712 - equal to what torch would have noted
    assert copy.deepcopy(OUR_FLAG) is True


def test_what_is_ours():
    assert is_ours(Spy())
    assert is_ours(OUR_FLAG)
    for other in (True, 1, None, print, lambda *_: None, contextlib.nullcontext().__exit__):
        assert not is_ours(other)


def test_fact_a_plain_function_in_a_deep_copy_writes_to_the_recorder_of_the_original():
    model, seen = net(), []
    model.register_forward_hook(lambda *_: seen.append(1))
    copy.deepcopy(model)(torch.ones(1, 4))
    assert seen == [1]


def test_fact_a_local_function_on_a_model_cannot_be_saved():
    model = net()
    model.register_forward_hook(lambda *_: None)
    with pytest.raises(Exception, match="lambda"):
        torch.save(model, io.BytesIO())


def test_an_owner_is_alive_until_its_attachment_is_removed():
    owner = Owner("nethook.someone")
    assert owner.alive
    assert repr(owner) == "Owner('nethook.someone', alive=True)"
    Attachment(owner).remove()
    assert not owner.alive


def test_a_hook_says_whose_it_is_and_where():
    spy = Spy(Owner("nethook.watch"), "fc1")
    assert (spy.owner.name, spy.address) == ("nethook.watch", "fc1")
    assert repr(spy) == "<nethook.watch at 'fc1'>"
