# Pretrains one model, then builds another from a part of it, and folds over a third.
import torch
from torch import nn

from utils import blobs, checksum


def pretrain(x):
    encoder = nn.Sequential(nn.Linear(8, 12), nn.ReLU())
    autoencoder = nn.Sequential(encoder, nn.Linear(12, 8))
    optimizer = torch.optim.Adam(autoencoder.parameters(), lr=0.01)
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(autoencoder(x), x)
        loss.backward()
        optimizer.step()
    print(f"pretrained {loss.item():.6f} {checksum(autoencoder)}")
    return encoder


def finetune(encoder, x, y):
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    model = nn.Sequential(encoder, nn.Linear(12, 4))
    optimizer = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.1)
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"fine-tuned {loss.item():.6f} {checksum(model)}")


def main():
    torch.manual_seed(29)
    x, y = blobs(96)
    finetune(pretrain(x), x, y)
    for fold in range(3):
        model = nn.Linear(8, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        keep = torch.arange(96) % 3 != fold
        for _ in range(3):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[keep]), y[keep])
            loss.backward()
            optimizer.step()
        print(f"fold {fold}: {loss.item():.6f} {checksum(model)}")


if __name__ == "__main__":
    main()
