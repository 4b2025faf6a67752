"""Occlusion: captum, and loops by hand at a site."""

import torch
from captum.attr import Occlusion
from torch import distributed, nn
from torch import multiprocessing as mp

from nethook import interp

torch.manual_seed(0)
CNN = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(True), nn.Flatten(), nn.Linear(144, 3)).double()
IMAGES = torch.randn(3, 2, 8, 8).double()


def test_the_same_as_captum():
    for window, stride in ((3, 2), ((2, 4), (2, 4))):
        found = interp.occlusion(CNN, IMAGES, target=1, window=window, stride=stride, baseline=0.5)
        size = (window, window) if isinstance(window, int) else window
        step = (stride, stride) if isinstance(stride, int) else stride
        theirs = Occlusion(CNN).attribute(
            IMAGES, (2, *size), strides=(2, *step), target=1, baselines=0.5
        )
        assert found.values.shape == (3, 1, 8, 8)
        assert torch.allclose(
            found.values, theirs[:, :1].double(), atol=1e-6
        )  # theirs is float32 inside


def test_tokens_at_an_embedding_by_hand():
    model = nn.Sequential(nn.Embedding(6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2)).double()
    ids = torch.tensor([[1, 2, 3, 4], [5, 4, 3, 2]])
    found = interp.occlusion(model, ids, target=[0, 1], at="0", baseline=torch.zeros_like(ids))
    value = model[0](ids).detach()
    for place in range(4):
        changed = value.clone()
        changed[:, place] = model[0].weight[0].detach()
        score = model[1:](changed)[torch.arange(2), torch.tensor([0, 1])]
        assert torch.allclose(found.values[:, place, 0], found.score - score, atol=1e-12)
    assert found.kind == "tokens"
    assert torch.equal(found.inputs, ids)


def test_a_region_as_target_and_the_exact_mode():
    region = torch.rand(3, 6, 6).double()
    target = lambda out: (out[:, 0] * region).sum((1, 2))  # noqa: E731
    net = nn.Conv2d(2, 1, 3).double()
    one = interp.occlusion(net, IMAGES, target=target, window=4, rows=1)
    many = interp.occlusion(net, IMAGES, target=target, window=4)
    assert torch.allclose(one.values, many.values, atol=1e-12)
    weights = net.weight.detach()
    spread = torch.nn.functional.conv_transpose2d(region[:, None], weights) * IMAGES
    expected = spread[:, :, :4, :4].sum((1, 2, 3))
    assert torch.allclose(one.values[:, 0, 0, 0], expected)


def studied(**given):
    return interp.occlusion(CNN, IMAGES, target=1, window=3, baseline=0.5, rows=2, **given)


def on_a_rank(rank, store, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    found = studied(spread=True)
    found.save(f"{folder}/{rank}.json")
    distributed.destroy_process_group()


def test_ranks_share_the_work_and_each_gets_the_whole(tmp_path):
    mp.start_processes(
        on_a_rank, (tmp_path / "store", str(tmp_path)), nprocs=2, start_method="fork"
    )
    alone = studied()
    for rank in range(2):
        found = interp.Attribution.load(tmp_path / f"{rank}.json")
        assert torch.equal(found.values, alone.values)
        assert torch.equal(found.score, alone.score)
