"""Training loops of every kind, as a user would write them; each returns what it has trained."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_, clip_grad_value_  # by name, as users do
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

STEPS = 50

Start = Callable[..., Any]
"""`start(model, optimizer)` watches, or does not; what it returns is a context manager."""


class Net(nn.Module):
    """Convolution, batch norm, rectifier in place, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(4 * 36, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.norm(self.conv(x)))
        return self.fc(self.drop(x.flatten(1)))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(x)
        out = self.out(hidden)
        out += 0.1  # in place, on what the layer returned
        return out


def same(a: list[Any], b: list[Any]) -> bool:
    """Whether two runs have trained the same, to the last bit."""
    return len(a) == len(b) and all(
        torch.equal(x, y) if isinstance(x, torch.Tensor) else repr(x) == repr(y)
        for x, y in zip(a, b, strict=True)
    )


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 5))


def batches(steps: int = STEPS, *shape: int, classes: int = 5) -> list[Any]:
    generator = torch.Generator().manual_seed(1)
    shape = shape or (8, 10)
    return [
        (
            torch.randn(shape, generator=generator),
            torch.randint(classes, shape[:1], generator=generator),
        )
        for _ in range(steps)
    ]


def state(models: Any, optimizers: Any) -> list[Any]:
    """Everything that training has changed."""
    models = models if isinstance(models, list) else [models]
    optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
    found: list[Any] = [value for each in models for value in each.state_dict().values()]
    for each in optimizers:
        for entry in each.state_dict()["state"].values():
            found += [entry[name] for name in sorted(entry)]
    return [*found, torch.get_rng_state()]


def plain(model: nn.Module, optimizer: torch.optim.Optimizer, data: Any, start: Start) -> list[Any]:
    with start(model, optimizer):
        for step, (x, y) in enumerate(data):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 20 == 19:
                model.eval()
                with torch.no_grad():
                    F.cross_entropy(model(x), y)
                model.train()
    return state(model, optimizer)


def cnn_sgd(start: Start, steps: int = STEPS) -> list[Any]:
    model = Net()
    data = batches(steps, 8, 1, 6, 6)
    return plain(model, torch.optim.SGD(model.parameters(), 0.05), data, start)


def mlp_momentum(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=0.01)
    return plain(model, optimizer, batches(steps), start)


