"""PPO in the CleanRL manner: orthogonal weights, a policy head that starts at a hundredth, several epochs over each rollout.

expect: nothing
style: PPO with GAE, clipping and learning-rate annealing (looks like a bad init scale and a repeated batch)
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions.normal import Normal


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.critic = nn.Sequential(
            layer_init(nn.Linear(obs_dim, 32)), nn.Tanh(), layer_init(nn.Linear(32, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0)
        )
        self.actor_mean = nn.Sequential(
            layer_init(nn.Linear(obs_dim, 32)), nn.Tanh(), layer_init(nn.Linear(32, 32)), nn.Tanh(), layer_init(nn.Linear(32, act_dim), std=0.01)
        )
        self.actor_logstd = nn.Parameter(torch.zeros(1, act_dim))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = Normal(mean, self.actor_logstd.expand_as(mean).exp())
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


class Reach:
    """A point that is pushed about in the plane and should get to a target."""

    def __init__(self, n):
        self.n, self.t = n, 0

    def reset(self):
        self.pos, self.goal, self.t = torch.randn(self.n, 2), torch.randn(self.n, 2), 0
        return torch.cat([self.pos, self.goal], 1)

    def step(self, action):
        self.pos = self.pos + 0.3 * action.clamp(-1, 1)
        self.t += 1
        reward = -(self.pos - self.goal).norm(dim=1)
        done = self.t >= 16
        return (self.reset() if done else torch.cat([self.pos, self.goal], 1)), reward, torch.full((self.n,), float(done))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--num-steps", type=int, default=16)
    parser.add_argument("--num-updates", type=int, default=40)
    parser.add_argument("--update-epochs", type=int, default=4)
    parser.add_argument("--clip-coef", type=float, default=0.2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)

    envs = Reach(args.num_envs)
    agent = Agent(4, 2)
    optimizer = optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    next_obs, next_done = envs.reset(), torch.zeros(args.num_envs)
    history = []
    for update in range(1, args.num_updates + 1):
        optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / args.num_updates) * args.learning_rate
        obs, actions, logprobs, rewards, dones, values = [], [], [], [], [], []
        for _ in range(args.num_steps):
            obs.append(next_obs)
            dones.append(next_done)
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            values.append(value.flatten())
            actions.append(action)
            logprobs.append(logprob)
            next_obs, reward, next_done = envs.step(action)
            rewards.append(reward)
        with torch.no_grad():
            next_value = agent.get_value(next_obs).flatten()
            advantages, lastgaelam = [], 0
            for t in reversed(range(args.num_steps)):
                nonterminal = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
                nextvalues = next_value if t == args.num_steps - 1 else values[t + 1]
                delta = rewards[t] + 0.9 * nextvalues * nonterminal - values[t]
                lastgaelam = delta + 0.9 * 0.95 * nonterminal * lastgaelam
                advantages.insert(0, lastgaelam)
        b_obs, b_actions = torch.cat(obs), torch.cat(actions)
        b_logprobs, b_advantages = torch.cat(logprobs), torch.cat(advantages)
        b_returns = b_advantages + torch.cat(values)
        for _ in range(args.update_epochs):
            for mb in torch.randperm(len(b_obs)).split(64):
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions[mb])
                ratio = (newlogprob - b_logprobs[mb]).exp()
                adv = b_advantages[mb]
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)).mean()
                v_loss = 0.5 * ((newvalue.view(-1) - b_returns[mb]) ** 2).mean()
                loss = pg_loss - 0.001 * entropy.mean() + 0.5 * v_loss
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        history.append(torch.stack(rewards).mean().item())
        if update % 10 == 0:
            print("update", update, "mean reward", history[-1])
    print("metric: %.4f (started at %.4f)" % (np.mean(history[-5:]), np.mean(history[:5])))
