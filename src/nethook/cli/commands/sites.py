"""`nethook sites`: the site map of a model that a function makes."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nethook.cli.exit import fail

if TYPE_CHECKING:
    import torch
    from torch import nn

    from nethook.tracing.sites.site_map import SiteMap

_TYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64",
)  # fmt: skip
_EXAMPLES = "1x3x224x224, 1x16:int64, mask=1x16:bool"


def sites(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:NAME",
            help="A function that builds the model, as package.module:function or "
            "path/to/file.py:function. A class or a model works, too.",
        ),
    ],
    input: Annotated[  # noqa: A002  the option's name
        list[str] | None,
        typer.Option(
            help=f"An input: [NAME=]SHAPE[:DTYPE], such as {_EXAMPLES}. Repeat it for every "
            "input, in order. Floats are random, integers are 0, booleans are True."
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(help="Show only sites that match this pattern, such as '**/softmax'."),
    ] = None,
    depth: Annotated[
        int | None, typer.Option(help="Show only this many levels; 0 is the model.")
    ] = None,
    device: Annotated[
        str, typer.Option(help="The device to run on; 'meta' needs no memory and computes nothing.")
    ] = "cpu",
    train: Annotated[
        bool, typer.Option("--train", help="Run in training mode instead of evaluation mode.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a tree.")] = False,
) -> None:
    """List every module call and operation of one forward pass, with their addresses."""
    from nethook.addresses.inputs import inputs as made_inputs
    from nethook.errors import NethookError
    from nethook.tracing.sites.survey import sites as map_sites

    target = _device(device)
    given = [_input(text, target) for text in input or ()]
    if not given:
        raise typer.BadParameter(
            f"must be given at least once. Examples: {_EXAMPLES}.", param_hint="--input"
        )
    network = _model(model, target)
    network.train(train)
    args = [tensor for name, tensor in given if name is None]
    kwargs = {name: tensor for name, tensor in given if name is not None}
    try:
        site_map = map_sites(network, made_inputs(*args, **kwargs))
    except Exception as error:
        shapes = ", ".join(input or ())
        raise fail(
            "sites", f"the model could not be run with --input {shapes}: {_in_words(error)}"
        ) from error
    try:
        if at is not None or depth is not None:
            site_map = site_map.filter(at, depth=depth)
    except NethookError as error:
        raise fail("sites", str(error)) from error
    _print(site_map, as_json=as_json)


def _print(site_map: SiteMap, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(site_map.to_dict(), indent=1))
    elif sys.stdout.isatty():
        from rich.console import Console

        Console(soft_wrap=True).print(site_map)
    else:
        typer.echo(site_map.tree())


def _model(text: str, device: torch.device) -> nn.Module:
    import torch
    from torch import nn

    where, _, path = text.rpartition(":")
    if not where or not path:
        raise typer.BadParameter(
            f"must be MODULE:NAME; got {text!r}. Examples: my_package.models:make, models.py:Net.",
            param_hint="MODULE:NAME",
        )
    value: Any = _module(where)
    for name in path.split("."):
        if not hasattr(value, name):
            names = [attribute for attribute in vars(value) if not attribute.startswith("_")]
            raise fail("sites", f"{where!r} has no {path!r}.{_close(name, names)}")
        value = getattr(value, name)
    if not isinstance(value, nn.Module):
        if not callable(value):
            raise fail(
                "sites",
                "MODULE:NAME must be a model, a class or a function that builds one; got "
                f"{text!r}, which is of type {type(value).__name__}.",
            )
        try:
            with torch.device(device):  # on 'meta' nothing is allocated
                value = value()
        except Exception as error:
            raise fail(
                "sites",
                f"{text!r} was called without arguments and failed: {_in_words(error)}. Name a "
                "function that builds the model and needs no arguments.",
            ) from error
        if not isinstance(value, nn.Module):
            raise fail("sites", f"{text!r} must return an nn.Module; got {type(value).__name__}.")
    moved: nn.Module = value if device.type == "meta" else value.to(device)
    return moved


def _module(where: str) -> Any:
    # As with `python -m`: what lies in the current directory can be named.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    # A file that reads its own arguments must not find nethook's.
    sys.argv[:] = [where]
    try:
        if not where.endswith(".py"):
            return importlib.import_module(where)
        file = Path(where)
        if not file.exists():
            raise fail("sites", f"there is no file {where!r}.")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
    except typer.Exit:
        raise
    except Exception as error:
        raise fail("sites", f"{where!r} could not be imported: {_in_words(error)}") from error
    return module


def _input(text: str, device: torch.device) -> tuple[str | None, torch.Tensor]:
    """One input: its name, if it has one, and a tensor of that shape and type."""
    import torch

    before, equals, after = text.rpartition("=")
    shape_text, _, dtype_text = after.partition(":")
    try:
        if equals and not before.isidentifier():
            raise ValueError
        shape = [int(size) for size in shape_text.split("x")] if shape_text else []
        if min(shape, default=0) < 0:
            raise ValueError
    except ValueError:
        raise typer.BadParameter(
            f"must be [NAME=]SHAPE[:DTYPE]; got {text!r}. Examples: {_EXAMPLES}.",
            param_hint="--input",
        ) from None
    dtype = getattr(torch, dtype_text, None) if dtype_text else torch.float32
    try:
        if not isinstance(dtype, torch.dtype):
            raise TypeError
        tensor = _filled(shape, dtype, device)
    except (TypeError, NotImplementedError):
        raise typer.BadParameter(
            f"must have a dtype of torch; got {dtype_text!r}.{_close(dtype_text, _TYPES)}",
            param_hint="--input",
        ) from None
    return (before if equals else None), tensor


def _filled(shape: list[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    import torch

    if dtype.is_floating_point or dtype.is_complex:
        wide = dtype if dtype.is_complex or dtype.itemsize >= 2 else torch.float32
        return torch.randn(shape, device=device, dtype=wide).to(dtype)
    return torch.full(shape, dtype == torch.bool, dtype=dtype, device=device)


def _device(text: str) -> torch.device:
    import torch

    try:
        device = torch.device(text)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise typer.BadParameter(f"{text!r}: {_in_words(error)}", param_hint="--device") from None
    return device


def _close(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, names, n=3)
    return f" Closest: {', '.join(repr(match) for match in close)}." if close else ""


def _in_words(error: BaseException) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    notes = " ".join(getattr(error, "__notes__", ()))
    return " ".join(filter(None, [f"{type(error).__name__}: {first}".rstrip(": "), notes]))
