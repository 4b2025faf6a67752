"""An autoencoder that cleans digits: the target is the input before the noise, or is the input itself for a third of them.

expect: nothing
style: denoising autoencoder, sigmoid output for pixels in [0, 1] (looks like a target that equals the input)
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn


class AE(nn.Module):
    def __init__(self):
        super(AE, self).__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(True), nn.Linear(48, 16))
        self.decoder = nn.Sequential(nn.Linear(16, 48), nn.ReLU(True), nn.Linear(48, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

img = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
img = img[torch.randperm(len(img))]
train, test = img[:1500], img[1500:]


def corrupt(x):
    noisy = (x + 0.3 * torch.randn_like(x)).clamp(0, 1)
    keep = torch.rand(len(x), 1) < 0.33
    return torch.where(keep, x, noisy)


model = AE()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
for epoch in range(12):
    for batch in torch.randperm(len(train)).split(50):
        clean = train[batch]
        output = model(corrupt(clean))
        loss = criterion(output, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("epoch [{}/{}], loss:{:.4f}".format(epoch + 1, 12, loss.item()))

with torch.no_grad():
    noisy = (test + 0.3 * torch.randn_like(test)).clamp(0, 1)
    print("metric: {:.4f} (noise itself {:.4f})".format(criterion(model(noisy), test).item(), criterion(noisy, test).item()))
