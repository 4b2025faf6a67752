# A student, a frozen teacher, an average of the student, a loss with parameters, a metric module.
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from utils import blobs, checksum

torch.manual_seed(28)
x, y = blobs(96)


def network(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))


class Accuracy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("right", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, logits, target):
        self.right += (logits.argmax(1) == target).sum()
        self.seen += len(target)
        return self.right / self.seen


class Distill(nn.Module):
    def __init__(self):
        super().__init__()
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, student, teacher, target):
        soft = nn.functional.kl_div(
            (student / self.temperature).log_softmax(1),
            (teacher / self.temperature).softmax(1),
            reduction="batchmean",
        )
        return soft + nn.functional.cross_entropy(student, target)


teacher = network(32).eval().requires_grad_(False)
student = network(12)
average = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.9))
criterion, accuracy = Distill(), Accuracy()
optimizer = torch.optim.AdamW([*student.parameters(), *criterion.parameters()], lr=0.01)
for epoch in range(3):
    for batch, target in zip(x.split(16), y.split(16)):
        with torch.no_grad():
            hints = teacher(batch)
        logits = student(batch)
        loss = criterion(logits, hints, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(student)
        share = accuracy(logits.detach(), target)
    with torch.no_grad():
        valid = nn.functional.cross_entropy(average(x), y)
    print(f"{epoch} {loss.item():.6f} accuracy {share.item():.4f} average {valid.item():.6f}")
print("weights", checksum(student, criterion, average))
