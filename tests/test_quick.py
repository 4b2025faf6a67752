"""The choice of the quick tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.quick import (
    CASES,
    EXAMPLES,
    NAMES,
    SLOW,
    TESTS,
    chosen,
    first_cases,
    is_left_out,
    takes_first_cases,
    try_few_examples,
)

SLOW_FILE = "running/test_scripts.py"
SLOW_TEST = next(name for name in sorted(NAMES) if "::" in name and "[" not in name)
SLOW_CASE = next(name for name in sorted(NAMES) if "[" in name)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_what_is_left_out_is_there(name: str) -> None:
    file, _, test = name.partition("[")[0].partition("::")
    assert (TESTS / file).exists()
    assert not test or f"def {test}(" in (TESTS / file).read_text(encoding="utf-8")


def test_nothing_is_left_out_twice() -> None:
    names = [name for names in SLOW.values() for name in names]
    assert len(names) == len(set(names))
    folders = [name for name in names if not name.partition("::")[0].endswith(".py")]
    assert [name for name in names for folder in folders if name.startswith(f"{folder}/")] == []


def test_a_slow_file_is_left_out_unless_it_is_named() -> None:
    path = TESTS / SLOW_FILE
    assert is_left_out(path, [])
    assert is_left_out(path, ["tests/running", "tests/hooks/test_order.py"])
    assert not is_left_out(path, [f"tests/{SLOW_FILE}"])
    assert not is_left_out(path, [f"tests/{SLOW_FILE}::test_every_script_is_run"])
    assert not is_left_out(TESTS / "modes", ["tests/modes/test_matrix.py"])
    assert not is_left_out(TESTS / "running" / "test_verdict.py", [])
    assert not is_left_out(TESTS.parent / "zoo", [])


def test_the_first_cases_of_every_test_are_taken() -> None:
    tests: list[tuple[str, dict[str, Any]]] = [
        ("tests/a.py::test_one", {}),
        *((f"tests/a.py::test_two[{size}]", {"size": size}) for size in range(9)),
        (f"tests/{SLOW_TEST}[first]", {}),
    ]
    assert chosen(tests, []) == [True, *([True] * CASES), *([False] * (9 - CASES)), False]
    assert chosen(tests, [f"tests/{SLOW_TEST}"])[-1]
    assert chosen(tests, [f"tests/{SLOW_TEST}[first]"])[-1]


def test_only_cases_that_may_be_taken_are_collected() -> None:
    sizes = [SimpleNamespace(params={"size": size}) for size in range(9)]
    assert first_cases(sizes) == sizes[:CASES]
    exhibits = [SimpleNamespace(params={"exhibit": size}) for size in range(9)]
    assert first_cases(exhibits) == exhibits
    assert first_cases([]) == []


def test_all_cases_are_collected_where_the_command_asks_for_one() -> None:
    assert takes_first_cases([])
    assert takes_first_cases(["tests/a.py", "tests/a.py::test_two"])
    assert not takes_first_cases(["tests/a.py", "tests/a.py::test_two[8]"])
    assert not takes_first_cases([], only_failures=True)


def test_an_exhibit_that_is_slow_in_one_test_goes_to_another() -> None:
    test, _, name = SLOW_CASE.removesuffix("]").partition("[")
    exhibit = {"exhibit": SimpleNamespace(name=name)}
    tests = [(f"tests/{SLOW_CASE}", exhibit), (f"tests/zoo.py::test_other[{name}]", exhibit)]
    assert chosen(tests, []) == [False, True]
    assert chosen(tests[:1], [f"tests/{SLOW_CASE}"]) == [True]
    assert chosen(tests[:1], [f"tests/{test}"]) == [True]


@pytest.mark.parametrize(("asked", "tried"), [(3, 3), (EXAMPLES * 4, EXAMPLES)])
def test_hypothesis_tries_few_examples_whatever_a_test_asks_for(asked: int, tried: int) -> None:
    seen = []

    @settings(max_examples=asked, database=None)
    @given(st.integers())
    def some_test(number: int) -> None:
        seen.append(number)

    try_few_examples(SimpleNamespace(function=some_test))
    some_test()
    assert len(seen) == tried


def test_every_exhibit_is_run_once_and_every_test_of_exhibits_gets_some() -> None:
    exhibits = [SimpleNamespace(name=f"exhibit {number}") for number in range(30)]
    tests: list[tuple[str, dict[str, Any]]] = [
        (f"tests/zoo.py::test_{number}[{exhibit.name}]", {"exhibit": exhibit})
        for number in range(4)
        for exhibit in exhibits
        if not (number == 3 and exhibit is exhibits[0])  # one that some test cannot take
    ]
    taken = [test for test, is_taken in zip(tests, chosen(tests, []), strict=True) if is_taken]
    assert sorted(parameters["exhibit"].name for _, parameters in taken) == sorted(
        exhibit.name for exhibit in exhibits
    )
    assert {name.partition("[")[0] for name, _ in taken} == {
        name.partition("[")[0] for name, _ in tests
    }
