"""Globs, against a second implementation that shares nothing with the first but the rules."""

from __future__ import annotations

import fnmatch
import re
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nethook.addresses.glob import before_op, escape, has_op, is_literal, translate, unescape
from nethook.errors import PatternError


def matches(pattern: str, name: str) -> bool:
    return translate(pattern).fullmatch(name) is not None


# A pattern as a list of parts. `spell` writes it down; `brute` tries every way to use up the name.
# `**.` is one part: it stands for leading segments, also none, where a segment begins.
def spell(parts: list) -> str:
    return "".join(_spell(part) for part in parts)


def _spell(part: tuple) -> str:
    kind, *rest = part
    if kind == "either":
        return "{" + ",".join(spell(option) for option in rest[0]) + "}"
    if kind == "one of":
        negated, chars = rest
        return "[" + "!" * negated + "".join(f"\\{char}" for char in chars) + "]"
    if kind == "itself":
        # A comma separates only inside braces, but may be escaped anywhere.
        return escape(rest[0]) if rest[0] != "," else "\\,"
    return kind


def brute(parts: list, name: str) -> bool:
    return len(name) in _through(parts, name, {0})


def _through(parts: list, name: str, places: set[int]) -> set[int]:
    for part in parts:
        places = {end for at in places for end in _ends(part, name, at)}
    return places


def _ends(part: tuple, name: str, at: int) -> set[int]:
    """Where a part that begins at one place of a name may end."""
    kind, *rest = part
    begins = at == 0 or name[at - 1] == "."
    ends = at == len(name) or name[at] == "."
    later = range(at, len(name) + 1)
    if kind == "*":
        return {end for end in later if "." not in name[at:end]} - (
            {at} if begins and ends else set()
        )
    if kind == "**":
        return set(later) - ({at} if begins and ends else set())
    if kind == "**.":
        return {end for end in later if name[at:end].endswith(".")} | ({at} if begins else set())
    if kind == "either":
        return {end for option in rest[0] for end in _through(option, name, {at})}
    return {at + 1} if at < len(name) and _is_one(kind, rest, name[at]) else set()


def _is_one(kind: str, rest: list, char: str) -> bool:
    if kind == "?":
        return char != "."
    if kind == "one of":
        negated, chars = rest
        return char not in chars + "." if negated else char in chars
    return char == rest[0]


letters = st.sampled_from("ab.,*?[]{}/#\\-!^é\n")
simple = st.one_of(
    st.sampled_from([("*",), ("**",), ("**.",), ("?",)]),
    st.tuples(st.just("itself"), letters),
    st.tuples(st.just("one of"), st.booleans(), st.text("ab-!^]\\[&~", min_size=1, max_size=3)),
)


def _apart(parts: list) -> list:
    """Stars that touch are one run and a dot after a run belongs to it: they are kept apart."""
    kept: list[tuple] = []
    for part in parts:
        after_stars = bool(kept) and kept[-1][0] in ("*", "**")
        stars = part[0].startswith("*")
        if not (after_stars and (stars or part == ("itself", "."))):
            kept.append(part)
    return kept


lists = st.lists(simple, max_size=4).map(_apart)
# A group is kept apart from stars by a letter, for the same reason.
groups = st.tuples(st.just("either"), st.lists(lists, min_size=1, max_size=3))
globs = st.lists(st.one_of(simple, groups), max_size=5).map(
    lambda parts: _apart(
        [
            each
            for part in parts
            for each in ((part, ("itself", "a")) if part[0] == "either" else (part,))
        ]
    )
)
names = st.text("ab.,*-\n", max_size=7)


def _star_then_group(parts: list) -> bool:
    return any(one[0].startswith("*") and two[0] == "either" for one, two in pairwise(parts))


