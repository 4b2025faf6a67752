"""What `nethook.integrations.skorch` has, under the name that people import it by."""

from nethook.integrations.skorch import NethookCallback

__all__ = ["NethookCallback"]
