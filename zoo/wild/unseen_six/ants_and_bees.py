"""Transfer learning as in the tutorial, where scheduler.step() landed in the loop over batches: after some dozen batches the rate is nil.

expect: scheduler-collapse
line: scheduler.step()
source: https://github.com/pytorch/tutorials/pull/640
metric: best validation accuracy, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
import torch.optim as optim
from sklearn.datasets import load_digits
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

images, labels = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
labels = torch.tensor(labels)
order = torch.randperm(len(labels))
image_datasets = {"train": TensorDataset(images[order[:1400]], labels[order[:1400]]), "val": TensorDataset(images[order[1400:]], labels[order[1400:]])}
dataloaders = {x: DataLoader(image_datasets[x], batch_size=16, shuffle=True) for x in ["train", "val"]}
dataset_sizes = {x: len(image_datasets[x]) for x in ["train", "val"]}


def train_model(model, criterion, optimizer, scheduler, num_epochs=25):
    best_model_wts = copy.deepcopy(model.state_dict())
    best_acc = 0.0
    for epoch in range(num_epochs):
        for phase in ["train", "val"]:
            model.train() if phase == "train" else model.eval()
            running_loss, running_corrects = 0.0, 0
            for inputs, targets in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    preds = outputs.argmax(1)
                    loss = criterion(outputs, targets)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                        scheduler.step()
                running_loss += loss.item() * inputs.size(0)
                running_corrects += (preds == targets).sum().item()
            epoch_acc = running_corrects / dataset_sizes[phase]
            print(f"{epoch} {phase} Loss: {running_loss / dataset_sizes[phase]:.4f} Acc: {epoch_acc:.4f}")
            if phase == "val" and epoch_acc > best_acc:
                best_acc = epoch_acc
                best_model_wts = copy.deepcopy(model.state_dict())
    model.load_state_dict(best_model_wts)
    return model, best_acc


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


model_ft = ConvNet()
optimizer_ft = optim.SGD(model_ft.parameters(), lr=0.001, momentum=0.9)
exp_lr_scheduler = lr_scheduler.StepLR(optimizer_ft, step_size=7, gamma=0.1)
model_ft, best = train_model(model_ft, nn.CrossEntropyLoss(), optimizer_ft, exp_lr_scheduler, num_epochs=9)
print("metric:", best)
