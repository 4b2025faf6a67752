# An actor and a critic on one body, with an optimizer each; SparseAdam for the embedding.
import torch
from torch import nn

from utils import checksum

torch.manual_seed(13)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 8, sparse=True)
        self.body = nn.Linear(8, 16)
        self.actor = nn.Linear(16, 3)
        self.critic = nn.Linear(16, 1)

    def forward(self, state):
        h = torch.tanh(self.body(self.table(state)))
        return self.actor(h), self.critic(h).squeeze(-1)


net = ActorCritic()
optimizers = [
    torch.optim.SparseAdam(net.table.parameters(), lr=0.01),
    torch.optim.Adam([*net.body.parameters(), *net.actor.parameters()], lr=0.01),
    torch.optim.SGD(net.critic.parameters(), lr=0.05),
]
for step in range(15):
    state = torch.randint(20, (16,))
    logits, value = net(state)
    action = torch.distributions.Categorical(logits=logits).sample()
    reward = (action == state % 3).float()
    advantage = reward - value
    policy = -(torch.log_softmax(logits, -1).gather(1, action[:, None])[:, 0] * advantage.detach())
    loss = policy.mean() + advantage.pow(2).mean()
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    if step % 5 == 0:
        print(f"{step} loss {loss.item():.6f} reward {reward.mean().item():.4f}")
print("weights", checksum(net))
