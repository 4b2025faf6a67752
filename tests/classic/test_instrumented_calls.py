"""Many calls on one InstrumentedModel give the numbers of the originals.

The originals replaced the forward of a layer. What they did with a value is small enough to be
written down again, without nethook: `First` is the first generation (`edit_layer(name, ablation,
replacement)`), `Second` what the second one added (rules, and arguments that add up over calls).
"""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from nethook import InstrumentedModel

X = torch.linspace(-2, 2, 12).reshape(3, 4)
NAMES = ("0", "1")


class First:
    """The first generation: two dicts, both written by each call."""

    def __init__(self):
        self.ablation, self.replacement, self.retained = {}, {}, {}

    def edit(self, name, ablation=None, replacement=None):
        if ablation is None and replacement is not None:
            ablation = 1.0
        self.ablation[name], self.replacement[name] = ablation, replacement

    def remove(self, name):
        for each in [name] if name is not None else list(self.ablation):
            self.ablation.pop(each, None)
            self.replacement.pop(each, None)

    def retain(self, name):
        self.retained.setdefault(name, None)

    def after(self, name, x):
        """What a layer returns; its output before the edit is retained."""
        if name in self.retained:
            self.retained[name] = x.detach().clone()
        ablation, replacement = self.ablation.get(name), self.replacement.get(name)
        if ablation is not None:
            amount = aligned(ablation, x)
            x = x * (1 - amount)
            if replacement is not None:
                x = x + aligned(replacement, x) * amount
        return x

    def run(self, model, x):
        for name, layer in model.named_children():
            x = self.after(name, layer(x))
        return x


class Second(First):
    """Rules, for which the arguments of all calls add up until the edits are removed."""

    def __init__(self):
        super().__init__()
        self.rules, self.arguments = {}, {}

    def edit(self, name, ablation=None, replacement=None, **arguments):
        super().edit(name, ablation, replacement)
        self.rules.pop(name, None)
        self.arguments.setdefault(name, {}).update(arguments)

    def edit_by_rule(self, name, **arguments):
        self.rules[name] = True
        self.arguments.setdefault(name, {}).update(arguments)

    def remove(self, name):
        super().remove(name)
        for each in NAMES if name is None else [name]:
            self.rules.pop(each, None)
            self.arguments.pop(each, None)

    def after(self, name, x):
        if name not in self.rules:
            return super().after(name, x)
        if name in self.retained:
            self.retained[name] = x.detach().clone()
        return rule(x, **self.arguments[name])


def rule(x, *, strength=1.0, shift=0.0):
    return x * strength + shift


def aligned(value, x):
    value = torch.as_tensor(value, dtype=x.dtype)
    return value.reshape(1, *value.shape, *[1] * (x.ndim - value.ndim - 1))


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


values = st.one_of(
    st.none(),
    st.sampled_from([0.0, 0.25, 1.0, 5.0]),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=4, max_size=4),
)
names = st.sampled_from(NAMES)
first_calls = st.one_of(
    st.tuples(st.just("edit"), names, values, values, st.booleans()),
    st.tuples(st.just("remove"), st.one_of(st.none(), names)),
    st.tuples(st.just("retain"), names),
    st.tuples(st.just("run")),
)
second_calls = st.one_of(
    first_calls,
    st.tuples(
        st.just("rule"),
        names,
        st.dictionaries(st.sampled_from(["strength", "shift"]), st.sampled_from([0.5, 2.0])),
    ),
)


def carry_out(call, inst, oracle):
    kind, *rest = call
    if kind == "edit":
        name, ablation, replacement, by_name = rest
        if by_name:
            given = {"ablation": ablation, "replacement": replacement}
            inst.edit_layer(name, **{key: v for key, v in given.items() if v is not None})
        else:
            inst.edit_layer(name, ablation, replacement)
        oracle.edit(name, ablation, replacement)
    elif kind == "rule":
        inst.edit_layer(rest[0], rule, **rest[1])
        oracle.edit_by_rule(rest[0], **rest[1])
    elif kind == "remove":
        inst.remove_edits(rest[0])
        oracle.remove(rest[0])
    elif kind == "retain":
        inst.retain_layer(rest[0])
        oracle.retain(rest[0])


def hold_against(oracle, calls):
    model = make()
    with InstrumentedModel(model) as inst:
        for call in [*calls, ("run",)]:
            carry_out(call, inst, oracle)
            if call[0] != "run":
                continue
            assert torch.equal(inst(X), oracle.run(make(), X)), calls
            kept = inst.retained_features()
            assert list(kept) == list(oracle.retained)
            for name, value in kept.items():
                assert torch.equal(value, oracle.retained[name]), calls


@settings(max_examples=150, deadline=None)
@given(st.lists(first_calls, max_size=12))
def test_any_calls_of_the_first_generation_give_its_numbers(calls):
    hold_against(First(), calls)


@settings(max_examples=150, deadline=None)
@given(st.lists(second_calls, max_size=12))
def test_rules_among_them_give_the_numbers_of_the_second(calls):
    hold_against(Second(), calls)


def test_a_later_call_without_a_replacement_replaces_by_nothing():
    with InstrumentedModel(nn.Sequential(nn.Identity())) as inst:
        inst.edit_layer("0", 1.0, 5.0)
        assert torch.equal(inst(X), torch.full_like(X, 5))
        inst.edit_layer("0", 1.0)
        assert torch.equal(inst(X), torch.zeros_like(X))


def test_a_later_call_without_a_rule_ends_the_rule():
    with InstrumentedModel(nn.Sequential(nn.Identity())) as inst:
        inst.edit_layer("0", torch.neg)
        inst.edit_layer("0", 0.5)
        assert torch.equal(inst(X), X * 0.5)
        inst.edit_layer("0")
        assert torch.equal(inst(X), X)
