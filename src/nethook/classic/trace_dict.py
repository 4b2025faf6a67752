"""`TraceDict`: several layers traced at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal, TypeVar

from torch import nn

from nethook.addresses.tree import Tree
from nethook.classic.trace import Trace, UntilClosed

T = TypeVar("T")
Flag = bool | None | Mapping[str, bool | None]


class TraceDict(UntilClosed, OrderedDict[Any, Trace]):
    """A `Trace` for each of several layers, by name, in the order in which they are listed.

        with nethook.TraceDict(model, ["layer1", "layer2"]) as ret:
            model(x)
        ret["layer1"].output

    Arguments:
        module: the model.
        layers: names of modules in it; a name given twice counts once. None means every module
            without modules below it.
        retain_output, retain_input, clone, detach, retain_grad, edit_output, calls: as for
            `Trace`. Each may be a dict from layer to value; a layer that is not in it has None.
        stop: whether the forward ends after the layer that is listed last (whichever runs last).

    Raises:
        NoSuchSiteError: a `LookupError`, where the model has no such layer; no hook stays then.
    """

    _trace: ClassVar[type[Trace]] = Trace

    def __init__(
        self,
        module: nn.Module,
        layers: Iterable[str | None] | None = None,
        retain_output: Flag = True,
        retain_input: Flag = False,
        clone: Flag = False,
        detach: Flag = False,
        retain_grad: Flag = False,
        edit_output: Callable[..., Any] | Mapping[str, Callable[..., Any] | None] | None = None,
        stop: Flag = False,
        *,
        calls: Literal["last", "all"] = "last",
    ) -> None:
        super().__init__()
        self.stop = stop
        tree = Tree(module)
        listed: list[str | None]
        if layers is None:
            listed = [site.address for site in tree.leaves()]
        else:
            # The name of one layer is not a list of its letters.
            listed = list(dict.fromkeys([layers] if isinstance(layers, str) else layers))
        try:
            for layer in listed:
                last = layer == listed[-1]
                self[layer] = self._trace(
                    module,
                    layer,
                    retain_output=_of(layer, retain_output),
                    retain_input=_of(layer, retain_input),
                    clone=_of(layer, clone),
                    detach=_of(layer, detach),
                    retain_grad=_of(layer, retain_grad),
                    edit_output=_of(layer, edit_output),
                    stop=stop.get(layer or "") if isinstance(stop, Mapping) else stop and last,
                    calls=calls,
                    _tree=tree,
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Takes all hooks off, the last one first; what was kept stays."""
        for trace in reversed(self.values()):
            trace.close()


def _of(layer: str | None, option: T | Mapping[str, T | None]) -> T | None:
    """The value that an option has for a layer."""
    # By key and not by `[...]`: a layer that is not in it has None, whatever kind of dict it is.
    return option.get(layer) if isinstance(option, Mapping) else option  # type: ignore[arg-type]