@given(globs.filter(lambda parts: not _star_then_group(parts)), names)
@example([("**.",), ("itself", "a")], "a")
@example([("**",)], "")
@example([("itself", "a"), ("itself", "."), ("**",)], "a")
def test_a_glob_matches_what_brute_force_matches(parts, name):
    assert matches(spell(parts), name) == brute(parts, name), spell(parts)


segments = st.text("ab1_", min_size=1, max_size=4)


@given(st.text("ab1?*", max_size=5).filter(lambda glob: "**" not in glob), segments)
def test_within_one_segment_a_glob_is_what_fnmatch_says(glob, name):
    assert matches(glob, name) == fnmatch.fnmatchcase(name, glob)


@given(st.text("ab1]!-^[", min_size=1, max_size=4), st.sampled_from("ab1]!-^["))
@example("!]a", "]")
@example("]a", "]")
@example("]-a", "^")
def test_brackets_are_what_fnmatch_says_where_they_are_closed(body, char):
    glob = f"[{body}]"
    try:
        answer = matches(glob, char)
    except PatternError:
        return  # fnmatch takes an open bracket for a letter and an empty range for nothing
    assert answer == fnmatch.fnmatchcase(char, glob)


@given(st.text())
def test_an_escaped_name_is_literal_and_means_itself(name):
    assert unescape(escape(name)) == name
    assert is_literal(escape(name))
    assert not has_op(escape(name))
    assert matches(escape(name), name)


@given(st.text("a*?[]{}/#\\.", max_size=6), st.text("a*?[]{}/#\\.", max_size=6))
def test_an_escaped_name_means_nothing_else(name, other):
    assert matches(escape(name), other) == (name == other)


@given(st.text("ab.*?[]{},!\\-/\n", max_size=10))
def test_any_text_is_read_or_refused_with_a_pattern_error(glob):
    with suppress(PatternError):
        translate(glob)


NAMES = ["", "conv1", "fc1", "fc2", "layer1", "layer1.0", "layer1.0.conv1", "layer1.0.conv2"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("", [""]),
        ("*", ["conv1", "fc1", "fc2", "layer1"]),
        ("**", NAMES[1:]),  # every module but the root
        ("***", NAMES[1:]),
        ("**.**", NAMES[1:]),
        ("**.*", NAMES[1:]),
        ("conv*", ["conv1"]),  # anchored at both ends
        ("**.conv*", ["conv1", "layer1.0.conv1", "layer1.0.conv2"]),
        ("**conv1", ["conv1", "layer1.0.conv1"]),
        ("layer1.**", ["layer1.0", "layer1.0.conv1", "layer1.0.conv2"]),
        ("layer1**", ["layer1", "layer1.0", "layer1.0.conv1", "layer1.0.conv2"]),
        ("layer1.**.conv1", ["layer1.0.conv1"]),
        ("layer1.0.**.conv1", ["layer1.0.conv1"]),  # `**.` may stand for no segment
        ("l**1", ["layer1", "layer1.0.conv1"]),
        ("layer1.*", ["layer1.0"]),
        ("fc?", ["fc1", "fc2"]),
        ("layer1?0", []),  # a dot ends a segment, and `?` stays within one
        ("fc[12]", ["fc1", "fc2"]),
        ("fc[!1]", ["fc2"]),
        ("fc[0-1]", ["fc1"]),
        ("{conv,fc}1", ["conv1", "fc1"]),
        ("{fc1,layer1.0.{conv1,conv2}}", ["fc1", "layer1.0.conv1", "layer1.0.conv2"]),
        ("{fc,}{1,2}", ["fc1", "fc2"]),
        ("{layer1.0.,}conv1", ["conv1", "layer1.0.conv1"]),
        ("{layer1.,}**.conv1", ["conv1", "layer1.0.conv1"]),
        ("{**.conv1,fc*}", ["conv1", "fc1", "fc2", "layer1.0.conv1"]),
    ],
)
def test_what_a_glob_matches_in_a_small_network(glob, expected):
    assert [name for name in NAMES if matches(glob, name)] == expected


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        (r"[\]]", "]"),
        (r"[\*]", "*"),
        (r"[!\]]", "a"),
        (r"[a\-z]", "-"),
        (r"{a\,b,c}", "a,b"),
        (r"{a\},c}", "a}"),
        ("[{]", "{"),
        ("{[,],b}", ","),
        ("a\n*", "a\nb"),
        ("a?b", "a\nb"),
        ("größe[ä-ü]", "größeö"),
        ("層*", "層一"),
        ("a,**.b", "a,.b"),
        ("a]b}", "a]b}"),
    ],
)
def test_odd_characters_are_matched(glob, name):
    assert matches(glob, name)


