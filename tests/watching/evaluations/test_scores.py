"""Answers that a script compares with labels are a score, whatever way it does so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import nethook
from nethook.runs.names import EQUAL

CLASSES, SAMPLES = 5, 40


class Task:
    """Clusters, one for each class, and a network that tells them apart."""

    def __init__(self, outputs: int = CLASSES, steps: int = 60) -> None:
        torch.manual_seed(0)
        self.centres = 3 * torch.randn(max(outputs, 2), 8)
        self.model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, outputs))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)
        self.outputs, self.steps = outputs, steps

    def batch(self, samples: int = SAMPLES) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.randint(len(self.centres), (samples,))
        return self.centres[y] + 0.3 * torch.randn(samples, 8), y

    def train(self) -> None:
        self.model.train()
        for _ in range(self.steps):
            x, y = self.batch()
            out = self.model(x)
            loss = (
                nn.functional.cross_entropy(out, y)
                if self.outputs > 1
                else nn.functional.binary_cross_entropy_with_logits(out[:, 0], y.float())
            )
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


def watched(task: Task, evaluate: Callable[[Task], None], path, passes: int = 3):
    with nethook.watch(task.model, task.optimizer, to=path) as watch:
        for _ in range(passes):
            task.train()
            task.model.eval()
            with torch.no_grad():
                evaluate(task)
    run = nethook.open_run(path)
    assert not [event for event in run.events if event.kind == "failed"], run.events
    records = [loss for loss in run.losses if loss.data["kind"] == EQUAL]
    return run, records, watch


WAYS: dict[str, Callable[[Task, torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "argmax": lambda task, x, y: task.model(x).argmax(1) == y,
    "max": lambda task, x, y: torch.max(task.model(x).data, 1)[1] == y,
    "softmax": lambda task, x, y: task.model(x).softmax(1).argmax(-1).eq(y),
    "keepdim": lambda task, x, y: task.model(x).argmax(1, keepdim=True).eq(y.view(-1, 1)),
    "labels first": lambda task, x, y: y == task.model(x).argmax(1),
    "topk": lambda task, x, y: task.model(x).topk(3, 1)[1].t().eq(y.view(1, -1).expand(3, -1))[0],
    "unequal": lambda task, x, y: ~(task.model(x).argmax(1) != y),
    "floats": lambda task, x, y: task.model(x).argmax(1).float() == y.float(),
}


@pytest.mark.parametrize("way", WAYS)
def test_however_it_is_compared(way, tmp_path):
    scores: list[float] = []

    def evaluate(task: Task) -> None:
        hits = sum(WAYS[way](task, *task.batch()).sum().item() for _ in range(3))
        scores.append(hits / (3 * SAMPLES))

    run, records, _ = watched(Task(steps=8), evaluate, tmp_path / "run.db")
    (name,) = {record.name for record in records}
    assert name.startswith("test_scores.py:")
    scalar = run.scalars[f"accuracy:{name}"]
    assert scalar.value.tolist() == pytest.approx(scores)
    assert scalar.step.tolist() == [8, 16, 24]
    data = records[-1].data
    assert data["accuracy"] == pytest.approx(scores[-1])
    assert (data["rows"], data["comparisons"], data["training"]) == (3 * SAMPLES, 3, [False])
    assert sum(data["class_counts"]) == sum(data["argmax_counts"]) == 3 * SAMPLES


def test_in_inference_mode(tmp_path):
    scores: list[float] = []

    @torch.inference_mode()
    def evaluate(task: Task) -> None:
        x, y = task.batch()
        scores.append(float((task.model(x).argmax(1) == y).float().mean()))

    _, records, _ = watched(Task(), evaluate, tmp_path / "run.db")
    assert [record.data["accuracy"] for record in records] == pytest.approx(scores)


def test_answers_that_are_collected(tmp_path):
    scores: list[float] = []

    def evaluate(task: Task) -> None:
        given = [task.batch() for _ in range(3)]
        said = torch.cat([task.model(x).argmax(1) for x, _ in given])
        scores.append((said == torch.cat([y for _, y in given])).float().mean().item())

    _, records, _ = watched(Task(steps=8), evaluate, tmp_path / "run.db")
    assert [record.data["accuracy"] for record in records] == pytest.approx(scores)
    assert records[0].data["rows"] == 3 * SAMPLES


def test_two_classes_with_one_output(tmp_path):
    def evaluate(task: Task) -> None:
        x, y = task.batch()
        _ = (task.model(x)[:, 0] > 0).float() == y.float()
        _ = (torch.sigmoid(task.model(x)) > 0.5).squeeze(1) == y.bool()

    run, records, _ = watched(Task(outputs=1), evaluate, tmp_path / "run.db")
    assert len(records) == 6
    assert min(record.data["accuracy"] for record in records) > 0.9
    assert not codes(run)


def test_single_samples(tmp_path):
    def evaluate(task: Task) -> None:
        for _ in range(30):
            x, y = task.batch(1)
            _ = task.model(x).argmax() == y[0]

    _, records, _ = watched(Task(), evaluate, tmp_path / "run.db")
    assert [record.data["rows"] for record in records] == [30] * 3


def test_what_is_no_score(tmp_path):
    """Masks, agreement of single numbers by chance, and answers that were written to."""

    def evaluate(task: Task) -> None:
        x, y = task.batch()
        y[0] = (y[0] + 1) % CLASSES  # else labels and answers may be the same
        _ = x.argmax(1) == y  # of the inputs
        out = task.model(x)
        _ = out.argmax(1) == 0
        _ = torch.arange(SAMPLES) == y
        out.zero_()
        _ = out.argmax(1) == y

    _, records, _ = watched(Task(), evaluate, tmp_path / "run.db")
    assert not records


def test_training_steps_compare_as_they_like(tmp_path):
    task = Task()
    before = "eq" in vars(torch.Tensor)
    with nethook.watch(task.model, task.optimizer, to=tmp_path / "run.db"):
        task.train()
        out = task.model(task.batch()[0])
        assert ("eq" in vars(torch.Tensor)) is before
        assert "__eq__" not in vars(torch.Tensor)
        _ = out.argmax(1) == out.argmax(1)
        with torch.no_grad():
            task.model(task.batch()[0])
            assert ("eq" in vars(torch.Tensor)) is not before
        task.train()
        assert ("eq" in vars(torch.Tensor)) is before
    assert not [loss for loss in nethook.open_run(tmp_path / "run.db").losses
                if loss.data["kind"] == EQUAL]  # fmt: skip


def test_the_script_gets_what_it_gets_without(tmp_path):
    def results(watch: bool) -> list[torch.Tensor]:
        task = Task()
        seen: list[torch.Tensor] = []

        def evaluate(task: Task) -> None:
            x, y = task.batch()
            seen.append(task.model(x).argmax(1) == y)

        if watch:
            watched(task, evaluate, tmp_path / "run.db")
        else:
            for _ in range(3):
                task.train()
                task.model.eval()
                with torch.no_grad():
                    evaluate(task)
        return [*seen, *task.model.state_dict().values(), torch.get_rng_state()]

    for one, other in zip(results(True), results(False), strict=True):
        assert torch.equal(one, other)


def test_a_failure_stays_inside(tmp_path, monkeypatch):
    def fails(*args: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr("nethook.watching.evaluations.scores.read", fails)
    task = Task(steps=8)
    with nethook.watch(task.model, task.optimizer, to=tmp_path / "run.db"):
        task.train()
        with torch.no_grad():
            x, y = task.batch()
            said = task.model(x).argmax(1)
            with pytest.warns(UserWarning, match="the scores of evaluations"):
                _ = said == y
        task.train()
    assert nethook.open_run(tmp_path / "run.db").info["totals"]["steps"] == 16


# -- what the doctor makes of it ------------------------------------------------------------------


def codes(run) -> dict[str, str]:
    return {finding.code: finding.severity for finding in nethook.diagnose(run.path)}


def test_labels_of_another_order(tmp_path):
    def evaluate(task: Task) -> None:
        x, y = task.batch(200)
        said = [task.model(part).argmax(1) for part in x.split(50)]
        _ = torch.cat(said) == y[torch.randperm(len(y))]

    run, _, _ = watched(Task(), evaluate, tmp_path / "run.db")
    finding = nethook.diagnose(run.path)[0]
    # Nobody is told for certain: of a network that is always right, they may be labels.
    assert (finding.code, finding.severity) == ("target-misaligned", "info")
    assert "in another order" in finding.message
    assert finding.lines[0].startswith("tests/") or "test_scores.py" in finding.lines[0]


def test_classes_with_other_numbers(tmp_path):
    order = torch.tensor([0, 3, 4, 1, 2])

    def evaluate(task: Task) -> None:
        x, y = task.batch(200)
        _ = task.model(x).argmax(1) == order[y]

    run, records, _ = watched(Task(), evaluate, tmp_path / "run.db")
    assert records[-1].data["renamed"] > 0.95
    assert codes(run)["target-misaligned"] == "info"
    assert "if classes had other numbers" in nethook.diagnose(run.path)[0].message


def test_each_with_each(tmp_path):
    def evaluate(task: Task) -> None:
        x, y = task.batch()
        _ = task.model(x + 3 * torch.randn_like(x)).argmax(1) == y[:, None]

    run, _, _ = watched(Task(steps=20), evaluate, tmp_path / "run.db")
    assert codes(run)["loss-broadcast"] == "warning"


def test_inputs_that_differ_each_time(tmp_path):
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []

    def evaluate(task: Task) -> None:
        kept[:] = kept or [task.batch(200)]
        x, y = kept[0]
        _ = task.model(x + 0.1 * torch.randn_like(x)).argmax(1) == y

    run, _, _ = watched(Task(), evaluate, tmp_path / "run.db", passes=5)
    assert codes(run) == {"random-evaluation": "info"}


def _fixed(task: Task) -> None:
    torch_state = torch.get_rng_state()
    torch.manual_seed(1)
    x, y = task.batch(200)
    torch.set_rng_state(torch_state)
    _ = task.model(x).argmax(1) == y


def _attacked(task: Task) -> None:
    x, y = task.batch(200)
    _ = task.model(x).argmax(1) == y
    with torch.enable_grad():
        x.requires_grad_()
        nn.functional.cross_entropy(task.model(x), y).backward()
    task.optimizer.zero_grad()
    attacked = (x + 6 * x.grad.sign()).detach()
    _ = task.model(attacked).argmax(1) == y


def _shifted(task: Task) -> None:
    x, y = task.batch(200)
    _ = task.model(x).argmax(1) == y
    _ = task.model(x).argmax(1) == y.roll(1)  # what chance would be


def _agreement(task: Task) -> None:
    x, _ = task.batch(200)
    first = task.model(x).argmax(1)
    _ = task.model(x + 0.1 * torch.randn_like(x)).argmax(1) == first


def _labels_with_labels(task: Task) -> None:
    x, y = task.batch()
    task.model(x)
    _ = y[:, None] == y[None]


def _by_class(task: Task) -> None:
    x, y = task.batch(200)
    said = task.model(x).argmax(1)
    for label in range(CLASSES):
        _ = ((said == label) & (y == label)).sum()


def _stale(task: Task) -> None:
    x, y = task.batch(200)
    task.model(x)
    _ = y == task.batch(200)[1]


def _new_data(task: Task) -> None:
    x, y = task.batch(200)
    _ = task.model(x + torch.randn_like(x)).argmax(1) == y


@pytest.mark.parametrize(
    "evaluate",
    [_fixed, _attacked, _shifted, _agreement, _labels_with_labels, _by_class, _stale, _new_data],
)
def test_no_alarm_where_it_is_meant(evaluate, tmp_path):
    run, _, _ = watched(Task(), evaluate, tmp_path / "run.db", passes=5)
    assert not [code for code, severity in codes(run).items() if severity != "info"]
