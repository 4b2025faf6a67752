"""Hooks that rest come back to their places, whatever happens meanwhile."""

import gc
import weakref

from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from nethook.hooks import order
from nethook.hooks.attachment import Attachment, Resting, put_last
from nethook.hooks.hook import Hook, Owner


class Named(Hook):
    def __init__(self, owner, name):
        super().__init__(owner, name)
        self.__name__ = name

    def __call__(self, *_):
        return None


class User:
    def __init__(self, name):
        self.__name__ = name

    def __call__(self, *_):
        return None


class Ours:
    """One attachment with one hook on a module that can rest."""

    def __init__(self, module, name, *, options=False):
        self.hooks = Attachment(Owner("nethook.test"))
        self.resting = Resting(self.hooks.owner)
        self.hook = Named(self.hooks.owner, name)
        self.hooks.forward(
            module, self.hook, with_kwargs=options, always_call=options, resting=self.resting
        )


def on(module):
    return [hook.__name__ for hook in module._forward_hooks.values()]


def test_two_attachments_woken_in_the_order_in_which_they_were_put_to_rest():
    module = nn.ReLU()
    one, two = Ours(module, "one"), Ours(module, "two")
    for first, second in [(one, two), (two, one)]:
        first.resting.rest()
        second.resting.rest()
        assert on(module) == []
        first.resting.wake()
        second.resting.wake()
        assert on(module) == ["one", "two"]


def test_one_that_was_put_last_is_last_again():
    module = nn.ReLU()
    one, two = Ours(module, "one"), Ours(module, "two")
    put_last(module, one.hook)
    one.resting.rest()
    two.resting.rest()
    one.resting.wake()
    two.resting.wake()
    assert on(module) == ["two", "one"]


def test_nothing_is_remembered_once_no_hook_rests():
    module = nn.ReLU()
    one, two = Ours(module, "one"), Ours(module, "two")
    one.resting.rest()
    two.resting.rest()
    one.hooks.remove()
    two.resting.wake()
    assert not order._orders
    two.resting.rest()
    assert order._orders
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None
    two.hooks.remove()
    assert not order._orders


class Model:
    """What the order is to be: every hook in one list, and which of ours rest."""

    def __init__(self):
        self.all, self.resting = [], set()

    def awake(self):
        return [name for name in self.all if name not in self.resting]


@settings(max_examples=300, deadline=None)
@given(
    anchored=st.booleans(),
    events=st.lists(
        st.tuples(
            st.sampled_from(["ours", "user", "prepended", "rest", "wake", "remove", "last"]),
            st.integers(0, 7),
        ),
        max_size=40,
    ),
)
def test_any_interleaving_keeps_the_order_of_registration(anchored, events):
    """`anchored`: a hook that stays on. Without one nothing tells a prepended hook from others."""
    module, expected, ours, users = nn.ReLU(), Model(), {}, {}
    if anchored:
        module.register_forward_hook(User("anchor"))
        expected.all.append("anchor")
    for number, (event, which) in enumerate(events):
        name = f"{event} {number}"
        if event == "ours":
            ours[name] = Ours(module, name, options=which % 2 == 1)
            expected.all.append(name)
        elif event == "user" or (event == "prepended" and anchored):
            prepend = event == "prepended"
            users[name] = module.register_forward_hook(User(name), prepend=prepend)
            expected.all.insert(0 if prepend else len(expected.all), name)
        elif event in ("rest", "wake") and ours:
            name = list(ours)[which % len(ours)]
            getattr(ours[name].resting, event)()
            (expected.resting.add if event == "rest" else expected.resting.discard)(name)
        elif event == "last" and ours and anchored:
            name = list(ours)[which % len(ours)]
            if name not in expected.resting and not expected.resting:
                put_last(module, ours[name].hook)
                expected.all.remove(name)
                expected.all.append(name)
        elif event == "remove" and (ours or users):
            name = [*ours, *users][which % (len(ours) + len(users))]
            (ours.pop(name).hooks if name in ours else users.pop(name)).remove()
            expected.all.remove(name)
            expected.resting.discard(name)
        assert on(module) == expected.awake()
    for each in ours.values():
        each.resting.wake()
    assert on(module) == expected.all
    for each in ours.values():
        each.hooks.remove()
    assert not order._orders
    assert set(module._forward_hooks_with_kwargs) == set()
    assert set(module._forward_hooks_always_called) == set()
