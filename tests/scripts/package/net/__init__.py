from .layers import Gate

__all__ = ["Gate"]
