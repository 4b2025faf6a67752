"""Tensors inside nested values: found, replaced, and everything around them left as it is."""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict, UserDict, defaultdict, namedtuple
from collections.abc import MutableMapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nethook.addresses.nested import get, map_tensors, replace, tensors
from nethook.addresses.paths import Attribute, Item, parse_path, show_path
from nethook.errors import NoSuchSiteError

ONE, TWO, NEW = torch.ones(1), torch.full((2,), 2.0), torch.full((3,), 3.0)


def double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * 2


def paths(value: object) -> list[str]:
    return [show_path(path) for path, _ in tensors(value)]


Pair = namedtuple("Pair", "first second")


class Marked(NamedTuple):
    hidden: Any
    label: str = "x"


class WithAttributes(Pair):
    """A named tuple that carries more than its fields."""


class OddConstructor(tuple):
    def __new__(cls, *, only_by_name):
        return super().__new__(cls, only_by_name)


class ListWithAttributes(list):
    pass


@dataclasses.dataclass
class Output:
    logits: Any
    loss: Any = None
    late: Any = dataclasses.field(init=False)


@dataclasses.dataclass(frozen=True)
class Frozen:
    logits: Any
    loss: Any = None


@dataclasses.dataclass(slots=True)
class Slots:
    logits: Any
    loss: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlots:
    logits: Any
    late: Any = dataclasses.field(init=False)


@dataclasses.dataclass
class Strict:
    """Its constructor does work that must not be done twice."""

    logits: Any
    built: int = 0

    def __post_init__(self):
        self.built += 1


