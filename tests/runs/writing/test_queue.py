"""Between two threads: bounded, and nobody waits."""

from __future__ import annotations

import threading

import numpy as np

from nethook.runs.writing.queue import WindowQueue
from nethook.runs.writing.waiting import MAX_NOTES
from nethook.stats.sheet import Layout, Sheet, layout_of


def window(layout: Layout, phase: str = "train") -> Sheet:
    made = Sheet(layout, phase)
    made.add_step(0)
    return made


def test_it_takes_so_many_windows_and_no_more() -> None:
    queue, layout = WindowQueue(capacity=2), layout_of([1])
    assert queue.put(window(layout))
    assert queue.put(window(layout))
    assert queue.full()
    assert not queue.put(window(layout))
    assert not queue.put_provisional(window(layout))
    assert queue.put(window(layout), always=True)  # the end of a run is never refused
    assert queue.queued() == 3


def test_windows_come_out_one_by_one_in_order() -> None:
    queue, layout = WindowQueue(), layout_of([1])
    first, second = window(layout), window(layout)
    queue.put(first)
    queue.put(second)
    assert queue.take(windows=False).window is None
    assert queue.take().window is first
    assert queue.take().window is second
    assert queue.take().window is None


def test_a_closed_window_replaces_its_provisional_copy() -> None:
    queue, layout = WindowQueue(), layout_of([1])
    opened = window(layout)
    queue.put_provisional(opened)
    queue.put_provisional(opened)
    assert queue.waiting()
    queue.put(opened)
    assert queue.take().provisional == []


def test_what_is_open_comes_after_all_that_is_closed() -> None:
    queue, layout = WindowQueue(), layout_of([1])
    for _ in range(2):
        queue.put(window(layout))
    queue.put_provisional(window(layout))
    assert queue.take().provisional == []
    assert len(queue.take().provisional) == 1


def test_the_copy_is_a_copy() -> None:
    queue, opened = WindowQueue(), window(layout_of([2]))
    opened.bits[0] = 1
    queue.put_provisional(opened)
    opened.clear()
    (copy,) = queue.take().provisional
    assert copy.bits.tolist() == [1, 0]
    assert copy.steps == 1


def test_buffers_are_used_again_while_the_layout_is_the_same() -> None:
    queue, layout = WindowQueue(), layout_of([1])
    used = window(layout)
    used.rows[...] = 5
    queue.give_back(used)
    again = queue.empty(layout, "eval")
    assert again is used
    assert again.phase == "eval"
    assert again.rows[0, 0] == 0
    queue.give_back(again)
    assert queue.empty(layout_of([1, 1]), "train") is not used  # it has too few rows


def test_notes_are_bounded_and_the_loss_is_counted() -> None:
    queue = WindowQueue()
    for at in range(MAX_NOTES + 10):
        queue.put_note("event", at)
    delivery = queue.take()
    assert len(delivery.notes) == MAX_NOTES
    assert delivery.dropped == 10
    assert delivery.notes[-1] == ("event", MAX_NOTES + 9)


def test_when_it_has_stopped_nothing_piles_up() -> None:
    queue, layout = WindowQueue(), layout_of([1])
    queue.stopped = True
    queue.put_note("event", 1)
    queue.put_catalogue(1)
    assert not queue.put(window(layout), always=True)
    assert not queue.put_provisional(window(layout))
    delivery = queue.take()
    assert (delivery.window, delivery.notes, delivery.catalogue) == (None, [], [])


def test_many_threads_lose_no_note() -> None:
    queue = WindowQueue()
    threads = [
        threading.Thread(target=lambda: [queue.put_note("x", 1) for _ in range(1000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    taken = 0
    while any(thread.is_alive() for thread in threads):
        taken += len(queue.take().notes)
    for thread in threads:
        thread.join()
    assert taken + len(queue.take().notes) == 4000


def test_a_window_with_more_series_keeps_what_it_had() -> None:
    small = window(layout_of([2]))
    small.rows[0] = 7
    small.bits[:] = 1
    small.histograms[0, 5] = 3
    small.seen[0] = 1
    wide = small.widened(layout_of([2, 3]))
    assert (wide.rows[0] == 7).all()
    assert wide.bits.tolist() == [1, 1, 0, 0, 0]
    assert wide.histograms[0, 5] == 3
    assert wide.bits_of(1).size == 3
    assert wide.steps == 1
    assert np.isinf(wide.rows[1]).any()


def test_windows_without_histograms_count_little():
    from nethook.runs.writing.waiting import LIGHT

    queue, layout = WindowQueue(capacity=2), layout_of([1])
    taken = 0
    while True:
        window = Sheet(layout)
        window.carries = False
        if not queue.put(window):
            break
        taken += 1
    assert taken == LIGHT // 2 + 1
    for _ in range(taken):
        assert queue.take().window is not None
    assert queue.queued() == 0
    assert queue.put(Sheet(layout))
    assert queue.put(Sheet(layout))
    assert not queue.put(Sheet(layout))


def test_a_larger_capacity_is_kept_with_histograms_and_without():
    for carries in (True, False):
        queue, layout = WindowQueue(capacity=200), layout_of([1])
        for _ in range(200):
            each = Sheet(layout)
            each.carries = carries
            assert queue.put(each)
        assert queue.full()
        assert not queue.put(Sheet(layout))
