"""What `nethook.integrations.lightning` has, under the name that people import it by."""

from nethook.integrations.lightning import NethookCallback

__all__ = ["NethookCallback"]
