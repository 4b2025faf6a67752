"""The tree of errors: as drawn, under one base, each of the type that a caller would expect."""

from __future__ import annotations

import ast
import copy
import pickle
import re
from pathlib import Path

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


# What a message about an argument must look like, from its first word to its full stop ...
TEMPLATE = re.compile(r"`[^`]+`.* must .*; got .*[.}]", re.DOTALL)
# ... and those about two arguments at once.
OF_TWO = re.compile(r"was given twice|exclude each other|needs `resume=True`; got")


def argument_errors(source: str) -> list[str]:
    """The texts of the errors in a program that begin with the name of an argument."""
    texts = []
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and call.args and _is_of_arguments(call.func):
            texts.append(_text_of(call.args[0]))
    return [text for text in texts if text.startswith("`")]


def _is_of_arguments(error: ast.expr) -> bool:
    return isinstance(error, ast.Name) and error.id in ("OptionError", "ValueError", "TypeError")


def _text_of(node: ast.expr) -> str:
    """A text as it is written, with {} for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text_of, node.values))
    if isinstance(node, ast.BinOp):
        return _text_of(node.left) + _text_of(node.right)
    return str(node.value) if isinstance(node, ast.Constant) else "{}"


def follows_the_template(text: str) -> bool:
    return bool(TEMPLATE.fullmatch(text) or OF_TWO.search(text))


def test_errors_about_arguments_follow_one_template():
    sources = Path(errors.__file__).parent.rglob("*.py")
    texts = [text for path in sources for text in argument_errors(path.read_text("utf-8"))]
    assert len(texts) > 60
    assert [text for text in texts if not follows_the_template(text)] == []


@pytest.mark.parametrize(
    "source",
    [
        "raise OptionError(f'`limit` is at least 1, and is {limit}.')",
        "raise ValueError(f'`limit` must be at least 1.')",
        "raise TypeError(f'`limit` must be an int; got {kind}' + ' as ever')",
    ],
)
def test_the_search_for_other_templates_can_fail(source):
    [text] = argument_errors(source)
    assert not follows_the_template(text)
