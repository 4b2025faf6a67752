"""The unbiased HSIC against its formula, and against what it estimates."""

import torch

from nethook.interp.comparing.hsic import centred_gram, hsic


def song(k, l):  # noqa: E741
    """HSIC_1 as Song et al. (2012) write it."""
    n = len(k)
    k, l = k - k.diagonal().diag(), l - l.diagonal().diag()  # noqa: E741
    one = torch.ones(n, dtype=torch.double)
    middle = (one @ k @ one) * (one @ l @ one) / ((n - 1) * (n - 2))
    return ((k @ l).trace() + middle - 2 / (n - 2) * one @ k @ l @ one) / (n * (n - 3))


def test_all_pairs_by_the_formula():
    torch.manual_seed(0)
    x, y, z = (torch.randn(9, width, dtype=torch.double) + 3 for width in (4, 7, 2))
    found = hsic([centred_gram(x), centred_gram(y)], [centred_gram(z), centred_gram(x)])
    for row, a in enumerate((x, y)):
        for column, b in enumerate((z, x)):
            torch.testing.assert_close(found[row, column], song(a @ a.T, b @ b.T))
