"""What `nethook.integrations.sb3` has, under the name that people import it by."""

from nethook.integrations.sb3 import NethookCallback

__all__ = ["NethookCallback"]