def mlp_adamw(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    return plain(model, torch.optim.AdamW(model.parameters(), 0.01), batches(steps), start)


def mlp_adamw_fused(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01, fused=True)
    return plain(model, optimizer, batches(steps), start)


def mlp_foreach(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01, foreach=True)
    return plain(model, optimizer, batches(steps), start)


def lstm_clipped(start: Start, steps: int = STEPS) -> list[Any]:
    model = Recurrent()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    with start(model, optimizer):
        for x, _ in batches(steps, 4, 7, 6):
            optimizer.zero_grad()
            F.mse_loss(model(x), x[..., :3]).backward()
            clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            schedule.step()
    return state(model, optimizer)


def clipped_by_value(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with start(model, optimizer):
        for x, y in batches(steps):
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()
            clip_grad_value_(model.parameters(), 0.01)
            optimizer.step()
    return state(model, optimizer)


def lbfgs(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.LBFGS(model.parameters(), 0.1, max_iter=3)
    data = batches(steps)
    with start(model, optimizer):
        for x, y in data[: max(1, steps // 3)]:

            def closure(x: Any = x, y: Any = y) -> torch.Tensor:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure)
    return state(model, optimizer)


def closure_adam(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    with start(model, optimizer):
        for x, y in batches(steps):

            def closure(x: Any = x, y: Any = y) -> torch.Tensor:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss

            optimizer.step(closure=closure)
    return state(model, optimizer)


def accumulation(start: Start, steps: int = STEPS) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    with start(model, optimizer):
        for step, (x, y) in enumerate(batches(2 * steps)):
            (F.cross_entropy(model(x), y) / 2).backward()
            if step % 2:
                optimizer.step()
                optimizer.zero_grad()
    return state(model, optimizer)


def grad_scaler(start: Start, steps: int = STEPS, fused: bool = False) -> list[Any]:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=5)
    with start(model, optimizer):
        for step, (x, y) in enumerate(batches(steps)):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            if step in (3, 11):
                loss = loss * torch.inf  # overflows: the scaler leaves this step out
            scaler.scale(loss).backward()
            if not fused and step % 2:
                scaler.unscale_(optimizer)
                clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
    return state(model, optimizer)


def grad_scaler_fused(start: Start, steps: int = STEPS) -> list[Any]:
    return grad_scaler(start, steps, fused=True)


def autocast(start: Start, steps: int = STEPS) -> list[Any]:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    with start(model, optimizer):
        for x, y in batches(steps, 8, 1, 6, 6):
            optimizer.zero_grad(set_to_none=False)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return state(model, optimizer)


class Checkpointed(nn.Module):
    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.first = nn.Linear(10, 12)
        self.block = nn.Sequential(nn.Linear(12, 12), nn.ReLU(), nn.Dropout(0.1), nn.Linear(12, 5))
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.block, self.first(x), use_reentrant=self.reentrant)


def checkpointed(start: Start, steps: int = STEPS, reentrant: bool = False) -> list[Any]:
    model = Checkpointed(reentrant)
    return plain(model, torch.optim.Adam(model.parameters(), 0.01), batches(steps), start)


def checkpointed_reentrant(start: Start, steps: int = STEPS) -> list[Any]:
    return checkpointed(start, steps, reentrant=True)


def gan(start: Start, steps: int = STEPS) -> list[Any]:
    generator = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 10))
    critic = nn.Sequential(nn.Linear(10, 8), nn.LeakyReLU(), nn.Linear(8, 1))
    for_g = torch.optim.Adam(generator.parameters(), 0.01)
    for_c = torch.optim.Adam(critic.parameters(), 0.01)
    with start({"G": generator, "D": critic}, [for_g, for_c]):
        for x, _ in batches(steps):
            for_c.zero_grad()
            with torch.no_grad():
                fake = generator(torch.randn(8, 3))
            real_loss = F.binary_cross_entropy_with_logits(critic(x), torch.ones(8, 1))
            fake_loss = F.binary_cross_entropy_with_logits(critic(fake), torch.zeros(8, 1))
            (real_loss + fake_loss).backward()
            for_c.step()
            for_g.zero_grad()
            made = critic(generator(torch.randn(8, 3)))
            F.binary_cross_entropy_with_logits(made, torch.ones(8, 1)).backward()
            for_g.step()
    return state([generator, critic], [for_g, for_c])


def in_backward(start: Start, steps: int = STEPS) -> list[Any]:
    """An optimizer a parameter, which steps inside the backward pass."""
    model = mlp()
    optimizers = {each: torch.optim.Adam([each], 0.01) for each in model.parameters()}

    def step(parameter: torch.Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for each in model.parameters():
        each.register_post_accumulate_grad_hook(step)
    with start(model, None):
        for x, y in batches(steps):
            F.cross_entropy(model(x), y).backward()
    return state(model, list(optimizers.values()))


def penalty(start: Start, steps: int = STEPS) -> list[Any]:
    """A gradient penalty, with a second backward through the first."""
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    with start(model, optimizer):
        for x, y in batches(steps):
            x.requires_grad_()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            (grad,) = torch.autograd.grad(loss, x, create_graph=True)
            (loss + grad.square().sum()).backward()
            optimizer.step()
    return state(model, optimizer)


def gpt2(start: Start, steps: int = STEPS) -> list[Any]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=16, n_layer=2, n_head=2, vocab_size=20, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    generator = torch.Generator().manual_seed(1)
    with start(model, optimizer):
        for _ in range(steps):
            tokens = torch.randint(20, (2, 8), generator=generator)
            optimizer.zero_grad()
            model(tokens, labels=tokens).loss.backward()
            optimizer.step()
    return state(model, optimizer)


def workers(start: Start, steps: int = STEPS, context: str = "fork") -> list[Any]:
    """Data from another process."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    x, y = torch.randn(8 * steps, 10), torch.randint(5, (8 * steps,))
    loader = DataLoader(
        TensorDataset(x, y), 8, shuffle=True, num_workers=1, multiprocessing_context=context
    )
    with start(model, optimizer):
        for images, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
    return state(model, optimizer)


def workers_spawned(start: Start, steps: int = STEPS) -> list[Any]:
    return workers(start, steps, "spawn")


LOOPS = {
    each.__name__: each
    for each in (
        cnn_sgd, mlp_momentum, mlp_adamw, mlp_adamw_fused, mlp_foreach, lstm_clipped,
        clipped_by_value, lbfgs, closure_adam, accumulation, grad_scaler, grad_scaler_fused,
        autocast, checkpointed, checkpointed_reentrant, gan, in_backward, penalty, gpt2, workers,
        workers_spawned,
    )
}  # fmt: skip


def unwatched(model: Any, optimizer: Any) -> Any:
    """What `start` is for a run without nethook."""
    return nullcontext()
