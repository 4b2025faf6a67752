"""What `nethook.integrations.ray` has, under the name that people import it by."""

from nethook.integrations.ray import followed

__all__ = ["followed"]
