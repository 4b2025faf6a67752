# A variational autoencoder: encode and decode as methods, a loss written by hand.
import torch
import torch.nn.functional as F
from torch import nn

from utils import checksum

torch.manual_seed(33)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 12)
        self.mean, self.log_var = nn.Linear(12, 3), nn.Linear(12, 3)
        self.fc3, self.fc4 = nn.Linear(3, 12), nn.Linear(12, 16)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.mean(h), self.log_var(h)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mean, log_var = self.encode(x)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)
        return self.decode(z), mean, log_var


def loss_function(recon, x, mean, log_var):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    return bce - 0.5 * torch.sum(1 + log_var - mean.pow(2) - log_var.exp())


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
data = (torch.rand(96, 16) > 0.6).float()
for epoch in range(3):
    for batch in data.split(24):
        optimizer.zero_grad()
        recon, mean, log_var = model(batch)
        loss = loss_function(recon, batch, mean, log_var)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item() / 24:.6f}")
with torch.no_grad():
    print(f"{model.decode(torch.zeros(1, 3)).sum().item():.6f}")
print("weights", checksum(model))
