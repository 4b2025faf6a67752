"""The tree of errors: as drawn, under one base, each of the type that a caller would expect."""

from __future__ import annotations

import copy
import pickle
import re

import pytest

from nethook import errors

ERRORS = {
    name: error
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, Exception)
}
# One line of the drawing: how deep, the name, the standard type.
DRAWN = re.compile(r"^    ([│├└─ ]*)(\w+Error)(?: +\((\w+)\))?", re.MULTILINE)


def _drawn() -> dict[str, tuple[str | None, str | None]]:
    """Each error of the drawing with the one it hangs below, and its standard type."""
    above: dict[int, str] = {}
    tree = {}
    for lines, name, standard in DRAWN.findall(errors.__doc__):
        depth = len(lines) // 4
        above[depth] = name
        tree[name] = (above.get(depth - 1), standard or None)
    return tree


def test_the_drawing_shows_every_error():
    assert _drawn().keys() == ERRORS.keys()


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_hangs_where_it_is_drawn_and_is_the_standard_type(name):
    error, (parent, standard) = ERRORS[name], _drawn()[name]
    bases = [base.__name__ for base in error.__bases__]
    assert bases == [each for each in (parent or "Exception", standard) if each]


@pytest.mark.parametrize("error", ERRORS.values())
def test_every_error_is_under_one_base_and_says_what_it_is(error):
    assert issubclass(error, errors.NethookError)
    assert error.__doc__


def test_except_clauses_that_exist_keep_working():
    assert issubclass(errors.NoSuchSiteError, KeyError)
    assert issubclass(errors.NoSuchSiteError, LookupError)
    for error in (errors.NotRunError, errors.SeveralCallsError, errors.OverwrittenError):
        assert issubclass(error, LookupError)


@pytest.mark.parametrize("error", ERRORS.values())
def test_a_message_is_shown_as_it_was_written(error):
    text = "no module matches 'fc'.\nClosest: \"fc1\"."
    assert str(error(text)) == text  # a KeyError alone would show its repr


@pytest.mark.parametrize("error", ERRORS.values())
def test_an_error_travels_between_processes(error):
    for again in (pickle.loads(pickle.dumps(error("text"))), copy.copy(error("text"))):
        assert type(again) is error
        assert str(again) == "text"
