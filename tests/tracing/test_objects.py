"""Objects that are no containers: copied as they were at the call, or said to be not recorded."""

import copy
import dataclasses
import functools
import gc
import itertools
import pickle
import threading
import types
import weakref
from collections import UserDict, deque

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils import _pytree

import nethook
from nethook.errors import NoGradientError, OverwrittenError
from nethook.tracing.objects import NotRecorded


class Returns(nn.Module):
    """Returns what a function makes of its input, and is called as a part of a model."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def forward(self, x, *args, **kwargs):
        return self._function(x)


def recorded(make, x=None, **options):
    """What a trace keeps of what `make(x)` returns, and the very object."""
    x = torch.ones(3, requires_grad=True) if x is None else x
    live = []

    def function(given):
        live.append(make(given))
        return live[-1]

    model = Returns(function)
    with nethook.trace(model, "", **options) as tape:
        model(x)
    return tape, live[0]


class Plain:
    def __init__(self, value, **more):
        self.value = value
        self.__dict__.update(more)


class Slotted:
    __slots__ = ("other", "unset", "value")

    def __init__(self, value):
        self.value = value
        self.other = 3


class SlottedBelow(Slotted):
    def __init__(self, value):
        super().__init__(value)
        self.more = [value * 2]


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    value: object
    name: str = "name"


@dataclasses.dataclass
class Nested:
    value: torch.Tensor
    holder: Plain


class Watchful:
    """Every way of reaching in is code that must not run."""

    def __init__(self, value):
        object.__setattr__(self, "value", value)

    @property
    def shadow(self):
        raise AssertionError("a property was called")

    def __copy__(self):
        raise AssertionError("__copy__ was called")

    def __deepcopy__(self, memo):
        raise AssertionError("__deepcopy__ was called")

    def __reduce_ex__(self, protocol):
        raise AssertionError("__reduce_ex__ was called")

    def __getattr__(self, name):
        raise AssertionError(f"__getattr__ was called for {name}")

    def __setattr__(self, name, value):
        raise AssertionError("__setattr__ was called")

    def __eq__(self, other):
        raise AssertionError("__eq__ was called")

    __hash__ = None


class Listed(list):
    pass


class Named(dict):
    pass


class Pair(tuple):  # with a __dict__
    pass


def with_attribute(container, value):
    container.note = value
    return container


# Each holds the tensor that it is made from, somewhere that `read` finds.
KINDS = {
    "plain class": (lambda t: Plain(t), lambda o: o.value),
    "slots": (lambda t: Slotted(t), lambda o: o.value),
    "slots and attributes": (lambda t: SlottedBelow(t), lambda o: o.value),
    "namespace": (lambda t: types.SimpleNamespace(value=t), lambda o: o.value),
    "class without code": (lambda t: Watchful(t), lambda o: o.value),
    "in a list": (lambda t: [Plain(t)], lambda o: o[0].value),
    "in a frozen dataclass": (lambda t: Frozen(Plain(t)), lambda o: o.value.value),
    "two deep": (lambda t: Plain(Plain([{"a": t}])), lambda o: o.value.value[0]["a"]),
    "dataclass inside": (lambda t: Plain(Nested(t, None)), lambda o: o.value.value),
    "distribution": (
        lambda t: torch.distributions.Normal(t, torch.ones_like(t)),
        lambda o: o.loc,
    ),
    "set": (lambda t: {t}, lambda o: next(iter(o))),
    "frozen set": (lambda t: frozenset([t]), lambda o: next(iter(o))),
    "deque": (lambda t: deque([t], maxlen=4), lambda o: o[0]),
    "slice": (lambda t: slice(t, None), lambda o: o.start),
    "array of objects": (lambda t: Plain(np.array([Plain(t)])), lambda o: o.value[0].value),
    "list with an attribute": (lambda t: with_attribute(Listed([1]), t), lambda o: o.note),
    "dict with an attribute": (lambda t: with_attribute(Named(a=1), t), lambda o: o.note),
    "tuple with an attribute": (lambda t: with_attribute(Pair((1,)), t), lambda o: o.note),
    "attribute of an attribute": (
        lambda t: with_attribute(Listed(), Plain(t)),
        lambda o: o.note.value,
    ),
    "user's dict": (lambda t: with_attribute(UserDict(a=t), t), lambda o: o["a"]),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@pytest.mark.parametrize("copy_", [None, True], ids=["lazy", "copied"])
def test_a_tensor_in_it_keeps_its_value_and_leaves_the_graph(kind, copy_):
    make, read = KINDS[kind]
    tape, live = recorded(lambda x: make(x * 2), copy=copy_)
    inside = read(live)
    with torch.no_grad():
        inside.fill_(7)
    kept = read(tape[""].output)
    assert kept is not inside
    assert kept.tolist() == [2, 2, 2]
    assert not kept.requires_grad
    assert type(tape[""].output) is type(live)


@each_kind
def test_detach_false_keeps_the_graph(kind):
    make, read = KINDS[kind]
    x = torch.ones(3, requires_grad=True)
    tape, _ = recorded(lambda x: make(x * 2), x, detach=False)
    (grad,) = torch.autograd.grad(read(tape[""].output).sum(), x)
    assert grad.tolist() == [2, 2, 2]


@each_kind
def test_without_copies_a_write_is_noticed(kind):
    make, read = KINDS[kind]
    tape, live = recorded(lambda x: make(x * 2), copy=False)
    assert read(tape[""].output).tolist() == [2, 2, 2]
    with torch.no_grad():
        read(live).fill_(7)
    with pytest.raises(OverwrittenError, match='copy="now"'):
        tape[""].output


@each_kind
def test_no_graph_and_no_object_is_held(kind):
    make, read = KINDS[kind]
    tape, live = recorded(lambda x: make(x * 2))
    gone = weakref.ref(read(live))
    del live
    gc.collect()
    assert gone() is None
    assert read(tape[""].output).tolist() == [2, 2, 2]


@each_kind
def test_inputs_are_kept_as_they_were_before_the_call(kind):
    make, read = KINDS[kind]

    class Fills(nn.Module):
        def forward(self, value, *, again):
            read(value).fill_(9)
            read(again).fill_(9)

    model = Fills()
    with torch.no_grad(), nethook.trace(model, "", inputs=True) as tape:
        model(make(torch.ones(2)), again=make(torch.ones(2)))
    assert read(tape[""].input).tolist() == [1, 1]
    assert read(tape[""].kwargs["again"]).tolist() == [1, 1]


def test_what_is_bound_to_other_tensors_later_stays_as_it_was():
    cache = Plain(torch.zeros(1), filled=[])

    class Grows(nn.Module):
        def forward(self, x):
            cache.value = torch.cat([cache.value, x])
            cache.filled.append(x)
            cache.late = x
            return cache

    model = Grows()
    with nethook.trace(model, "") as tape:
        for _ in range(3):
            model(torch.ones(1))
    assert [len(call.output.value) for call in tape[""].calls] == [2, 3, 4]
    assert [len(call.output.filled) for call in tape[""].calls] == [1, 2, 3]


def test_an_object_that_is_empty_still_is_copied_too():
    class Fills(nn.Module):
        def forward(self, x, store):
            store.found = x
            return x

    model = Fills()
    with nethook.trace(model, "", inputs=True) as tape:
        model(torch.ones(1), types.SimpleNamespace())
        model(torch.ones(1), Plain(None))
    assert vars(tape[""].calls[0].args[1]) == {}
    assert vars(tape[""].calls[1].args[1]) == {"value": None}


def test_sharing_and_circles_are_as_they_were():
    def make(x):
        one = Plain(x, shared=x)
        one.self = one
        one.ring = [Plain(one)]
        return one, one

    tape, _ = recorded(make)
    first, second = tape[""].output
    assert first is second is first.self is first.ring[0].value
    assert first.value is first.shared


def test_numbers_texts_and_marks_pass():
    mark = object()
    lock = threading.Lock()
    tape, _ = recorded(lambda x: Plain(x, n=3, name="a", mark=mark, type=Plain, lock=lock, f=len))
    kept = tape[""].output
    assert (kept.n, kept.name, kept.type, kept.f) == (3, "a", Plain, len)
    assert kept.mark is mark
    assert isinstance(kept.lock, NotRecorded)


def test_arrays_are_copied():
    tape, live = recorded(lambda x: Plain(np.zeros(3)))
    live.value += 1
    assert tape[""].output.value.tolist() == [0, 0, 0]


# -- what is not recorded -------------------------------------------------------------------------


class Finalised:
    def __init__(self, value):
        self.value = value
        self.closed = []

    def __del__(self):
        self.closed.append(True)


def stream(x):
    yield x


def deep(x):
    for _ in range(60):
        x = Plain(x)
    return x


NOT_RECORDED = {
    "module": (lambda x: nn.Linear(2, 2), "<not recorded: Linear, a module; trace it by its own"),
    "generator": (stream, "<not recorded: generator, which can be run only once; read it while"),
    "iterator": (lambda x: iter([x]), "<not recorded: list_iterator, which cannot be copied; read"),
    "closure": (lambda x: lambda: x, "<not recorded: function, which cannot be copied"),
    "method": (lambda x: [x].append, "<not recorded: builtin_function_or_method, which cannot"),
    "partial": (lambda x: functools.partial(torch.add, x), "<not recorded: partial, which cannot"),
    "finaliser": (Finalised, "<not recorded: Finalised, whose copy would be finalised as well"),
    "storage": (lambda x: x.untyped_storage(), "<not recorded: UntypedStorage, which cannot be"),
    "node": (lambda x: (x * 2).grad_fn, "<not recorded: MulBackward0, which cannot be copied"),
    "large": (lambda x: Plain([x] + [0] * 20_000), "<not recorded: Plain, with more than 10,000"),
    "deep": (deep, "<not recorded: Plain, with objects nested deeper than 50"),
}


@pytest.mark.parametrize("kind", NOT_RECORDED)
@pytest.mark.parametrize("place", ["alone", "in a list", "in an object"])
def test_what_cannot_be_copied_is_said_to_be_not_recorded(kind, place):
    make, text = NOT_RECORDED[kind]
    wrap = {"alone": lambda o: o, "in a list": lambda o: [o], "in an object": Plain}[place]
    tape, live = recorded(lambda x: wrap(make(x)))
    kept = tape[""].output
    if place == "in a list":
        kept, live = kept[0], live[0]
    elif place == "in an object" and kind not in ("large", "deep"):
        kept, live = kept.value, live.value
    assert repr(kept).startswith(text)
    assert kept.kind is type(live)
    with pytest.raises(AttributeError, match=r"there is no \.shape to read here: <not recorded"):
        kept.shape
    assert repr(pickle.loads(pickle.dumps(NotRecorded(int, "why")))) == "<not recorded: int, why>"
    assert repr(copy.deepcopy(kept)) == repr(kept)


def test_a_generator_runs_for_its_owner_alone():
    tape, live = recorded(stream)
    assert len(list(live)) == 1
    assert isinstance(tape[""].output, NotRecorded)


def test_functions_that_hold_nothing_pass():
    def local(n):
        return local(n - 1) if n else 0  # its closure holds itself

    for each in (torch.relu, nn.functional.relu, len, local, functools.partial(local, 3), str.join):
        tape, _ = recorded(lambda x, each=each: [x, each])
        assert tape[""].output[1] is each


def test_an_object_that_cannot_be_copied_does_not_stop_the_forward():
    class Odd:
        can_be_hashed = True

        def __hash__(self):
            if not self.can_be_hashed:
                raise RuntimeError("it has no hash now")
            return 1

    def with_an_odd_set(x):
        odd = Odd()
        members = {odd}
        odd.can_be_hashed = False
        return [members, x]

    tape, _ = recorded(with_an_odd_set)
    assert repr(tape[""].output[0]).startswith("<not recorded: set, which cannot be copied")
    assert tape[""].output[1].shape == (3,)


def test_a_transform_sees_no_tensor_inside_an_object():
    seen = []

    def small(tensor):
        seen.append(tensor.shape)
        return tensor.mean()

    tape, _ = recorded(lambda x: (x, Plain(x), Plain(3), {1}), transform=small)
    mean, holder, number, numbers = tape[""].output
    assert seen == [(3,)]
    assert mean == 1
    assert repr(holder).startswith("<not recorded: Plain, which transform= does not reach")
    assert (number.value, numbers) == (3, {1})


def test_type_and_device_hold_inside_an_object_as_well():
    tape, _ = recorded(lambda x: Plain(x), dtype=torch.float64)
    assert tape[""].output.value.dtype is torch.float64


# -- registered with torch ------------------------------------------------------------------------


class Boxed:
    """A registered type that could not be copied otherwise."""

    made = 0

    def __init__(self, inside):
        assert isinstance(inside, torch.Tensor)
        Boxed.made += 1
        self.inside = inside

    def __del__(self):
        pass


@pytest.fixture
def registered():
    _pytree.register_pytree_node(
        Boxed, lambda box: ([box.inside], None), lambda children, _: Boxed(*children)
    )
    yield
    _pytree._deregister_pytree_node(Boxed)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("copy_", [None, True, False])
@pytest.mark.parametrize("holder", [lambda box: box, lambda box: [Plain(box)]])
def test_a_registered_type_is_taken_apart_and_put_together_by_its_functions(holder, copy_):
    tape, live = recorded(lambda x: holder(Boxed(x * 2)), copy=copy_)
    before = Boxed.made
    kept = tape[""].output
    assert Boxed.made == before + 1  # when it is read, not while the model runs
    kept, live = (kept, live) if isinstance(live, Boxed) else (kept[0].value, live[0].value)
    assert kept is not live
    assert kept.inside.tolist() == [2, 2, 2]


@pytest.mark.usefixtures("registered")
def test_a_registered_type_that_refuses_is_not_recorded(monkeypatch):
    node = _pytree.SUPPORTED_NODES[Boxed]

    def refuses(_):
        raise RuntimeError("not this one")

    broken = node._replace(flatten_fn=refuses)
    monkeypatch.setitem(_pytree.SUPPORTED_NODES, Boxed, broken)
    tape, _ = recorded(Boxed)
    assert repr(tape[""].output).startswith("<not recorded: Boxed")


# -- gradients ------------------------------------------------------------------------------------


def test_grad_holds_gradients_only():
    x = torch.ones(3, requires_grad=True)
    model = Returns(
        lambda x: (x * 2, Plain(x * 3), 4, "text", {"n": 1, "t": x * 5}, torch.Size([1]))
    )
    with nethook.trace(model, "", grads=True, input_grads=True) as tape:
        out = model(x, Plain(x), scale=2)
        (out[0].sum() + out[1].value.sum()).backward()
    doubled, *rest = tape[""].grad
    assert doubled.tolist() == [1, 1, 1]
    assert rest == [None, None, None, {"n": None, "t": None}, None]
    grads = tape[""].input_grads
    assert grads[0].tolist() == [5, 5, 5]
    assert (grads[1], grads["scale"]) == (None, None)


def test_grad_holds_nothing_of_a_containers_own_attributes():
    x = torch.ones(3, requires_grad=True)
    tape, live = recorded(lambda x: [with_attribute(Listed([x * 2]), x), x * 3], x, grads=True)
    (live[0][0].sum() + live[1].sum() * 2).backward()
    listed, tripled = tape[""].grad
    assert (listed[0].tolist(), tripled.tolist()) == ([1, 1, 1], [2, 2, 2])
    assert listed.note is None
    assert live[0].note is x


def test_a_container_whose_attribute_is_itself():
    def make(x):
        ring = Listed([x])
        return with_attribute(ring, [ring, Plain(ring)])

    tape, _ = recorded(make)
    kept = tape[""].output
    assert kept.note[0] is kept
    assert kept.note[1].value[0].tolist() == [1, 1, 1]


def test_nodes_hold_no_object():
    tape, _ = recorded(lambda x: (x * 2, Plain(x * 3), 4), nodes=True)
    node, holder, number = tape[""].node
    assert node.name() == "MulBackward0"
    assert (holder, number) == (None, 4)


def test_an_output_that_is_one_object_says_why_it_has_no_gradient():
    tape, _ = recorded(lambda x: Plain(x * 2), grads=True)
    with pytest.raises(NoGradientError, match=r"holds no tensor that can be addressed: .* a Plain"):
        tape[""].grad


# -- caches of transformers -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def gpt2():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=8, vocab_size=20, n_positions=32, bos_token_id=0,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


def test_the_caches_of_a_generation_are_those_of_each_step(gpt2):
    prompt = torch.tensor([[1, 2, 3, 4, 5]])
    with nethook.trace(gpt2, "", inputs=True) as tape:
        gpt2.generate(prompt, max_new_tokens=4, do_sample=False)
    caches = [call.output.past_key_values for call in tape[""].calls]
    assert [cache.get_seq_length() for cache in caches] == [5, 6, 7, 8]
    given = [call.kwargs["past_key_values"] for call in tape[""].calls]
    assert [0 if cache is None else cache.get_seq_length() for cache in given] == [0, 5, 6, 7]
    for earlier, later in itertools.pairwise(caches):
        for one, two in zip(earlier.layers, later.layers, strict=True):
            assert torch.equal(one.keys, two.keys[:, :, :-1])
            assert not one.keys.requires_grad


def test_a_static_cache_is_written_in_place_and_keeps_its_steps(gpt2):
    from transformers import StaticCache

    with torch.no_grad(), nethook.trace(gpt2, "") as tape:
        cache = StaticCache(config=gpt2.config, max_cache_len=8)
        for token in (1, 2, 3):
            gpt2(torch.tensor([[token]]), past_key_values=cache, use_cache=True)
    filled = [
        int((call.output.past_key_values.layers[0].keys.abs().sum((0, 1, 3)) > 0).sum())
        for call in tape[""].calls
    ]
    assert filled == [1, 2, 3]


def test_caches_of_an_encoder_and_a_decoder():
    from transformers import DynamicCache, EncoderDecoderCache

    def make(x):
        cache = EncoderDecoderCache(DynamicCache(), DynamicCache())
        cache.self_attention_cache.update(x, x, 0)
        return cache

    x = torch.ones(1, 1, 2, 3)
    tape, live = recorded(make, x)
    live.self_attention_cache.update(x, x, 0)
    assert tape[""].output.get_seq_length() == 2
    assert live.get_seq_length() == 4


def test_a_trained_model_with_a_cache_has_gradients_where_tensors_are(gpt2):
    with nethook.trace(gpt2, "", grads=True) as tape:
        gpt2(torch.tensor([[1, 2, 3]]), use_cache=True).logits.sum().backward()
    grad = tape[""].grad
    assert grad.logits.shape == (1, 3, 20)
    assert grad.past_key_values is None


# -- any object -----------------------------------------------------------------------------------

leaves = st.sampled_from(["tensor", 1, "text", None])
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        st.builds(Plain, inner),
        st.builds(Slotted, inner),
        st.builds(lambda v: types.SimpleNamespace(value=v), inner),
        st.builds(Frozen, inner),
        st.builds(lambda v: deque([v]), inner),
    ),
    max_leaves=12,
)


def build(shape, tensors):
    """The value of a shape, with a tensor of its own for each word."""
    if isinstance(shape, str) and shape == "tensor":
        tensors.append(torch.full((2,), float(len(tensors)), requires_grad=True) * 1)
        return tensors[-1]
    return rebuilt(shape, lambda each: build(each, tensors))


def rebuilt(value, change):
    if isinstance(value, list | tuple | deque):
        return type(value)(change(each) for each in value)
    if isinstance(value, dict):
        return {key: change(each) for key, each in value.items()}
    if isinstance(value, Plain | Slotted | types.SimpleNamespace | Frozen):
        made = object.__new__(type(value)) if not isinstance(value, types.SimpleNamespace) else None
        made = types.SimpleNamespace() if made is None else made
        object.__setattr__(made, "value", change(value.value))
        return made
    return value


def flat(value, found):
    """The value as nested tuples: types, and numbers in the place of tensors."""
    if isinstance(value, torch.Tensor):
        found.append(value)
        return ("tensor", value.tolist())
    if isinstance(value, list | tuple | deque):
        return (type(value).__name__, *[flat(each, found) for each in value])
    if isinstance(value, dict):
        return ("dict", *[(key, flat(each, found)) for key, each in value.items()])
    if isinstance(value, Plain | Slotted | types.SimpleNamespace | Frozen):
        return (type(value).__name__, flat(value.value, found))
    return value


@settings(max_examples=150, deadline=None)
@given(values, st.sampled_from([None, True]))
def test_any_nesting_is_kept_as_it_was(shape, copy_):
    tensors = []
    value = build(shape, tensors)
    before = flat(value, [])
    tape, _ = recorded(lambda x: value, copy=copy_)
    with torch.no_grad():
        for tensor in tensors:
            tensor.fill_(-1)
    held = []
    assert flat(tape[""].output, held) == before
    assert not any(tensor.requires_grad for tensor in held)
    assert not {id(tensor) for tensor in held} & {id(tensor) for tensor in tensors}
