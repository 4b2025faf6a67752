"""Cores are shared, so how long one example takes says nothing."""

from hypothesis import settings

settings.register_profile("nethook", deadline=None)
settings.load_profile("nethook")
