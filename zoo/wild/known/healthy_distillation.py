"""A small student learns from a frozen teacher with a temperature of four: two terms, one of them times T².

expect: nothing
style: knowledge distillation, teacher in eval mode under no_grad (looks like a second network forgotten)
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

x, y = load_digits(return_X_y=True)
perm = torch.randperm(len(x))
x = (torch.tensor(x, dtype=torch.float32)[perm] - 4.9) / 6.0
y = torch.tensor(y)[perm]
train_loader = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=32, shuffle=True)
x_test, y_test = x[1200:], y[1200:]


def train(model, learning_rate, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for epoch in range(epochs):
        model.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            F.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


def train_knowledge_distillation(teacher, student, epochs, learning_rate, T, soft_target_loss_weight, ce_loss_weight):
    optimizer = torch.optim.Adam(student.parameters(), lr=learning_rate)
    teacher.eval()
    student.train()
    for epoch in range(epochs):
        running_loss = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            with torch.no_grad():
                teacher_logits = teacher(inputs)
            student_logits = student(inputs)
            soft_loss = F.kl_div(F.log_softmax(student_logits / T, dim=-1), F.softmax(teacher_logits / T, dim=-1), reduction="batchmean") * T**2
            loss = soft_target_loss_weight * soft_loss + ce_loss_weight * F.cross_entropy(student_logits, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"Epoch {epoch + 1}/{epochs}, Loss: {running_loss / len(train_loader)}")


def test(model):
    model.eval()
    with torch.no_grad():
        return (model(x_test).argmax(1) == y_test).float().mean().item()


teacher = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
student = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
train(teacher, 2e-3, 6)
print("teacher", test(teacher))
train_knowledge_distillation(teacher, student, epochs=6, learning_rate=3e-3, T=4, soft_target_loss_weight=0.5, ce_loss_weight=0.5)
print("metric:", test(student))
