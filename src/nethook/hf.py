"""What `nethook.integrations.hf` has, under the name that people import it by."""

from nethook.integrations.hf import NethookCallback

__all__ = ["NethookCallback"]