@pytest.mark.parametrize(
    ("glob", "name"),
    [
        (r"[\]]", "\\"),  # the backslash itself is not among the choices
        (r"[a\-z]", "m"),  # an escaped dash makes no range
        ("[!a]", "."),  # what is not listed stays within the segment
        ("a**.b", "ab"),  # no segment begins after the a
        ("x,**.b", "x,b"),
        ("a{**.b,c}", "ab"),
        ("a", "a\n"),
        ("*", "a.b"),
        ("*", ""),  # the root is named by the empty pattern alone
        ("**", ""),
        ("{**,a}", ""),
    ],
)
def test_odd_characters_are_not_matched(glob, name):
    assert not matches(glob, name)


@pytest.mark.parametrize(
    ("glob", "reason", "instead"),
    [
        ("fc[12", "'[' is not closed", r"fc\[12"),
        ("fc[", "'[' is not closed", r"fc\["),
        ("fc[]", "'[' is not closed", r"fc\[\]"),
        ("fc[!]", "'[' is not closed", r"fc\[!\]"),
        ("fc[a\\", "'[' is not closed", "fc\\[a\\\\"),
        ("{a,b", "'{' is not closed", r"\{a,b"),
        ("{a,{b}", "'{' is not closed", r"\{a,\{b\}"),
        ("*a\\", "a backslash at the end escapes nothing", "\\*a\\\\"),
        ("[z-a]", "the range z-a is empty: write a-z", r"\[z-a\]"),
        (r"a\*[b", "'[' is not closed", r"a\*\[b"),  # what was escaped is not escaped twice
    ],
)
def test_what_cannot_be_read_is_said_with_what_to_type(glob, reason, instead):
    with pytest.raises(PatternError) as caught:
        translate(glob)
    assert str(caught.value) == (
        f"the pattern {glob!r} cannot be read: {reason}. To mean one of the characters "
        f"* ? [ ] {{ }} / # itself, put a backslash before it: {instead!r}."
    )
    assert is_literal(instead)


@pytest.mark.parametrize("literal", ["", "a.b", r"a\*b", r"\[0\]", "a}", "a]", "a,b", "a/b", "a\\"])
def test_what_has_no_wildcard_is_literal(literal):
    assert is_literal(literal)


@pytest.mark.parametrize("glob", ["*", "a?", "a[0]", "{a}", r"\\*"])
def test_what_has_a_wildcard_is_not_literal(glob):
    assert not is_literal(glob)


@pytest.mark.parametrize(
    ("pattern", "module"),
    [("fc/relu", "fc"), ("/add#0", ""), (r"a\/b/relu", r"a\/b"), ("**.fc/*", "**.fc")],
)
def test_an_op_address_is_seen_and_its_module_told_apart(pattern, module):
    assert has_op(pattern)
    assert before_op(pattern) == module


@pytest.mark.parametrize("pattern", ["fc", r"a\/b", "a#1"])
def test_a_name_is_no_op_address(pattern):
    assert not has_op(pattern)


def test_a_long_name_and_many_stars_do_not_hang():
    assert not matches("**a**a**a*b", ".".join(["a"] * 60))
    assert re.compile(translate("{a,b}" * 200).pattern)
