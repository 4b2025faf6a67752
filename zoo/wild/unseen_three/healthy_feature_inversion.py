"""A trained digit net is frozen, then a picture is optimised until its features match those of a held-out digit.

expect: nothing
style: invites 'optimizer misses parameters', 'eval mode training' and 'repeated batch': in the second part the picture is the parameter, the net must stay fixed and in eval mode, and there is one target
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)

data = load_digits()
images = torch.tensor(data.images / 8.0 - 1.0, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(data.target)
order = torch.randperm(len(images))
train, held = order[:1500], order[1500:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ELU(),
            nn.Conv2d(16, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ELU(), nn.AvgPool2d(2))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(24 * 16, 10))

    def forward(self, x):
        return self.classifier(self.features(x))


# --- part one: an ordinary classifier -------------------------------------------------
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    net.train()
    for idx in train[torch.randperm(len(train))].split(50):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images[idx]), labels[idx])
        loss.backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    print("held-out accuracy %.4f" % (net(images[held]).argmax(1) == labels[held]).float().mean().item())

# --- part two: the picture is what is optimised ---------------------------------------
net.requires_grad_(False)


def total_variation(x):
    return (x[..., 1:, :] - x[..., :-1, :]).abs().mean() + (x[..., 1:] - x[..., :-1]).abs().mean()


wanted = images[held[:8]]
with torch.no_grad():
    target_features = net.features(wanted)

canvas = nn.Parameter(torch.randn_like(wanted) * 0.1)
opt_canvas = torch.optim.Adam([canvas], lr=0.05)
for step in range(250):
    opt_canvas.zero_grad()
    feature_loss = F.mse_loss(net.features(canvas), target_features)
    loss = feature_loss + 1e-3 * total_variation(canvas)
    loss.backward()
    opt_canvas.step()
    with torch.no_grad():
        canvas.clamp_(-1, 1)
    if step % 50 == 49:
        print("step %d features %.5f" % (step + 1, feature_loss.item()))

a, b = canvas.detach().flatten(1), wanted.flatten(1)
corr = F.cosine_similarity(a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)).mean().item()
print("metric: %.4f" % corr)
