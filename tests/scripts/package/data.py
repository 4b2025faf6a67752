import torch


def waves(count):
    t = torch.linspace(0, 6.2832, count)
    return torch.stack([t.sin(), t.cos(), (2 * t).sin()], dim=1), (3 * t).cos()[:, None]
