"""What `nethook.integrations.fastai` has, under the name that people import it by."""

from nethook.integrations.fastai import NethookCallback

__all__ = ["NethookCallback"]
