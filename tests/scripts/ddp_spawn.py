"""DistributedDataParallel over torch.multiprocessing.spawn."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from utils import blobs, checksum


def worker(rank, world, store, results):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    torch.manual_seed(19)
    x, y = blobs(64)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    lines = []
    for step in range(4):
        rows = slice((step * world + rank) * 8, (step * world + rank + 1) * 8)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        lines.append(f"rank {rank} step {step} loss {loss.item():.6f}")
    lines.append(f"rank {rank} {checksum(model.module)}")
    with open(os.path.join(results, f"{rank}.txt"), "w") as stream:
        stream.write("\n".join(lines) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(worker, args=(2, os.path.join(folder, "store"), folder), nprocs=2)
        for rank in range(2):
            with open(os.path.join(folder, f"{rank}.txt")) as stream:
                sys.stdout.write(stream.read())
