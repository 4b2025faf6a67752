"""Between two threads: bounded, and nobody waits."""

from __future__ import annotations

import threading

import numpy as np

from nethook.runs.format.window import Layout, Window, layout_of
from nethook.runs.writing.queue import MAX_NOTES, Mailbox


def window(layout: Layout, phase: str = "train") -> Window:
    made = Window(layout, phase)
    made.add_step(0)
    return made


def test_it_takes_so_many_windows_and_no_more() -> None:
    mailbox, layout = Mailbox(capacity=2), layout_of([1])
    assert mailbox.put(window(layout))
    assert mailbox.put(window(layout))
    assert mailbox.full()
    assert not mailbox.put(window(layout))
    assert not mailbox.put_provisional(window(layout))
    assert mailbox.put(window(layout), always=True)  # the end of a run is never refused
    assert mailbox.queued() == 3


def test_windows_come_out_one_by_one_in_order() -> None:
    mailbox, layout = Mailbox(), layout_of([1])
    first, second = window(layout), window(layout)
    mailbox.put(first)
    mailbox.put(second)
    assert mailbox.take(windows=False).window is None
    assert mailbox.take().window is first
    assert mailbox.take().window is second
    assert mailbox.take().window is None


def test_a_closed_window_replaces_its_provisional_copy() -> None:
    mailbox, layout = Mailbox(), layout_of([1])
    opened = window(layout)
    mailbox.put_provisional(opened)
    mailbox.put_provisional(opened)
    assert mailbox.waiting()
    mailbox.put(opened)
    assert mailbox.take().provisional == []


def test_what_is_open_comes_after_all_that_is_closed() -> None:
    mailbox, layout = Mailbox(), layout_of([1])
    for _ in range(2):
        mailbox.put(window(layout))
    mailbox.put_provisional(window(layout))
    assert mailbox.take().provisional == []
    assert len(mailbox.take().provisional) == 1


def test_the_copy_is_a_copy() -> None:
    mailbox, opened = Mailbox(), window(layout_of([2]))
    opened.bits[0] = 1
    mailbox.put_provisional(opened)
    opened.clear()
    (copy,) = mailbox.take().provisional
    assert copy.bits.tolist() == [1, 0]
    assert copy.steps == 1


def test_buffers_are_used_again_while_the_layout_is_the_same() -> None:
    mailbox, layout = Mailbox(), layout_of([1])
    used = window(layout)
    used.rows[...] = 5
    mailbox.give_back(used)
    again = mailbox.empty(layout, "eval")
    assert again is used
    assert again.phase == "eval"
    assert again.rows[0, 0] == 0
    mailbox.give_back(again)
    assert mailbox.empty(layout_of([1]), "train") is not used  # another run's layout


def test_notes_are_bounded_and_the_loss_is_counted() -> None:
    mailbox = Mailbox()
    for at in range(MAX_NOTES + 10):
        mailbox.put_note("event", at)
    delivery = mailbox.take()
    assert len(delivery.notes) == MAX_NOTES
    assert delivery.dropped == 10
    assert delivery.notes[-1] == ("event", MAX_NOTES + 9)


def test_when_it_has_stopped_nothing_piles_up() -> None:
    mailbox, layout = Mailbox(), layout_of([1])
    mailbox.stopped = True
    mailbox.put_note("event", 1)
    mailbox.put_catalogue(1)
    assert not mailbox.put(window(layout), always=True)
    assert not mailbox.put_provisional(window(layout))
    delivery = mailbox.take()
    assert (delivery.window, delivery.notes, delivery.catalogue) == (None, [], [])


def test_many_threads_lose_no_note() -> None:
    mailbox = Mailbox()
    threads = [
        threading.Thread(target=lambda: [mailbox.put_note("x", 1) for _ in range(1000)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    taken = 0
    while any(thread.is_alive() for thread in threads):
        taken += len(mailbox.take().notes)
    for thread in threads:
        thread.join()
    assert taken + len(mailbox.take().notes) == 4000


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
    from nethook.runs.writing.queue import LIGHT

    mailbox, layout = Mailbox(capacity=2), layout_of([1])
    taken = 0
    while True:
        window = Window(layout)
        window.carries = False
        if not mailbox.put(window):
            break
        taken += 1
    assert taken == LIGHT // 2 + 1
    for _ in range(taken):
        assert mailbox.take().window is not None
    assert mailbox.queued() == 0
    assert mailbox.put(Window(layout))
    assert mailbox.put(Window(layout))
    assert not mailbox.put(Window(layout))


def test_a_larger_capacity_is_kept_with_histograms_and_without():
    for carries in (True, False):
        mailbox, layout = Mailbox(capacity=200), layout_of([1])
        for _ in range(200):
            each = Window(layout)
            each.carries = carries
            assert mailbox.put(each)
        assert mailbox.full()
        assert not mailbox.put(Window(layout))
