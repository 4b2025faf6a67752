"""The reserved row beside bars of others, as a person sees it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console
from rich.progress import Progress
from tqdm import tqdm

from nethook.running.live.bottom_row import BottomRow
from nethook.text.paragraphs import Style
from tests.running.screens import Terminal

# Without times, which make the bar longer or shorter.
BAR: dict[str, Any] = {"ncols": 60, "mininterval": 0, "bar_format": "{desc} |{bar}| {n}/{total}"}
Writer = Callable[[Terminal, Callable[[int], None]], None]


def with_tqdm(terminal: Terminal, each: Callable[[int], None]) -> None:
    for epoch in range(2):
        bar = tqdm(range(20), **BAR, file=terminal.stream, desc=f"epoch {epoch}")
        for step in bar:
            each(step)
            if step == 10:
                tqdm.write(f"epoch {epoch} is half done", file=terminal.stream)
        terminal.stream.write(f"epoch {epoch} done\n")


def with_two_bars(terminal: Terminal, each: Callable[[int], None]) -> None:
    outer = tqdm(range(3), **BAR, file=terminal.stream, desc="outer", position=0)
    for _ in outer:
        inner = tqdm(range(8), **BAR, file=terminal.stream, desc="inner", position=1)
        for step in inner:
            each(step)


def with_rich(terminal: Terminal, each: Callable[[int], None]) -> None:
    console = Console(file=terminal.stream, force_terminal=True, width=60)
    with Progress(console=console, auto_refresh=False) as progress:
        task = progress.add_task("steps", total=30)
        for step in range(30):
            each(step)
            progress.update(task, advance=1, refresh=True)
            if step % 10 == 0:
                progress.console.print(f"epoch {step // 10}")


def with_carriage_returns(terminal: Terminal, each: Callable[[int], None]) -> None:
    for step in range(30):
        terminal.stream.write(f"\rstep {step} of 30")
        each(step)
    terminal.stream.write("\n")


def with_half_lines(terminal: Terminal, each: Callable[[int], None]) -> None:
    for step in range(12):
        terminal.stream.write(f"step {step} ... ")
        each(step)
        terminal.stream.write("done\n")


def with_many_lines(terminal: Terminal, each: Callable[[int], None]) -> None:
    for step in range(60):
        terminal.stream.write(f"line {step}\n")
        each(step)


WRITERS = (
    with_tqdm, with_two_bars, with_rich, with_carriage_returns, with_half_lines, with_many_lines,
)  # fmt: skip


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with Terminal(rows=12) as made:
        yield made


@pytest.mark.parametrize("lines_before", [0, 5, 40])
@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
def test_what_others_write_is_what_it_is_without_nethook(
    terminal: Terminal, writer: Writer, lines_before: int
) -> None:
    before = "".join(f"before {number}\n" for number in range(lines_before))
    terminal.stream.write(before)
    row = BottomRow(terminal.stream, Style(colour=True))
    shown: list[tuple[int, str]] = []

    def each(step: int) -> None:
        row.show(f"nethook: step {step}")
        shown.append((step, terminal.rows()[-1]))
        assert not any("nethook" in line for line in terminal.rows()[:-1])

    writer(terminal, each)
    row.free()
    assert all(line == f"nethook: step {step}" for step, line in shown)
    with Terminal(rows=12) as alone:
        alone.stream.write(before)
        writer(alone, lambda _: None)
        assert _untimed(terminal.text()) == _untimed(alone.text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bar", ["TQDMProgressBar", "RichProgressBar"])
def test_the_bars_of_lightning_stay_as_they_are(bar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import lightning
    import torch
    from lightning.pytorch import callbacks
    from torch.utils.data import DataLoader, TensorDataset

    class Net(lightning.LightningModule):
        def __init__(self, each: Callable[[int], None]) -> None:
            super().__init__()
            self.net, self.each = torch.nn.Linear(3, 1), each

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            self.each(index)
            loss = self.net(batch[0]).square().mean()
            self.log("loss", loss.detach(), prog_bar=True)
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            self.each(index)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    data = DataLoader(TensorDataset(torch.ones(8, 3)), batch_size=2)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")

    def train(terminal: Terminal, each: Callable[[int], None]) -> None:
        monkeypatch.setattr("sys.stdout", terminal.stream)
        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_model_summary=False, callbacks=[getattr(callbacks, bar)()],
        )  # fmt: skip
        torch.manual_seed(0)
        trainer.fit(Net(each), data, data)

    with Terminal(rows=12) as beside, Terminal(rows=12) as alone:
        row = BottomRow(beside.stream, Style(colour=True))
        seen = 0

        def each(step: int) -> None:
            nonlocal seen
            row.show(f"nethook: step {step}")
            rows = beside.rows()
            assert rows[-1] == f"nethook: step {step}"
            assert not any("nethook" in line for line in rows[:-1])
            seen += any("Epoch" in line for line in rows[:-1])

        train(beside, each)
        row.free()
        train(alone, lambda _: None)
        assert seen > 4
        assert _bars(beside) == _bars(alone)


def _bars(terminal: Terminal) -> list[str]:
    """The rows of bars, with their times and speeds taken out."""
    times = re.compile(r"\d+:\d+(:\d+)?|[\d.]+it/s|\?it/s|-+:-+(:-+)?|[━╸╺█▏▎▍▌▋▊▉]")
    rows = [times.sub("", row).split() for row in terminal.text() if "Epoch" in row]
    return [" ".join(row) for row in rows]


def _untimed(lines: list[str]) -> list[str]:
    """Lines without the times that bars show, and without empty ones."""
    return [line.split(" 0:00")[0].split(" -:--")[0].rstrip() for line in lines if line]


def test_a_line_that_is_too_long_is_cut_and_a_small_terminal_keeps_its_rows() -> None:
    with Terminal(columns=20, rows=8) as terminal:
        row = BottomRow(terminal.stream, Style())
        assert row.columns == 19
        row.show("x" * 50)
        assert terminal.rows()[-1] == "x" * 19
    with Terminal(rows=4) as terminal:
        row = BottomRow(terminal.stream, Style())
        row.show("status")
        row.free()
        assert terminal.text() == []


def test_it_follows_when_the_terminal_is_resized(terminal: Terminal) -> None:
    row = BottomRow(terminal.stream, Style())
    row.show("one")
    terminal.rows()
    terminal.resize(80, 20)
    row.show("two")
    assert terminal.rows()[-1] == "two"
    assert "one" not in terminal.rows()
    row.free()
    assert terminal.text() == []


def test_afterwards_everything_scrolls_again(terminal: Terminal) -> None:
    row = BottomRow(terminal.stream, Style())
    row.show("status")
    row.free()
    row.free()  # a second time there is nothing to do
    terminal.stream.write("".join(f"line {number}\n" for number in range(30)))
    assert terminal.rows() == [*(f"line {number}" for number in range(19, 30)), ""]


def test_what_is_no_terminal_gets_nothing() -> None:
    stream = io.StringIO()
    row = BottomRow(stream, Style())
    row.show("status")
    row.free()
    assert stream.getvalue() == ""
