"""The tables of a run behind the writer's verbs: what is kept, and what a rollback forgets."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from nethook.errors import RunInUseError
from nethook.runs.format.owner import this_process
from nethook.runs.format.records import COLUMNS, unpack_rows
from nethook.runs.format.schema import LEVELS, TABLES, key
from nethook.runs.format.texts import from_json
from nethook.runs.writing import store as store_module
from nethook.runs.writing.store import (
    Event,
    LossRecord,
    NewSeries,
    NewSite,
    Store,
    layout_info,
)
from nethook.stats.sheet import Sheet, layout_of
from tests.runs.made import UNITS, fold


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for statement in TABLES.values():
            made.execute(statement)
        yield made


@pytest.fixture
def store(connection):
    made = Store(connection, this_process())
    made.begin()
    for index in range(3):
        made.add_series(NewSeries(index, f"layer{index}", "outputs", UNITS, {}))
    return made


def window(step, phase="train"):
    made = Sheet(layout_of([UNITS] * 3), phase)
    fold(made, step, range(3))
    return made


def rows_of(connection, table):
    return connection.execute(f"SELECT * FROM {table}").fetchall()


def dump(connection):
    """All tables, without times."""
    return {
        name: connection.execute(f"SELECT * FROM {name} ORDER BY 1").fetchall()
        for name in TABLES
        if name not in ("info", "windows")
    }


def test_a_window_comes_back_from_its_record(store, connection):
    mine = window(0)
    store.add_window(mine)
    ((packed, data),) = rows_of(connection, "records")
    assert packed == key("train", 0)
    ((_, series, numbers),) = unpack_rows([data], 0, store.basis)
    assert series.tolist() == [0, 1, 2]
    np.testing.assert_allclose(numbers[0, :, :-1], mine.rows, rtol=1e-12, atol=1e-12)
    assert numbers[0, :, COLUMNS.index("seen")].tolist() == [1, 1, 1]
    assert store.last_step == 0


def test_an_open_window_is_replaced_by_the_closed_one(store, connection):
    store.add_window(window(0), closed=False)
    assert store.last_step == -1
    store.add_window(window(0))
    ((packed, *_, closed, _, _),) = rows_of(connection, "windows")
    assert (packed, closed) == (key("train", 0), 1)


def test_overviews_are_written_as_they_fill(store, connection):
    for step in range(LEVELS[0]):
        assert rows_of(connection, "overviews") == []
        store.add_window(window(step))
    assert [row[0] for row in rows_of(connection, "overviews")] == [key("train", 0, level=1)]
    store.add_window(window(3, "eval"))  # a phase has windows and groups of its own
    assert len(rows_of(connection, "overviews")) == 1


def test_a_store_that_is_made_anew_goes_on_as_if_it_had_not_been(store, connection):
    other = sqlite3.connect(":memory:", isolation_level=None)
    for step in range(3):
        store.add_window(window(step))
    store.commit()
    connection.backup(other)
    again = Store(other, this_process())
    for mine in (store, again):
        mine.begin()
        for step in range(3, 10):
            mine.add_window(window(step))
        mine.commit()
    assert dump(connection)["records"] == dump(other)["records"]
    assert dump(connection)["overviews"] == dump(other)["overviews"]
    assert again.last_step == 9
    other.close()


def test_a_rollback_forgets_all_since_the_last_commit(store, connection):
    store.add_window(window(0))
    store.commit()
    before = dump(connection)
    store.begin()
    store.add_window(window(1))
    store.add_series(NewSeries(3, "more", "outputs", 0, {}))
    store.add_event(Event(1, 0.0, "mode", "", "", {}))
    store.rollback()
    assert dump(connection) == before
    assert len(store.basis) == 3
    assert store.last_step == 0
    assert ("more", "outputs") not in store.series


def test_sites_and_series_are_kept_once(store, connection):
    store.add_site(NewSite("fc", "Linear", {"a": 1}))
    store.add_site(NewSite("fc", "Conv2d", {"a": 2}))
    assert store.sites() == {"fc": ("Conv2d", {"a": 2})}
    store.add_series(NewSeries(1, "layer1", "outputs", UNITS, {}))
    assert len(rows_of(connection, "series")) == 3


def test_of_many_events_the_first_are_kept_and_the_rest_counted(store, connection, monkeypatch):
    monkeypatch.setattr(store_module, "MAX_EVENTS", 3)
    for step in range(8):
        store.add_event(Event(step, 0.0, "mode", "", "token=abc123def456", {}))
    store.add_event(Event(9, 0.0, "clock", "", "", {}))
    events = connection.execute("SELECT step, kind, repeats, message FROM events").fetchall()
    assert [event[:3] for event in events] == [
        (0, "mode", 0), (1, "mode", 0), (2, "mode", 5), (9, "clock", 0),
    ]  # fmt: skip
    assert not any("abc123def456" in event[3] for event in events)


def test_of_many_losses_every_second_then_every_fourth_stays(store, connection, monkeypatch):
    monkeypatch.setattr(store_module, "MAX_LOSSES", 4)
    for step in range(17):
        store.add_loss(LossRecord("a.py:1", step, "train", {"n": step}))
    kept = [step for (step,) in connection.execute("SELECT step FROM losses ORDER BY number")]
    strides = {later - earlier for earlier, later in itertools.pairwise(kept)}
    assert kept[0] == 0
    assert len(strides) == 1
    assert strides <= {4, 8}
    assert len(kept) <= 5


def test_findings_replace_those_before(store, connection):
    store.put_findings([{"code": "a", "severity": "error"}, {"code": "b", "severity": "info"}])
    store.put_findings([{"code": "c", "severity": "warning", "more": 1}])
    ((_, code, severity, data),) = rows_of(connection, "findings")
    assert (code, severity) == ("c", "warning")
    assert from_json(data)["more"] == 1


def test_a_run_that_another_process_took_over_is_not_written(store, connection):
    store.put_info({"writer": {**this_process(), "token": "another", "pid": 7}})
    store.commit()
    with pytest.raises(RunInUseError, match="process 7 took the run over"):
        store.begin()


def test_the_layout_says_what_a_reader_needs():
    assert layout_info()["columns"] == list(COLUMNS)
    assert layout_info()["levels"] == list(LEVELS)
