from __future__ import annotations

from nethook.runs.reading.run import open_run
from nethook.runs.writing.writer import RunWriter


class Ears:
    def __init__(self, error: Exception | None = None) -> None:
        self.known = None
        self.heard_of = []
        self.error = error

    def opened(self, path, series, say):
        self.path, self.known, self.say = path, series, say

    def heard(self, delivery):
        if self.error is not None:
            raise self.error
        steps = delivery.window.steps if delivery.window is not None else 0
        self.heard_of.append((steps, [note[0] for note in delivery.notes], delivery.findings))


def write(path, ears, resume=False):
    with RunWriter(path, listener=ears, resume=resume) as writer:
        writer.add_series("fc", "outputs")
        window = writer.window()
        window.add_step(writer.next_step)
        writer.log("loss", 1.0, writer.next_step)
        writer.findings([{"code": "x", "severity": "info"}])
        ears.say("sink-failed", 3, "told by a listener")
        writer.submit(window)
    return writer


def test_a_listener_hears_windows_notes_and_findings(tmp_path):
    ears = Ears()
    write(tmp_path / "run.db", ears)
    assert ears.path == tmp_path / "run.db"
    assert ears.known == {}
    assert sum(steps for steps, _, _ in ears.heard_of) == 1
    assert "scalar" in [kind for _, kinds, _ in ears.heard_of for kind in kinds]
    assert [found for _, _, found in ears.heard_of if found is not None] == [
        [{"code": "x", "severity": "info"}]
    ]
    with open_run(tmp_path / "run.db") as run:
        [event] = run.events
    assert (event.kind, event.step, event.message) == ("sink-failed", 3, "told by a listener")


def test_a_run_that_goes_on_tells_its_series(tmp_path):
    write(tmp_path / "run.db", Ears())
    ears = Ears()
    write(tmp_path / "run.db", ears, resume=True)
    assert ears.known == {("fc", "outputs"): 0}


def test_a_mistake_of_a_listener_costs_nothing_but_itself(tmp_path):
    write(tmp_path / "run.db", Ears(ValueError("a mistake")))
    with open_run(tmp_path / "run.db") as run:
        assert len(run.series("fc", "outputs")) == 1
        messages = [event.message for event in run.events]
    assert "sinks are off: ValueError: a mistake" in messages
