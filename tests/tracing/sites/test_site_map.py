"""A site map as plain data: chosen from, read by name, written out, drawn."""

import json
import re

import pytest
from torch import nn

from nethook.errors import NoSuchSiteError, OptionError, PatternError
from nethook.hooks.process.source_line import Source
from nethook.tracing.sites.site_map import SiteInfo, SiteMap


def row(number, address, kind, name, depth, around, cls=None, names=(), **more):
    """One site; what is not said is empty."""
    given = {
        "shapes": ((2, 3),),
        "dtypes": ("float32",),
        "input_shapes": (),
        "parameters": (),
        "source": None,
        "calls": 1,
    }
    return SiteInfo(
        address=address, kind=kind, type=name, depth=depth, module=None, cls=cls, number=number,
        names=names or (address,), around=around, **(given | more),
    )  # fmt: skip


ROWS = (
    row(0, "", "module", "Net", 0, (), nn.Module),
    row(1, "fc", "module", "Linear", 1, (0,), nn.Linear, ("fc", "tied"), parameters=("fc.weight",)),
    row(2, "fc/linear#0", "op", "linear", 2, (0, 1), names=("fc/linear#0", "tied/linear#0")),
    row(3, "/relu#0", "op", "relu", 1, (0,), source=Source("net.py", 7), calls=2),
)
MAP = SiteMap(
    ROWS, (("", 0), ("fc", 0), ("fc/linear#0", 0), ("/relu#0", 0), ("/relu#0", 1)), ("x",)
)


def chosen(found):
    return [one.address for one in found]


@pytest.mark.parametrize(
    ("choice", "addresses"),
    [
        ({"pattern": "f*"}, ["fc"]),
        ({"pattern": "tied"}, ["fc"]),
        ({"pattern": "**/*"}, ["fc/linear#0", "/relu#0"]),
        ({"pattern": "tied/linear"}, ["fc/linear#0"]),
        ({"pattern": re.compile(".*relu.*")}, ["/relu#0"]),
        ({"type": nn.Linear}, ["fc"]),
        ({"type": "relu"}, ["/relu#0"]),
        ({"depth": 0}, [""]),
        ({"kind": "op", "depth": 1}, ["/relu#0"]),
        ({}, ["", "fc", "fc/linear#0", "/relu#0"]),
    ],
)
def test_a_filter_takes_the_sites_that_all_of_it_means(choice, addresses):
    assert chosen(MAP.filter(**choice)) == addresses


def test_a_smaller_map_keeps_the_order_of_its_own_calls():
    assert MAP["/relu"].order == (("/relu#0", 0), ("/relu#0", 1))
    assert MAP.modules == ROWS[:2]
    assert MAP.ops == ROWS[2:]
    assert (len(MAP), "tied" in MAP, "y" in MAP) == (4, True, False)


def test_a_site_is_read_by_any_of_its_names():
    assert MAP.site("tied") is MAP.site("fc") is ROWS[1]
    for address, said in (
        ("fd", r"no site of this forward matches 'fd'\..*fc"),
        ("x", "'x' was not called in this forward; it is a module of the model"),
    ):
        with pytest.raises(NoSuchSiteError, match=said):
            MAP.site(address)


def test_wrong_arguments_are_refused_in_one_form():
    with pytest.raises(OptionError) as error:
        MAP.filter(kind="tensor")
    assert str(error.value) == '`kind` must be "module", "op" or None; got \'tensor\'.'
    with pytest.raises(PatternError) as error:
        MAP.filter(nn.Linear)
    assert str(error.value) == (
        "`pattern` must be a name, a glob, module/op#k or a compiled regular expression; got type. "
        "To choose by class, write .filter(type=...)."
    )
    with pytest.raises(NoSuchSiteError, match="no site of this forward is meant by that filter"):
        MAP.filter(type=nn.Conv2d)


def test_it_is_json():
    data = json.loads(json.dumps(MAP.to_dict()))
    assert [one["address"] for one in data["sites"]] == chosen(MAP)
    assert data["order"][-1] == ["/relu#0", 1]
    assert data["uncalled"] == ["x"]
    assert data["sites"][3] | {"file": "net.py", "line": 7, "calls": 2} == data["sites"][3]


def test_it_is_drawn_with_every_site_below_the_nearest_one_around_it():
    lines = MAP.tree().splitlines()
    assert "2 modules, 2 operations; 1 not called" in lines[0]
    column = {name: next(line.find(name) for line in lines if name in line) for name in
              ("fc ", "fc/linear#0", "/relu#0 ")}  # fmt: skip
    assert column["fc "] == column["/relu#0 "] < column["fc/linear#0"]
    without = MAP.filter(kind="op").tree()
    assert "Linear" not in without
    assert "not called" not in without