class AttributeDict(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class GrowingDict(defaultdict):
    __getattr__ = defaultdict.__getitem__


class OwnMapping(MutableMapping):
    """Keeps its items in an attribute, which a shallow copy would share."""

    def __init__(self, **items):
        self.kept = dict(items)

    def __getitem__(self, key):
        return self.kept[key]

    def __setitem__(self, key, value):
        self.kept[key] = value

    def __delitem__(self, key):
        del self.kept[key]

    def __iter__(self):
        return iter(self.kept)

    def __len__(self):
        return len(self.kept)


def _late() -> Output:
    value = Output(ONE)
    value.late = TWO
    return value


CONTAINERS = {
    "tensor": (lambda: ONE, [""]),
    "tuple": (lambda: (ONE, None, TWO), ["[0]", "[2]"]),
    "empty tuple": (lambda: (), []),
    "named tuple": (lambda: Pair(ONE, 3), [".first"]),
    "typed named tuple": (lambda: Marked(ONE), [".hidden"]),
    "list": (lambda: [1.5, ONE, "text", TWO], ["[1]", "[3]"]),
    "list subclass": (lambda: ListWithAttributes([ONE]), ["[0]"]),
    "dict": (lambda: {"a": ONE, "b": None}, ['["a"]']),
    "keys of any kind": (
        lambda: {0: ONE, ("u", "v"): TWO, None: ONE, "0": TWO},
        ["[0]", "[('u', 'v')]", "[None]", '["0"]'],
    ),
    "ordered dict": (lambda: OrderedDict(b=ONE, a=TWO), ['["b"]', '["a"]']),
    "default dict": (lambda: defaultdict(list, a=ONE), ['["a"]']),
    "mapping proxy": (lambda: MappingProxyType({"a": ONE}), ['["a"]']),
    "user dict": (lambda: UserDict(a=ONE), ['["a"]']),
    "attribute dict": (lambda: AttributeDict(a=ONE), ['["a"]']),
    "growing dict": (lambda: GrowingDict(list, a=ONE), ['["a"]']),
    "mapping of one's own": (lambda: OwnMapping(a=ONE, b=TWO), ['["a"]', '["b"]']),
    "dataclass": (lambda: Output(ONE, TWO), [".logits", ".loss"]),
    "field set late": (_late, [".logits", ".late"]),
    "frozen dataclass": (lambda: Frozen(ONE), [".logits"]),
    "dataclass with slots": (lambda: Slots(ONE, TWO), [".logits", ".loss"]),
    "frozen with slots, unset field": (lambda: FrozenSlots(ONE), [".logits"]),
    "dataclass with a constructor": (lambda: Strict(ONE), [".logits"]),
    "what torch.max returns": (lambda: torch.max(torch.eye(2), 0), ["[0]", "[1]"]),
    "nested": (lambda: [{"a": (ONE, Frozen([TWO]))}], ['[0]["a"][0]', '[0]["a"][1].logits[0]']),
    "one tensor twice": (lambda: [ONE, (ONE,)], ["[0]", "[1][0]"]),
}
every_container = pytest.mark.parametrize(
    ("make", "expected"), CONTAINERS.values(), ids=CONTAINERS.keys()
)


@every_container
def test_each_tensor_is_found_with_its_path_in_order(make, expected):
    assert paths(make()) == expected


@every_container
def test_a_path_leads_to_its_tensor(make, expected):
    value = make()
    for path, tensor in tensors(value):
        assert get(value, path) is tensor


@every_container
def test_mapping_replaces_the_tensors_and_keeps_the_type(make, expected):
    value = make()
    before = tensors(value)
    mapped = map_tensors(double, value)
    assert type(mapped) is type(value)
    assert [path for path, _ in tensors(mapped)] == [path for path, _ in before]
    for (_, was), (_, now) in zip(before, tensors(mapped), strict=True):
        assert torch.equal(now, was * 2)


@every_container
def test_mapping_leaves_the_value_itself_alone(make, expected):
    value = make()
    before = tensors(value)
    map_tensors(double, value)
    assert all(was is now for (_, was), (_, now) in zip(before, tensors(value), strict=True))
    if isinstance(value, MutableMapping):
        assert list(value) == list(make())  # not even a key more


@every_container
def test_a_value_in_which_nothing_is_replaced_is_returned_itself(make, expected):
    value = make()
    assert map_tensors(lambda tensor: tensor, value) is value


@every_container
def test_replacing_at_a_path_changes_that_place_only(make, expected):
    value = make()
    for path, _ in tensors(value):
        replaced = replace(value, path, NEW)
        assert type(replaced) is (torch.Tensor if not path else type(value))
        for other, tensor in tensors(replaced):
            assert tensor is (NEW if other == path else get(value, other))


def test_dataclasses_are_replaced_as_dataclasses_replace_does_it():
    for value in (Frozen(ONE, TWO), Slots(ONE, TWO)):
        assert replace(value, parse_path(".loss"), "new") == dataclasses.replace(value, loss="new")


def test_a_constructor_is_not_called_again():
    assert map_tensors(double, Strict(ONE)).built == 1
    value = OddConstructor(only_by_name=[ONE])
    assert type(map_tensors(double, value)) is OddConstructor


def test_what_hangs_on_a_container_comes_along():
    pair = WithAttributes(ONE, TWO)
    pair.note = "kept"
    rows = ListWithAttributes([ONE])
    rows.note = "kept"
    output = Output(ONE)
    output.note = "kept"
    for value in (pair, rows, output):
        assert map_tensors(double, value).note == "kept"
        assert replace(value, tensors(value)[0][0], NEW).note == "kept"


def test_a_default_dict_keeps_its_factory():
    mapped = map_tensors(double, defaultdict(list, a=ONE))
    assert mapped["new"] == []


def test_attributes_of_an_attribute_dict_follow_its_keys():
    mapped = map_tensors(double, AttributeDict(a=ONE))
    assert mapped.a is mapped["a"]
    mapped.b = 1
    assert mapped["b"] == 1


def test_unset_fields_stay_unset():
    for value in (Output(ONE), FrozenSlots(ONE)):
        assert not hasattr(map_tensors(double, value), "late")


def test_what_is_no_container_is_left_as_it_is():
    class Cache:
        def __init__(self):
            self.keys = [ONE]

    cache = Cache()
    for value in (None, 3, "text", cache, torch.Size([1, 2]), {ONE}, range(3), Output, Pair):
        assert tensors(value) == []
        assert map_tensors(double, value) is value
        assert map_tensors(double, [value, ONE])[0] is value


def test_other_values_can_be_mapped_as_well():
    value = {"a": (ONE, 1), "b": None}
    assert map_tensors(lambda _: "tensor", value, repr) == {"a": ("tensor", "1"), "b": "None"}


def test_a_packed_sequence_is_a_named_tuple_with_another_constructor():
    value = torch.nn.utils.rnn.pack_sequence([ONE, ONE])
    mapped = map_tensors(double, value)
    assert type(mapped) is type(value)
    assert torch.equal(mapped.data, value.data * 2)
    assert paths(value) == [".data", ".batch_sizes"]


def test_a_tensor_subclass_and_a_parameter_are_tensors():
    weight = torch.nn.Parameter(ONE)
    assert tensors([weight])[0][1] is weight


# Values that hold themselves.


def test_a_list_that_holds_itself_is_found_and_mapped_once():
    value: list = [ONE]
    value.append(value)
    assert paths(value) == ["[0]"]
    mapped = map_tensors(double, value)
    assert mapped is not value
    assert torch.equal(mapped[0], ONE * 2)
    assert mapped[1] is mapped
    assert value[1] is value


def test_a_longer_circle_closes_in_the_mapped_value_too():
    value: dict = {"a": ONE, "below": [TWO]}
    value["below"].append((value,))
    mapped = map_tensors(double, value)
    assert mapped["below"][1][0] is mapped
    assert torch.equal(mapped["below"][0], TWO * 2)


def test_a_circle_through_a_tuple_does_not_hang():
    value = (ONE, [])
    value[1].append(value)
    assert paths(value) == ["[0]"]
    assert torch.equal(map_tensors(double, value)[0], ONE * 2)


# transformers


def test_a_model_output_is_rebuilt_with_both_spellings():
    outputs = pytest.importorskip("transformers.modeling_outputs")
    value = outputs.CausalLMOutputWithPast(logits=ONE, hidden_states=(ONE, TWO))
    assert paths(value) == [".logits", ".hidden_states[0]", ".hidden_states[1]"]
    mapped = map_tensors(double, value)
    assert type(mapped) is type(value)
    assert mapped.logits is mapped["logits"] is mapped[0]
    assert mapped.hidden_states is mapped["hidden_states"]
    assert torch.equal(mapped.logits, ONE * 2)
    assert mapped.loss is None
    assert list(mapped) == list(value)
    assert torch.equal(value.logits, ONE)


@pytest.mark.parametrize("path", [".logits", '["logits"]', "[0]", "[-2]"])
def test_a_field_of_a_model_output_is_read_and_replaced_by_each_spelling(path):
    outputs = pytest.importorskip("transformers.modeling_outputs")
    value = outputs.CausalLMOutput(logits=ONE, attentions=(TWO,))
    assert get(value, parse_path(path)) is ONE
    assert replace(value, parse_path(path), NEW).logits is NEW


def test_the_keys_of_a_model_output_keep_the_order_in_which_they_were_set():
    outputs = pytest.importorskip("transformers.modeling_outputs")
    value = outputs.CausalLMOutput(logits=ONE)
    value.loss = TWO  # after the logits, so it is value[1]
    mapped = map_tensors(double, value)
    assert list(mapped) == list(value)
    assert torch.equal(mapped[0], value[0] * 2)


def test_a_batch_encoding_keeps_its_encodings():
    transformers = pytest.importorskip("transformers")
    value = transformers.BatchEncoding({"input_ids": ONE})
    mapped = map_tensors(double, value)
    assert type(mapped) is transformers.BatchEncoding
    assert vars(mapped).keys() == vars(value).keys()
    assert torch.equal(mapped.input_ids, ONE * 2)
    assert torch.equal(value.input_ids, ONE)


# Which spellings a path may have, and what is said when it leads nowhere.


@pytest.mark.parametrize("path", [".first", '["first"]', "[0]", "[-2]"])
def test_a_field_of_a_named_tuple_has_these_spellings(path):
    assert get(Pair(ONE, TWO), parse_path(path)) is ONE


@pytest.mark.parametrize(
    ("value", "path", "text"),
    [
        ([ONE], "[1]", "[1] is not in the value, which holds [0]."),
        ({"a": ONE, "b": 1}, ".c", '.c is not in the value, which holds ["a"], ["b"].'),
        ({"a": ONE}, "[0]", '[0] is not in the value, which holds ["a"].'),
        (ONE, "[0]", "[0] is not in the value, which holds nothing: it is a Tensor."),
        (None, ".x", ".x is not in the value, which holds nothing: it is a NoneType."),
        (Output(ONE), ".late", ".late is not in the value, which holds .logits, .loss."),
    ],
)
@pytest.mark.parametrize("use", [get, lambda value, path: replace(value, path, NEW)])
def test_a_path_that_leads_nowhere_is_said_with_what_there_is(use, value, path, text):
    with pytest.raises(NoSuchSiteError) as caught:
        use(value, parse_path(path))
    assert str(caught.value) == text


# Any value whatever.

leaves = st.one_of(st.builds(lambda: torch.zeros(1)), st.none(), st.integers(), st.text(max_size=2))
keys = st.one_of(st.text(max_size=2), st.integers(-3, 3), st.booleans(), st.none())
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3).map(MappingProxyType),
        st.builds(Pair, inner, inner),
        st.builds(Output, inner, inner),
        st.builds(FrozenSlots, inner),
    ),
    max_leaves=12,
)


