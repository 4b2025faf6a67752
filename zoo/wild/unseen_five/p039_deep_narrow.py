"""Eight narrow ReLU layers with torch's initialisation and plain SGD: no signal comes through them, and the L1 loss stays where it began.

expect: vanishing-gradient
or: learning-rate-too-low
line: opt = torch.optim.SGD(model.parameters(), lr=0.01)
source: https://github.com/pytorch/pytorch/issues/63626
metric: mean absolute error, lower is better
"""


def test_torch(seed):
    import torch
    import torch.nn as nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    data = torch.randn(20000, 2)
    y = torch.sin(data[:, 0] * data[:, 1]).unsqueeze(1)
    print(y.shape)

    model = nn.Sequential(
        nn.Linear(2, 10),
        nn.ReLU(),
        nn.Linear(10, 10),
        nn.ReLU(),
        nn.Linear(10, 10),
        nn.ReLU(),
        nn.Linear(10, 10),
        nn.ReLU(),
        nn.Linear(10, 10),
        nn.ReLU(),
        nn.Linear(10, 10),
        nn.ReLU(),
        nn.Linear(10, 10),
        nn.ReLU(),
        nn.Linear(10, 1),
    )

    for p in model.parameters():
        print(p.shape, p.requires_grad)

    criterion = torch.nn.L1Loss()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(data, y), batch_size=100, shuffle=True)
    for epoch in range(6):
        total = 0
        for x_, y_ in loader:
            opt.zero_grad()
            loss = criterion(model(x_), y_)
            loss.backward()
            opt.step()
            total += loss.item()
        print("epoch", epoch, "loss", total / len(loader))

    with torch.no_grad():
        x = torch.randn(4000, 2)
        print("metric:", (model(x) - torch.sin(x[:, 0] * x[:, 1]).unsqueeze(1)).abs().mean().item())


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    test_torch(parser.parse_args().seed)
