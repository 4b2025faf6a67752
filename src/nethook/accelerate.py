"""What `nethook.integrations.accelerate` has, under the name that people import it by."""

from nethook.integrations.accelerate import NethookTracker

__all__ = ["NethookTracker"]
