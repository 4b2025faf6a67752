"""Which operations patterns mean, and the records they get when they first run."""

import weakref

import pytest
from torch import nn

from nethook.addresses.op_addresses import OpPattern
from nethook.addresses.tree import Tree
from nethook.errors import NotRunError
from nethook.hooks.ops.consumer import Op, Place
from nethook.tracing.tape.op_records import OpRecords
from nethook.tracing.tape.record import Record
from tests.tracing.asked import state

MODEL = nn.Sequential(nn.Linear(2, 2), nn.ReLU())


def records(*texts):
    return OpRecords(Tree(MODEL), [OpPattern(text) for text in texts], state())


def op(module, name, k=0):
    """The operation `module/name#k`, as the watcher of operations hands it over."""
    order = ["", "0", "1"].index(module)
    found = MODEL.get_submodule(module)
    return Op(Place(order, module, (), weakref.ref(found)), name, k)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("0/add", {("0", "add", 0), ("0", "add", 1)}),
        ("0/add#1", {("0", "add", 1)}),
        ("**/relu", {("1", "relu", 0)}),
        ("/relu", set()),
        ("*/*", {("0", "add", 0), ("0", "add", 1), ("1", "relu", 0)}),
        ("**/*", {("0", "add", 0), ("0", "add", 1), ("1", "relu", 0), ("", "mul", 0)}),
    ],
)
def test_which_operations_a_pattern_means(text, meant):
    every = {("0", "add", 0), ("0", "add", 1), ("1", "relu", 0), ("", "mul", 0)}
    chosen = records(text)
    assert {one for one in every if chosen.means(op(*one))} == meant
    assert chosen.everything == (text == "**/*")


def test_an_operation_that_was_named_has_a_record_before_it_runs():
    assert list(records("0/add#1", "1/relu").records) == ["0/add#1"]
    assert records("0/add#1").open_ended is False
    assert records("1/relu").open_ended is True


def test_calls_in_the_log_are_in_their_records_when_these_are_read():
    chosen = records("**/*")
    first, second = op("0", "add"), op("1", "relu")
    chosen.log += [(first, 0, "a"), (second, 0, "b"), (first, 1, "c")]
    read = chosen.records
    assert {name: list(one.entries) for name, one in read.items()} == {
        "0/add#0": [(0, "a"), (1, "c")],
        "1/relu#0": [(0, "b")],
    }
    assert chosen.log == []
    assert chosen.of(first) is read["0/add#0"]


def test_records_of_operations_join_those_of_modules():
    chosen = records("0/add#0")
    ours = {"0": Record(chosen.state, "0", ("0",), "Linear")}
    chosen.join(ours)
    chosen.log.append((op("1", "relu"), None, "x"))
    assert list(chosen.records) == ["0", "0/add#0", "1/relu#0"]
    assert ours is chosen.records
    assert [one.address for one in chosen.find("**/*")] == ["0/add#0", "1/relu#0"]
    assert chosen.find("1/relu")[0].output == "x"


def test_why_there_is_no_record():
    chosen = records("0/add")
    error = chosen.why_none("0/add")
    assert isinstance(error, NotRunError)
    assert str(error).startswith("'0/add' has not run in this scope: ")
    assert isinstance(chosen.why_none("0/add#3"), NotRunError)  # it lies in what was asked for
    assert chosen.why_none("1/relu") is None
    assert "no module has had such an operation" in str(records("**/relu").why_none("**/relu"))
