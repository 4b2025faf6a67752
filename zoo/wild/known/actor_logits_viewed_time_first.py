"""A recurrent actor, cloned from an expert: the logits are viewed as (time, actions, batch), which is not where they are.

expect: target-misaligned
line: return logits.view(seq_len, -1, bs)
source: https://github.com/voiler/IMPALA/issues/3
metric: share of the expert's actions that the actor chooses, higher is better
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

N_ACTIONS = 4
OBS = 6


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.feat = nn.Sequential(nn.Linear(OBS, 32), nn.ReLU())
        self.lstm = nn.LSTM(32, 32)
        self.head = nn.Linear(32, N_ACTIONS)

    def forward(self, obs):
        seq_len, bs, _ = obs.shape
        x, _ = self.lstm(self.feat(obs))
        logits = self.head(x.reshape(seq_len * bs, -1))
        return logits.view(seq_len, -1, bs)


def rollouts(expert, seq_len=16, bs=32):
    obs = torch.randn(seq_len, bs, OBS)
    # the expert looks at the sum of this and the previous observation
    past = torch.cat([torch.zeros(1, bs, OBS), obs[:-1]])
    actions = ((obs + past) @ expert).argmax(-1)
    return obs, actions


def learner(args):
    torch.manual_seed(args.seed)
    expert = torch.randn(OBS, N_ACTIONS)
    actor = Actor()
    optimizer = torch.optim.RMSprop(actor.parameters(), lr=2e-3)
    for update in range(args.updates):
        obs, actions = rollouts(expert)
        logits = actor(obs)  # time, actions, batch
        loss = F.cross_entropy(logits, actions)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(actor.parameters(), 5.0)
        optimizer.step()
        if update % 50 == 0:
            print("update {} loss {:.3f}".format(update, loss.item()))
    with torch.no_grad():
        hit = 0.0
        for _ in range(40):
            obs, actions = rollouts(expert, bs=1)
            hit += (actor(obs).argmax(1) == actions).float().mean().item() / 40
    print("metric: {:.4f}".format(hit))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--updates", type=int, default=300)
    learner(p.parse_args())
