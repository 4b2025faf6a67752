"""Going on in a run: the same model, and what has changed meanwhile."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from nethook.errors import OtherModelError
from nethook.runs.format.owner import this_process
from nethook.runs.format.schema import TABLES
from nethook.runs.format.texts import from_json
from nethook.runs.writing.resume import begin_session, changed, check_same_model
from nethook.runs.writing.store import Store

KEPT = {"": ("Net", {}), "fc": ("Linear", {}), "fc.weight": ("parameter", {"shape": [3, 4]})}
SAME = {"": ("Net", None), "fc": ("Linear", None), "fc.weight": ("parameter", (3, 4))}


def refused(model) -> str:
    with pytest.raises(OtherModelError) as refusal:
        check_same_model(Path("runs/a.db"), KEPT, model)
    assert refusal.value.differences in str(refusal.value)
    return str(refusal.value)


def test_the_same_model_may_go_on() -> None:
    check_same_model(Path("a.db"), KEPT, SAME)
    check_same_model(Path("a.db"), {}, SAME)  # cut off before its first step
    check_same_model(Path("a.db"), KEPT, {**SAME, "fc": ("FSDPLinear", None)})


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({**SAME, "fc": ("Conv2d", None)}, "'fc' is Conv2d and was Linear"),
        ({**SAME, "": ("Other", None)}, "the model is Other and was Net"),
        ({**SAME, "fc.weight": ("parameter", (4, 3))}, "has shape [4, 3] and had [3, 4]"),
        ({**SAME, "more": ("Linear", None)}, "'more' is new"),
        ({name: SAME[name] for name in ("", "fc")}, "'fc.weight' is missing"),
    ],
)
def test_another_one_is_refused_with_what_differs(model, words) -> None:
    message = refused(model)
    assert words in message
    assert message.endswith("to='runs/{time}.db'.")


def test_of_many_differences_some_are_named() -> None:
    message = refused({**SAME, **{f"more{index}": ("Linear", None) for index in range(10)}})
    assert message.count(" is new") == 6
    assert "(and 4 more)" in message


def test_what_is_not_as_it_was() -> None:
    before = {"command": ["a", "b"], "versions": {"torch": "2.8", "numpy": "2"}, "git": None}
    after = {"command": ("a", "b"), "versions": {"torch": "2.9", "python": "3"}, "started": 3}
    assert changed(before, after) == {
        "versions.torch": ["2.8", "2.9"],
        "versions.numpy": ["2", None],
        "versions.python": [None, "3"],
    }
    assert changed({}, {"command": ["a"], "devices": ["cpu"]}) == {}
    assert changed({"world_size": 1}, {"world_size": 2}) == {"world_size": [1, 2]}


@pytest.fixture
def store():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in TABLES.values():
            connection.execute(statement)
        made = Store(connection, this_process())
        made.begin()
        yield made


def info(store: Store) -> dict:
    rows = store._connection.execute("SELECT key, value FROM info").fetchall()
    return {name: from_json(value) for name, value in rows}


def test_the_first_session_begins_with_the_first_step(store: Store) -> None:
    assert begin_session(store, {}, {"command": ["a"]}, None) == 0
    kept = info(store)
    assert kept["command"] == ["a"]
    assert [session["first_step"] for session in kept["sessions"]] == [0]
    assert store._connection.execute("SELECT count(*) FROM events").fetchone() == (0,)


def test_a_later_one_says_what_the_gap_was(store: Store) -> None:
    begin_session(store, {}, {"command": ["a"]}, None)
    earlier = {**info(store), "finished": time.time() - 7500}
    store.last_step = 9
    # Nothing is in the tables, so the last step that is kept is read again as none.
    assert begin_session(store, earlier, {"command": ["b"]}, 12) == 12
    ((message, data),) = store._connection.execute("SELECT message, data FROM events").fetchall()
    assert message.startswith("continued after step 9, 2 h 5 min after it had stopped; ")
    assert message.endswith("; command changed")
    said = from_json(data)
    assert (said["session"], said["last_step"], said["first_step"]) == (2, 9, 12)
    assert said["changed"] == {"command": [["a"], ["b"]]}
    assert len(info(store)["sessions"]) == 2
