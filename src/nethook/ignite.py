"""What `nethook.integrations.ignite` has, under the name that people import it by."""

from nethook.integrations.ignite import NethookHandler

__all__ = ["NethookHandler"]
