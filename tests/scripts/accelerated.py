"""Accelerate: prepare, accumulate, clip."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from utils import blobs, checksum


def main():
    torch.manual_seed(12)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    x, y = blobs(128)
    model = nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    loader = DataLoader(TensorDataset(x, y), batch_size=16)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(2):
        for batch, target in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(batch), target)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: {loss.item():.6f}")
    print("weights", checksum(accelerator.unwrap_model(model)))


if __name__ == "__main__":
    main()
