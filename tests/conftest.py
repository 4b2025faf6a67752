"""Cores are shared, so how long one example takes says nothing; and garbage is looked for often."""

import gc

from hypothesis import settings

settings.register_profile("nethook", deadline=None)
settings.load_profile("nethook")


def pytest_collection_finish() -> None:
    """What was imported stays: who collects garbage in a test need not look through it again."""
    gc.collect()
    gc.freeze()
