"""What a resumed run knew before, and what it knows of both sessions together."""

from __future__ import annotations

import pytest

from nethook.watching.facts.earlier import added, with_earlier


def test_counts_are_added_by_name_and_inside_names():
    now = {"train": 3, "optimizer": {"0": 2, "1": 1}}
    before = {"train": 4, "eval": 5, "optimizer": {"0": 7}}
    assert added(now, before) == {"train": 7, "eval": 5, "optimizer": {"0": 9, "1": 1}}


@pytest.mark.parametrize("before", [None, [], "text", 3, {"train": "many", "odd": None}])
def test_what_a_damaged_file_says_counts_as_nothing(before):
    assert added({"train": 3}, before)["train"] == 3


def test_a_new_run_has_no_earlier_facts():
    info = {"calls": {"train": 1}}
    assert with_earlier(info, None, 0) is info
    assert with_earlier(info, {}, 0) is info
    assert with_earlier(info, "damaged", 0) is info


def test_facts_of_a_parameter_are_those_of_both_sessions():
    info = {"steps": 3, "with_grad": 2, "moved": [1, 2], "rows": 4, "shape": [2]}
    earlier = {"steps": 10, "with_grad": 9, "moved": [5, 6], "rows": 8, "distinct_rows": {"0": 4}}
    both = with_earlier(info, earlier, 10)
    assert both == {
        "steps": 13, "with_grad": 11, "moved": [6, 8], "rows": 8, "distinct_rows": {"0": 4},
        "shape": [2],
    }  # fmt: skip
    assert info["steps"] == 3  # it is another dict


def test_rows_at_the_start_are_those_of_the_first_session():
    both = with_earlier({"distinct_rows": {"0": 1}}, {"distinct_rows": {"0": 4}}, 5)
    assert both["distinct_rows"] == {"0": 4}


def test_what_a_site_was_before_its_first_call_in_this_session():
    earlier = {"shape": [8, 4], "first_call": 2, "calls": {"train": 7}}
    assert with_earlier({"calls": {"train": 0}}, earlier, 3) == {
        "calls": {"train": 7}, "shape": [8, 4], "first_call": 2,
    }  # fmt: skip
    assert with_earlier({"shape": [9, 4]}, earlier, 3)["shape"] == [9, 4]


def test_modes_of_steps_that_are_done_anew_are_those_of_now():
    earlier = {"modes": [[0, "train", True], [4, "eval", False], [9, "train", False], "damaged"]}
    info = {"modes": [[5, "train", True], [6, "eval", True]]}
    assert with_earlier(info, earlier, 5)["modes"] == [
        [0, "train", True], [4, "eval", False], [6, "eval", True],
    ]  # fmt: skip


@pytest.mark.parametrize("moved", [None, [1], "text", [1, "two"]])
def test_damaged_counts_of_moves_are_none(moved):
    assert with_earlier({"moved": [1, 2]}, {"moved": moved}, 0)["moved"][1] == 2
