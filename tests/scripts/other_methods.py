# A model whose forward is never called: a normalising flow with log_prob and sample.
import torch
from torch import nn

from utils import checksum

torch.manual_seed(31)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(2))
        self.log_scale = nn.Parameter(torch.zeros(2))
        self.conditioner = nn.Linear(1, 2)

    def log_prob(self, x):
        shift, scale = self.conditioner(x[:, :1]).chunk(2, dim=1)
        second = (x[:, 1:] - shift) * torch.exp(-scale)
        z = (torch.cat([x[:, :1], second], 1) - self.shift) * torch.exp(-self.log_scale)
        return (-0.5 * z.pow(2) - self.log_scale).sum(1) - scale[:, 0]

    def sample(self, count):
        with torch.no_grad():
            return torch.randn(count, 2) * self.log_scale.exp() + self.shift


flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=0.05)
data = torch.randn(64, 2) * torch.tensor([0.5, 2.0]) + torch.tensor([1.0, -1.0])
for step in range(8):
    optimizer.zero_grad()
    loss = -flow.log_prob(data).mean()
    loss.backward()
    optimizer.step()
    print(f"{step} {loss.item():.6f}")
print(flow.sample(2).shape)
print("weights", checksum(flow))
