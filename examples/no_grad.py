"""“When to use torch.no_grad()? Whenever you're not training.” And `eval()`: what each saves.

Memory is what autograd saves for a backward that never runs; time is the best of many forwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

import nethook


def kept_bytes(model: nn.Module, x: Tensor) -> int:
    """What a forward keeps for backward, parameters and inputs left out."""
    there = {each.untyped_storage().data_ptr() for each in [x, *model.parameters()]}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in there:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = model(x)  # kept: nothing is freed before it is counted
    del out
    return sum(kept.values())


def milliseconds(
    model: nn.Module, x: Tensor, scope: Callable[[], AbstractContextManager[object]]
) -> float:
    """The fastest of many forwards."""
    times = []
    for _ in range(60):
        with scope():
            start = time.perf_counter()
            model(x)
            times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main() -> None:
    """Measure, then show what no_grad does not do."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # Many small operations: there the tracking costs most.
    layers = [layer for _ in range(60) for layer in (nn.Linear(32, 32), nn.Tanh())]
    model = nn.Sequential(*layers, nn.Dropout(0.5))
    x = torch.randn(64, 32)

    model.eval()
    print(f"{'forward':18}{'time':>9}{'kept for backward':>22}")
    whole = milliseconds(model, x, nullcontext)
    print(f"{'with gradients':18}{whole:6.2f} ms{kept_bytes(model, x) / 1e3:19.0f} KB")
    for name, scope in (("no_grad", torch.no_grad), ("inference_mode", torch.inference_mode)):
        took = milliseconds(model, x, scope)
        with scope():
            bytes_kept = kept_bytes(model, x)
        print(
            f"{name:18}{took:6.2f} ms{bytes_kept / 1e3:19.0f} KB   {took / whole:.0%} of the time"
        )

    model.train()
    with torch.no_grad():
        print("no_grad in training mode, twice the same:", torch.equal(model(x), model(x)))
    model.eval()
    with torch.no_grad(), nethook.trace(model, "0") as tape:
        print("no_grad and eval(), twice the same:      ", torch.equal(model(x), model(x)))
    call = tape["0"].last
    print("nethook reads there as well:", tuple(call.output.shape))


if __name__ == "__main__":
    main()
