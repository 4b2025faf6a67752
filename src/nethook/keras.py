"""What `nethook.integrations.keras` has, under the name that people import it by."""

from nethook.integrations.keras import NethookCallback

__all__ = ["NethookCallback"]
