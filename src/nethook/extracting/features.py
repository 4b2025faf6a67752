"""`features`: what chosen sites give for some inputs, in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias, overload

import torch
from torch import nn

from nethook.addresses.glob import is_literal
from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import get, map_tensors, tensors
from nethook.addresses.paths import Path, parse_path, show_path
from nethook.addresses.patterns import Pattern, flatten
from nethook.errors import NoSuchSiteError, OptionError, PatternError, ReadError, SeveralCallsError
from nethook.extracting.pooling import Mask, Pool, check_pool, find_mask, pooled
from nethook.hooks.autograd.compact import compact_clone
from nethook.restoring.unchanged import unchanged
from nethook.torch_private import buffers_of, parameters_of
from nethook.tracing.objects import NotRecorded, is_plain
from nethook.tracing.scope import trace
from nethook.tracing.tape.record import Record
from nethook.tracing.tape.tape import Tape

At: TypeAlias = Pattern | Mapping[str, str]


@overload
def features(
    model: nn.Module, inputs: object, at: nn.Module, *, pool: Pool = ..., mask: Mask = ...,
    call: int = ..., device: torch.device | str | None = ..., dtype: torch.dtype | None = ...,
) -> torch.Tensor: ...  # fmt: skip
@overload
def features(
    model: nn.Module, inputs: object, at: list[str] | tuple[str, ...] | Mapping[str, str], *,
    pool: Pool = ..., mask: Mask = ..., call: int = ...,
    device: torch.device | str | None = ..., dtype: torch.dtype | None = ...,
) -> dict[str, torch.Tensor]: ...  # fmt: skip
@overload
def features(
    model: nn.Module, inputs: object, at: At, *, pool: Pool = ..., mask: Mask = ...,
    call: int = ..., device: torch.device | str | None = ..., dtype: torch.dtype | None = ...,
) -> Any: ...  # fmt: skip
def features(
    model: nn.Module,
    inputs: object,
    at: At,
    *,
    pool: Pool = None,
    mask: Mask = "attention_mask",
    call: int = 0,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Any:
    """What chosen sites give for some inputs, in evaluation, without gradients.

        nethook.features(model, images, at="avgpool")                         # a tensor
        nethook.features(model, images, at=["layer3", "layer4"], pool="mean")  # a dict
        nethook.features(bert, tokens, at="encoder.layer.*", pool="cls")       # a dict
        nethook.features(model, x, at={"lstm": "[0]"})                         # a part of an output

    The forward ends as soon as every site has been seen. Everything is left as it was: the mode
    of each module, buffers, the inputs, random states (docs/sites.md says what that means).

    Arguments:
        model: any `nn.Module`.
        inputs: a tensor, a tuple (by position), a mapping (by name), or `nethook.inputs(...)`.
            Its tensors are moved to the model's device, where that is a single one.
        at: one name or module, for a tensor; a list, a glob or another pattern of `trace`, for a
            dict by address; a mapping from name to a path inside the output, for a dict of parts.
        pool: "mean" or "max" (over tokens in (samples, tokens, features), over space in
            (samples, channels, height, width)), "first" (or "cls") or "last" (one token),
            "flatten", a function of one tensor, or None.
        mask: which tokens count for "mean", "max" and "last": a tensor (samples, tokens) or the
            name of an input, used where the inputs have one of that name. None counts every token.
        call: which call of a site counts, where the forward calls it more than once: 0 is the
            first, -1 the last. Anything but 0 needs the whole forward.
        device, dtype: where to move the features, and to which floating-point type.

    Returns:
        A tensor, or a dict of tensors; they require no gradient and are no inference tensors, so
        a head can be trained on them.

    Cost: the forward up to the last of the sites, and what `trace` costs.
    """
    reader = Reader(model, at, pool=pool, mask=mask, call=call, device=device, dtype=dtype)
    given = as_inputs(inputs)
    with unchanged(model, given, evaluation=True):
        by_name = reader.read(given)
    return next(iter(by_name.values())) if reader.wanted.single else by_name


class Wanted(NamedTuple):
    """What `at` asks for."""

    names: dict[str, Path]  # sites that were named, each with the path inside its output
    patterns: tuple[Pattern, ...]  # everything, as `trace` takes it
    others: bool  # whether some patterns are not names
    single: bool  # whether one tensor is meant, not a dict


def read_at(at: At) -> Wanted:
    """`at` in its parts; raises where it is none of the forms it can have."""
    if isinstance(at, Mapping):
        unclear = [key for key in at if not isinstance(key, str) or not is_literal(key)]
        if unclear or not at:
            raise PatternError(
                "`at` must map names to paths inside the output, as in at={'lstm': '[0]'}; got "
                + (f"{unclear[0]!r} as a name." if unclear else "an empty mapping.")
            )
        names = {name: parse_path(path) for name, path in at.items()}
        return Wanted(names, tuple(at), others=False, single=False)
    patterns = tuple(flatten([at]))
    if not patterns:
        raise NoSuchSiteError("`at` must name at least one site; got an empty list.")
    named = [pattern for pattern in patterns if isinstance(pattern, str) and is_literal(pattern)]
    several = isinstance(at, Iterable) and not isinstance(at, str | nn.Module)
    single = not several and (bool(named) or isinstance(at, nn.Module))
    return Wanted(dict.fromkeys(named, ()), patterns, len(named) < len(patterns), single)


class Reader:
    """Runs a model on inputs and gives what was asked for. Evaluation is the caller's."""

    def __init__(
        self,
        model: nn.Module,
        at: At,
        *,
        pool: Pool = None,
        mask: Mask = "attention_mask",
        transform: Callable[[torch.Tensor], torch.Tensor] | None = None,
        call: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_pool(pool)
        if type(call) is not int:
            raise OptionError(
                f"`call` must be the number of a call, 0 for the first; got {call!r}."
            )
        self.wanted = read_at(at)
        self.model = model
        self._home = home(model)
        self._pool = pool
        self._mask = mask
        self._transform = transform
        self._call = call
        self._device = device
        self._dtype = dtype

    def read(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        """The features of one batch, by name."""
        args = moved(tuple(inputs.args), self._home)
        kwargs = moved(dict(inputs.kwargs), self._home)
        mask = find_mask(self._mask, Inputs(args, kwargs)) if isinstance(self._pool, str) else None
        scope = trace(
            self.model,
            *self.wanted.patterns,
            device=self._device,
            dtype=self._dtype,
            # Pooled as soon as it is there: of many layers, only what is asked for is kept.
            transform=self._shrink(mask),
            stop=self._call == 0,
        )
        # Not inference_mode: a head that is trained on the features has to save them for backward.
        with torch.no_grad():
            with scope as tape:
                self.model(*args, **kwargs)
            return self._take(tape)

    def _shrink(self, mask: torch.Tensor | None) -> Callable[[torch.Tensor], Any] | None:
        if self._pool is None and self._transform is None:
            return None

        def shrink(tensor: torch.Tensor) -> Any:
            try:
                small = pooled(tensor, self._pool, mask)
                return small if self._transform is None else self._transform(small)
            except Exception as error:
                return _Failed(error)  # it may be a part of the output that nobody asked for

        return shrink

    def _take(self, tape: Tape) -> dict[str, torch.Tensor]:
        by_name: dict[str, torch.Tensor] = {}
        taken: set[int] = set()
        for name, path in self.wanted.names.items():
            record = tape[name]
            taken.add(id(record))
            by_name[name] = self._tensor(record, name, path)
        if self.wanted.others:
            for address, record in tape.items():
                if id(record) not in taken:
                    by_name[address] = self._tensor(record, address, ())
        return by_name

    def _tensor(self, record: Record, name: str, path: Path) -> torch.Tensor:
        calls = record.calls
        if not record.entries:
            record.raise_not_run()
        if not -len(calls) <= self._call < len(calls):
            raise SeveralCallsError(
                f"call {self._call} of {name!r} was asked for, and the forward called it "
                f"{len(calls)} times."
            )
        output = calls[self._call].output
        value = get(output, path) if path else _only(output, name)
        if isinstance(value, _Failed):
            raise value.error
        if not isinstance(value, torch.Tensor):
            what = f"the part {show_path(path)} of the output" if path else "the output"
            kind = value.kind if isinstance(value, NotRecorded) else type(value)
            raise ReadError(f"{what} of {name!r} is a {kind.__name__}, not a tensor.")
        if value.is_inference():  # the caller's mode
            with torch.inference_mode(False):
                return compact_clone(value)
        return value


class _Failed:
    """Stands for a tensor that could not be pooled, with the reason."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _only(output: Any, name: str) -> Any:
    """The one tensor of an output."""
    if isinstance(output, torch.Tensor | _Failed):
        return output
    nothing = torch.empty(0)

    def stand_in(value: Any) -> Any:
        return nothing if isinstance(value, _Failed) else value

    paths = [path for path, _ in tensors(map_tensors(stand_in, output, stand_in))]
    if len(paths) == 1:
        return get(output, paths[0])
    if not paths:
        if is_plain(output) and not isinstance(output, NotRecorded):
            kind = type(output).__name__
            raise ReadError(f"the output of {name!r} holds no tensor: it is a {kind}.")
        kind = (output.kind if isinstance(output, NotRecorded) else type(output)).__name__
        raise ReadError(
            f"the output of {name!r} holds no tensor that can be addressed: it is a {kind}. Name a "
            "module inside it, or read the object with nethook.trace."
        )
    shown = [show_path(path) for path in paths]
    raise ReadError(
        f"the output of {name!r} holds {len(shown)} tensors, at {', '.join(shown)}. Name one: "
        f"at={{{name!r}: {shown[0]!r}}}."
    )


def home(model: nn.Module) -> torch.device | None:
    """The one device that all parameters and buffers are on; None where there are several."""
    devices = {
        tensor.device
        for module in model.modules()
        for held in (parameters_of(module), buffers_of(module))
        for tensor in held.values()
        if tensor is not None
    }
    return devices.pop() if len(devices) == 1 else None


def moved(value: Any, device: torch.device | None) -> Any:
    """A nested value with its tensors on a device; those without data stay where they are."""
    if device is None or device.type == "meta":
        return value

    def move(tensor: torch.Tensor) -> torch.Tensor:
        away = tensor.device != device and tensor.device.type != "meta"
        return tensor.to(device, non_blocking=True) if away else tensor

    return map_tensors(move, value)
