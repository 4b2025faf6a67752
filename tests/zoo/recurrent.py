"""Recurrent networks: nested outputs, packed sequences, many calls."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 3, batch_first=True)  # returns views
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        out, state = self.rnn(x)
        return self.head(out), state


class PackedGru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 3, batch_first=True)

    def forward(self, packed: PackedSequence) -> tuple[PackedSequence, Tensor]:
        out, _ = self.rnn(packed)
        padded, _ = pad_packed_sequence(out, batch_first=True)
        return out, padded


class CellLoop(nn.Module):
    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        state = None
        for step in x.unbind(1):
            state = self.cell(step, state)
        assert state is not None
        return state[0] if isinstance(state, tuple) else state


class Stateful(nn.Module):
    """Carries its state from call to call, cut off from the old graph."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNNCell(4, 3)
        self.state: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        before = None if self.state is None else self.state.detach()
        self.state = self.cell(x, before)
        return self.state


def _sequence(model: nn.Module, given: Given) -> object:
    return model(given.floats(2, 5, 4))


def _packed(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 5, 4)
    lengths = torch.tensor([3, 5, 1])
    return model(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))


EXHIBITS = (
    Exhibit(
        "lstm_batch_first", "LSTM returns a view and a tuple inside a tuple.", Tagger, _sequence
    ),
    Exhibit(
        "lstm_bidirectional",
        "Two layers, both directions, a projection, dropout in between.",
        lambda: nn.LSTM(4, 4, num_layers=2, bidirectional=True, proj_size=2, dropout=0.5),
        _sequence,
        quiet=[
            Quiet(UserWarning, "LSTM with projections is not supported with oneDNN", "CPU only")
        ],
    ),
    Exhibit(
        "gru_packed",
        "PackedSequence goes in and comes out: a named tuple that checks its fields.",
        PackedGru,
        _packed,
    ),
    Exhibit(
        "lstm_cell_loop",
        "A cell called in a loop, fed its own output.",
        lambda: CellLoop(nn.LSTMCell(4, 3)),
        _sequence,
    ),
    Exhibit(
        "gru_cell_loop",
        "The same with an optional input that is None at first.",
        lambda: CellLoop(nn.GRUCell(4, 3)),
        _sequence,
    ),
    Exhibit(
        "state_between_calls",
        "State that is kept from one forward to the next.",
        Stateful,
        lambda model, given: [model(given.floats(2, 4)) for _ in range(3)],
    ),
)
