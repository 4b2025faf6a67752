"""The rule `batchnorm-small-batch`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import ON, modes


def test_norms_that_see_two_samples() -> None:
    (finding,) = modes("norm", ON, batch=[1, 2, 2]).found("batchnorm-small-batch")
    assert finding.sites == ("modal",)
    assert "`modal` takes mean and variance from 2 samples" in finding.message
    assert not modes("norm", ON, batch=[1, 3, 3]).found("batchnorm-small-batch")


def test_one_sample_is_singular() -> None:
    (finding,) = modes("norm", ON, batch=[1, 1, 1]).found("batchnorm-small-batch")
    assert "from 1 sample:" in finding.message


def test_a_size_that_is_not_known() -> None:
    assert not modes("norm", ON, batch=None).found("batchnorm-small-batch")
