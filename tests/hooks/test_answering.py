"""Answering calls: the forward does not run, nothing is written on a module, all is put back."""

import copy
import io
import pickle
import weakref

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import EditError
from nethook.hooks.answering import Answers, why_unanswerable
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from tests.hooks.common import all_hooks, net

OWNER = "nethook.test"


class Twice(Hook):
    """Answers with twice what would have been computed."""

    def __call__(self, module, args, kwargs, run):
        return 2 * run(*args, **kwargs)


class Fixed(Hook):
    """Answers with a value, without running anything."""

    def __init__(self, value):
        super().__init__(Owner(OWNER), "here")
        self.value = value
        self.given = []

    def __call__(self, module, args, kwargs, run):
        self.given.append((args, kwargs))
        return self.value


class Loud(nn.Module):
    """A module that must not run."""

    def forward(self, x, *, factor=1):
        raise AssertionError("it ran")


class Deeper(nn.Linear):
    """Calls the forward of its base class."""

    def forward(self, x):
        return super().forward(x) + 1


def answering(*pairs):
    hooks = Attachment(Owner(OWNER))
    answers = Answers(hooks.owner)
    hooks.add(answers)
    for module, hook in pairs:
        answers.put_on(module, hook)
    return hooks


def test_the_forward_does_not_run_and_the_hook_is_given_the_arguments():
    model, hook = nn.Sequential(Loud()), Fixed("answer")
    with answering((model[0], hook)):
        assert model(3) == "answer"
        assert model[0](4, factor=2) == "answer"
    assert hook.given == [((3,), {}), ((4,), {"factor": 2})]
    with pytest.raises(AssertionError, match="it ran"):
        model(3)


def test_only_that_module_of_its_class_is_answered():
    one, other, x = nn.Linear(2, 2), nn.Linear(2, 2), torch.ones(1, 2)
    expected = one(x), other(x)
    with answering((one, Twice(Owner(OWNER), "one"))):
        assert torch.equal(one(x), 2 * expected[0])
        assert torch.equal(other(x), expected[1])
        assert torch.equal(copy.deepcopy(one)(x), expected[0])
    assert torch.equal(one(x), expected[0])


def test_a_class_and_its_base_at_once():
    one, other, x = Deeper(2, 2), nn.Linear(2, 2), torch.ones(1, 2)
    expected = one(x), other(x)
    twice = Twice(Owner(OWNER), "")
    with answering((one, twice), (other, twice)):
        assert torch.equal(one(x), 2 * expected[0])
        assert torch.equal(other(x), 2 * expected[1])
    assert "forward" in vars(Deeper)
    assert nn.Linear.forward.__qualname__ == "Linear.forward"


def test_hooks_of_others_run_around_the_answer():
    module, seen = Loud(), []
    module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    module.register_forward_hook(lambda m, args, out: seen.append((args, out)))
    hook = Fixed(7)
    with answering((module, hook)):
        assert module(1) == 7
    assert hook.given == [((2,), {})]
    assert seen == [((2,), 7)]


def test_the_class_is_as_before_also_after_an_error():
    before = nn.Linear.forward
    with pytest.raises(KeyError), answering((nn.Linear(2, 2), Fixed(0))):
        assert nn.Linear.forward is not before
        raise KeyError
    assert nn.Linear.forward is before


def test_nothing_is_written_on_the_module_and_files_are_the_same():
    model = net()

    def saved():
        file = io.BytesIO()
        torch.save(model, file)
        return file.getvalue(), pickle.dumps(model)

    attributes, before, classes = set(vars(model[0])), saved(), [type(m) for m in model]
    with answering(*((module, Fixed(0)) for module in model)):
        assert set(vars(model[0])) == attributes
        assert saved() == before
        assert [type(m) for m in copy.deepcopy(model)] == classes
        assert "nethook" not in repr(vars(copy.deepcopy(model)[0]))
    assert [type(m) for m in model] == classes
    assert not all_hooks(model)


def test_audit_lists_it_at_the_module():
    model = net()
    with answering((model[0], Fixed(0))):
        (info,) = nethook.audit(model)
        assert (info.address, info.kind, info.owner, info.ours) == ("0", "answer", OWNER, True)
        assert not nethook.audit(net())
    assert not nethook.audit(model)


def test_suspended_lets_the_module_run():
    model, x = nn.Sequential(nn.Linear(3, 3)), torch.ones(1, 3)
    expected = model[0](x)
    with answering((model[0], Fixed(0))):
        with nethook.suspended(model):
            assert torch.equal(model[0](x), expected)
        assert model[0](x) == 0


def test_a_module_that_was_compiled_in_place_is_answered():
    module, x = nn.Linear(2, 2), torch.ones(1, 2)
    module.compile(backend="eager")
    module(x)
    with nethook.edit(module, answers={"": torch.zeros(1, 2)}):
        assert not module(x).any()
    assert module(x).any()


def test_replicas_of_data_parallel_are_answered():
    module = nn.Linear(2, 2)
    replica = module._replicate_for_data_parallel()
    with answering((module, Fixed(5))):
        assert replica(torch.ones(1, 2)) == 5


def test_the_module_may_die_meanwhile():
    module = nn.Linear(2, 2)
    reference = weakref.ref(module)
    with answering((module, Fixed(5))):
        del module
        assert reference() is None
        assert nn.Linear(2, 2)(torch.ones(1, 2)).shape == (1, 2)


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_what_cannot_be_answered_says_why():
    module = nn.Linear(2, 2)
    assert why_unanswerable(module) is None
    module.forward = lambda x: x
    with pytest.raises(EditError, match=r"the calls of 'here' cannot be answered: its forward was"):
        answering((module, Fixed(0)))
    assert "ScriptModule" in why_unanswerable(torch.jit.script(nn.Linear(2, 2)))
    assert "no method forward" in why_unanswerable(nn.Module())