@given(values)
def test_mapping_goes_through_the_tensors_in_their_order(value):
    seen: list[torch.Tensor] = []

    def see(tensor):
        seen.append(tensor)
        return tensor

    assert map_tensors(see, value) is value
    assert [id(each) for each in seen] == [id(tensor) for _, tensor in tensors(value)]


@given(values)
def test_paths_are_distinct_and_survive_mapping(value):
    found = [path for path, _ in tensors(value)]
    assert len(set(found)) == len(found)
    mapped = map_tensors(torch.clone, value)
    assert [path for path, _ in tensors(mapped)] == found
    assert type(mapped) is type(value)


@given(values)
def test_replacing_every_tensor_in_turn_is_mapping(value):
    renamed = {id(tensor): object() for _, tensor in tensors(value)}
    mapped = map_tensors(lambda tensor: renamed[id(tensor)], value)
    turned = value
    for path, tensor in tensors(value):
        turned = replace(turned, path, renamed[id(tensor)])
        assert get(turned, path) is renamed[id(tensor)]
    for path, tensor in tensors(value):
        assert get(mapped, path) is get(turned, path) is renamed[id(tensor)]


class Opened(dict):
    """A plain stand-in: deep copies go into it, as they do not into every container."""


copied = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3).map(Opened),
        st.builds(Pair, inner, inner),
        st.builds(Frozen, inner, inner),
    ),
    max_leaves=12,
)


@given(copied)
def test_mapping_is_a_deep_copy_with_the_tensors_exchanged(value):
    exchanged = {id(tensor): f"<{i}>" for i, (_, tensor) in enumerate(tensors(value))}
    mapped = map_tensors(lambda tensor: exchanged[id(tensor)], value)
    expected = copy.deepcopy(value, dict(exchanged))
    assert mapped == expected
    assert repr(mapped) == repr(expected)  # which names the types


def test_steps_are_values():
    assert Item(0) == Item(0)
    assert Item("a") != Attribute("a")


class Refuses(dict):
    """A dict that must not be asked by its own method."""

    def __getitem__(self, key):
        raise RuntimeError(key)


def test_a_dict_is_read_past_its_class():
    held = torch.ones(2)
    assert [tensor for _, tensor in tensors([Refuses(a=held)])] == [held]
    ordered = OrderedDict(a=torch.zeros(1), b=torch.ones(1))
    ordered.move_to_end("a")
    assert [tensor.item() for _, tensor in tensors(ordered)] == [1, 0]
    made = map_tensors(torch.neg, Refuses(a=held))
    assert type(made) is Refuses
    assert torch.equal(dict.__getitem__(made, "a"), -held)
