"""One sequence for all hooks: whose calls are seen, compiled parts run eagerly, all or nothing."""

import threading

import pytest
import torch
from torch import nn

import nethook
from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook
from nethook.hooks.scope import Scope
from nethook.hooks.threads import elsewhere


class Count(Hook):
    """Counts the calls that its scope sees."""

    __slots__ = ("calls",)

    def __init__(self, hooks: Attachment) -> None:
        super().__init__(hooks.owner, "")
        self.calls = 0

    def __call__(self, module, args, output) -> None:
        self.calls += not elsewhere(self.owner, module)


def counted(model: nn.Module, scope: Scope) -> Count:
    def attach(hooks: Attachment) -> Count:
        hook = Count(hooks)
        hooks.forward(model, hook)
        return hook

    return scope.open(attach)


def in_a_thread(model: nn.Module) -> None:
    thread = threading.Thread(target=model, args=(torch.ones(1, 2),))
    thread.start()
    thread.join()


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize(("threads", "seen"), [("own", 1), ("all", 2)])
def test_whose_calls_are_seen(stays, threads, seen):
    model = nn.Linear(2, 2)
    scope = Scope("nethook.test", Tree(model), threads=threads, stays=stays)
    hook = counted(model, scope)
    model(torch.ones(1, 2))
    in_a_thread(model)
    assert hook.calls == seen
    assert [entry.owner for entry in nethook.audit(model)] == ["nethook.test"]
    scope.close()
    scope.close()
    model(torch.ones(1, 2))
    assert hook.calls == seen
    assert len(nethook.audit(model)) == 0


def test_a_block_gives_what_puts_hooks_on():
    model = nn.Linear(2, 2)
    with Scope("nethook.test", Tree(model)) as hooks:
        hook = Count(hooks)
        hooks.forward(model, hook)
        model(torch.ones(1, 2))
    assert hook.calls == 1
    assert len(nethook.audit(model)) == 0


@pytest.mark.parametrize("stays", [False, True])
def test_where_attaching_fails_nothing_is_left(stays):
    model = nn.Linear(2, 2)
    scope = Scope("nethook.test", Tree(model), stays=stays)

    def attach(hooks: Attachment) -> None:
        hooks.forward(model, Count(hooks))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scope.open(attach)
    assert len(nethook.audit(model)) == 0
    assert not scope.owner.alive


@pytest.mark.parametrize("knows_the_model", [True, False])
def test_a_compiled_model_runs_eagerly_where_the_scope_knows_it(knows_the_model):
    torch._dynamo.reset()
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    compiled = torch.compile(model, backend="eager")
    compiled(torch.ones(1, 2))  # compiled without hooks
    scope = Scope("nethook.test", Tree(compiled) if knows_the_model else None)
    hook = counted(model[0], scope)
    compiled(torch.ones(1, 2))
    scope.close()
    assert hook.calls == knows_the_model
