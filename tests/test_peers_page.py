"""The tables of docs/compare.md: made from what was measured, and of nothing else."""

from __future__ import annotations

from typing import Any

from tools.peers_page import END, PAGES, PARTS, capture, mark, page, sweep, watching

CHECKS = {
    "values": "bit-identical",
    "output": "bit-identical",
    "twice": "both calls",
    "overwritten": "right",
    "compiled": "error: AttributeError: 'Net' has no attribute 'config'",
    "left": "nothing",
}
MEASURED: dict[str, Any] = {
    "steps": 1,
    "ways": {
        "nethook": {
            "seconds": 0.0051, "clock": 0.006, "megabytes": 1.25, "checks": CHECKS,
            "package": "nethook", "version": "0.2.0",
        },
        "baukit": {"left_out": "it is on no registry", "package": "baukit", "version": ""},
        "nnsight": {
            "seconds": 2.0, "clock": 2.0, "megabytes": 3.0, "checks": CHECKS,
            "package": "nnsight", "version": "0.8.1",
        },
    },
}  # fmt: skip
SWEEP: list[dict[str, Any]] = [
    {
        "width": 64, "blocks": 12, "positions": 16,
        "seconds": {"hand loop": 0.8, "nethook batched": 0.1, "nnsight": 1.6},
        "versions": {"nnsight": "0.8.1"},
    }
]  # fmt: skip


def test_capture_has_times_answers_and_what_was_left_out() -> None:
    lines = capture(MEASURED).splitlines()
    assert lines[2].startswith("| nethook | 5.1 ms | 1.2 MB | bit-identical |")
    assert "error (`AttributeError`)" in lines[2]
    assert lines[3].startswith("| nnsight (0.8.1) | 2 s | 3.0 MB |")
    assert lines[-1] == "Left out: baukit: it is on no registry."


def test_watching_is_against_a_training_that_nobody_watches() -> None:
    checks = {"bytes": "9 per step", "training": "bit-identical", "left": "nothing", "nan": "–"}
    way = {"clock": 1.0, "megabytes": 0.0, "checks": checks, "package": "torch", "version": ""}
    ways = {"nobody watches": {**way, "seconds": 0.2}, "notes": {**way, "seconds": 0.3}}
    made = watching({"steps": 100, "ways": ways})
    assert "A step takes 2 ms where nobody watches." in made
    assert "| notes | 1.50× | 1.00× |" in made


def test_sweeps_are_against_the_hand_loop() -> None:
    assert sweep(SWEEP).splitlines()[2:] == [
        "| hand loop | 800 ms (1.0) |",
        "| nethook batched | 100 ms (8.0) |",
        "| nnsight (0.8.1) | 1.6 s (0.5) |",
    ]


def test_the_short_table_has_what_was_measured() -> None:
    text = f"{mark('short')}\n{END}\n"
    made = page(text, {"capture": MEASURED, "sweep": SWEEP})
    assert "| outputs of 12 blocks of a GPT-2 | 5.1 ms | nnsight 2 s |" in made
    assert "| patching 192 places of it | 100 ms | hand loop 800 ms, nnsight 1.6 s |" in made
    assert page(made, {"capture": MEASURED, "sweep": SWEEP}) == made


def test_the_page_has_a_place_for_every_part() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    for part in PARTS:
        assert text.count(mark(part)) == 1
    assert page(text, {}) == text
