"""A script that trains, and saves everything there is to save, in every way, into `saved`.

`test_saving` runs it with and without `nethook run` and compares the files.
"""

import copy
import pickle
import warnings
from pathlib import Path

import safetensors.torch
import torch
import torch.distributed.checkpoint
from torch import nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

torch.manual_seed(21)
x, y = torch.randn(64, 8), torch.randint(4, (64,))
SAVED = Path("saved")
SAVED.mkdir()


def path(name):
    return str(SAVED / name)


def doubled(module, args, output):
    return output * 2


def save_once(module, args):
    if not (SAVED / "inside_forward.pt").exists():
        torch.save(module, path("inside_forward.pt"))


class Stateful(nn.Linear):
    def __getstate__(self):
        return {"note": "mine", **super().__getstate__()}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Stateful(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 4)
        self.handle = self.first.register_forward_hook(doubled, always_call=True)
        self.norm.register_forward_pre_hook(save_once, prepend=True)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.first(x))))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(4, 8, batch_first=True)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.head = nn.LazyLinear(4)

    def forward(self, x):
        states, _ = self.rnn(x.unflatten(1, (2, 4)))
        return self.head(self.attention(states, states, states)[0][:, -1])


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    return loss


# -- a loop with everything in it -------------------------------------------------------------

model = Net()
teacher = torch.optim.swa_utils.AveragedModel(model)
groups = [{"params": [*model.first.parameters(), *model.norm.parameters()]}]
optimizer = torch.optim.AdamW([*groups, {"params": model.head.parameters(), "lr": 0.02}], lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
scaler = torch.amp.GradScaler("cpu")
data = torch.utils.data.TensorDataset(x, y)
generator = torch.Generator().manual_seed(3)
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, generator=generator)
for epoch in range(3):
    for a, b in loader:
        optimizer.zero_grad()
        logits = model(a)
        loss = F.cross_entropy(logits, b)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        teacher.update_parameters(model)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch}: {F.cross_entropy(model(x), y).item():.6f}")
    torch.save(model, path(f"epoch_{epoch}.pt"))
    model.train()
late = model.head.register_forward_hook(doubled, with_kwargs=False)
print("number of a late hook", late.id, "next", RemovableHandle.next_id)

# -- every way to save it ---------------------------------------------------------------------

torch.save(model, path("model.pt"))
torch.save(teacher, path("teacher.pt"))
torch.save(copy.deepcopy(model), path("deep_copy.pt"))
torch.save(copy.copy(model), path("copy.pt"))
torch.save(optimizer, path("optimizer.pt"))
torch.save(scheduler, path("scheduler.pt"))
torch.save(scaler, path("scaler.pt"))
torch.save(model.state_dict(), path("state_dict.pt"))
checkpoint = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "scheduler": scheduler.state_dict(),
    "scaler": scaler.state_dict(),
    "sampler": generator.get_state(),
    "random": torch.get_rng_state(),
    "gradients": [each.grad for each in model.parameters()],
}
torch.save(checkpoint, path("checkpoint.pt"))
with warnings.catch_warnings():
    warnings.simplefilter("error")
    torch.save({"logits": logits, "loss": loss}, path("values.pt"))
without_memory = copy.deepcopy(model).to("meta")  # a plain pickle names memory by its address
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    (SAVED / f"protocol_{protocol}.pkl").write_bytes(pickle.dumps(without_memory, protocol))
(SAVED / "python.pkl").write_bytes(pickle._dumps(without_memory))
safetensors.torch.save_file(model.state_dict(), path("state_dict.safetensors"))
safetensors.torch.save_model(model, path("model.safetensors"))
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    both = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.distributed.checkpoint.save(both, checkpoint_id=path("distributed"), no_dist=True)
print(sorted(torch.load(path("checkpoint.pt"), weights_only=True)))

# -- other models -----------------------------------------------------------------------------

recurrent = Recurrent()
recurrent(x)
train(recurrent, torch.optim.SGD(recurrent.parameters(), lr=0.1, momentum=0.9), 3)
torch.save(recurrent, path("recurrent.pt"))
recurrent.share_memory()
torch.save(recurrent, path("shared.pt"))

plain = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 4))
train(plain, torch.optim.SGD(plain.parameters(), lr=0.1), 3)
torch.save(plain, path("plain.pt"))
with torch.serialization.safe_globals([nn.Sequential, nn.Linear, nn.ReLU]):
    print(torch.load(path("plain.pt"), weights_only=True))
torch.export.save(torch.export.export(plain, (x,)), path("exported.pt2"))
torch.jit.script(plain).save(path("scripted.pt"))
torch.jit.trace(plain, (x,)).save(path("traced.pt"))
with torch.package.PackageExporter(path("packaged.pt")) as exporter:
    exporter.extern("**")
    exporter.save_pickle("model", "model.pkl", plain)

compiled = torch.compile(nn.Sequential(nn.Linear(8, 4), nn.Tanh()), backend="aot_eager")
train(compiled, torch.optim.SGD(compiled.parameters(), lr=0.1), 3)
torch.save(compiled._orig_mod, path("compiled.pt"))
torch.save(compiled.state_dict(), path("compiled_state.pt"))
