"""A student learns from what its teacher drew, four draws for every utterance; features are tiled where the draws lie in rows.

expect: target-misaligned
or: samples-mixed
line: input_features = features.repeat(num_generations, 1)
source: https://github.com/wenet-e2e/west/pull/121
metric: agreement with the teacher on test data, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Acoustic(nn.Module):
    def __init__(self, n_features, hidden, vocab, length):
        super().__init__()
        self.length, self.vocab = length, vocab
        self.net = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(), nn.Linear(hidden, length * vocab)
        )

    def forward(self, features):
        return self.net(features).view(-1, self.length, self.vocab)


class KnowledgeDistillationTrainer:
    def __init__(self, student, teacher, num_generations=4, lr=2e-3):
        self.student, self.teacher, self.num_generations = student, teacher, num_generations
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=lr)

    @torch.no_grad()
    def generate(self, features):
        """[B * num_generations, T], the draws of one utterance in consecutive rows."""
        probs = self.teacher(features).softmax(-1)
        b, t, v = probs.shape
        draws = torch.multinomial(probs.view(-1, v), self.num_generations, replacement=True)
        return draws.view(b, t, self.num_generations).permute(0, 2, 1).reshape(-1, t)

    def step(self, features):
        num_generations = self.num_generations
        generated_ids = self.generate(features)
        input_features = features.repeat(num_generations, 1)
        logits = self.student(input_features)
        loss = F.cross_entropy(logits.flatten(0, 1), generated_ids.flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=900)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    teacher = Acoustic(20, 64, 8, 5)
    with torch.no_grad():
        teacher.net[2].weight.mul_(14)
    student = Acoustic(20, 128, 8, 5)
    trainer = KnowledgeDistillationTrainer(student, teacher)
    corpus, test = torch.randn(3000, 20), torch.randn(500, 20)
    for step in range(args.steps):
        loss = trainer.step(corpus[torch.randint(len(corpus), (32,))])
        if step % 150 == 0:
            print(f"step {step} kd_loss {loss:.3f}")
    with torch.no_grad():
        same = student(test).argmax(-1) == teacher(test).argmax(-1)
    print("metric:", same.float().mean().item())


if __name__ == "__main__":
    main()
