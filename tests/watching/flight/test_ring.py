"""The ring keeps the batch as it was given, in containers that the script cannot reach."""

import weakref

import torch
from torch import nn

import nethook
from nethook.watching.flight.file import Flight, flight_path, load, save
from nethook.watching.flight.ring import Ring


class Holder:
    def __init__(self, value):
        self.value = value


def added(*args, **kwargs):
    module = nn.Identity()
    return Ring(3).add("model", weakref.ref(module), 0, (args, kwargs))


def test_one_tensor_is_kept_itself():
    x = torch.ones(2)
    call = added(x)
    assert call.inputs == ((x,), {})
    assert not call.overwritten
    x.add_(1)
    assert call.overwritten


def test_a_batch_that_is_filled_anew_later_stays_as_it_was():
    batch = {"x": torch.ones(2), "parts": [torch.ones(1)]}
    x = batch["x"]
    call = added(batch, scale=2)
    batch["x"] = torch.zeros(2)
    batch["parts"].append(torch.ones(3))
    ((kept,), kwargs) = call.inputs
    assert kept["x"] is x
    assert len(kept["parts"]) == 1
    assert kwargs == {"scale": 2}
    assert not call.overwritten
    x.add_(1)
    assert call.overwritten


def test_an_object_is_not_held_and_named_in_the_file(tmp_path):
    holder = Holder(torch.ones(2))
    gone = weakref.ref(holder)
    call = added(torch.ones(2), holder, mask=None)
    del holder
    assert gone() is None
    args, kwargs = call.inputs
    path = tmp_path / "x.flight.safetensors"
    save(path, Flight({}, args, kwargs))
    assert load(path).left_out == ["args.1 (Holder)"]


def test_the_file_holds_the_batch_that_made_the_nan(tmp_path):
    class Log(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1))

        def forward(self, batch):
            return (self.scale * batch["x"]).log()

    model = Log()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    batch = {}
    with nethook.watch(model, optimizer, tmp_path / "run.db"):
        for step in range(3):
            batch["x"] = torch.full((2,), -1.0 if step == 2 else 1.0)
            loss = model(batch).sum()
            batch["x"] = torch.full((2,), 5.0)  # the script's batch goes on changing
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    (saved,) = load(flight_path(tmp_path / "run.db")).args
    assert saved["x"].tolist() == [-1, -1]
