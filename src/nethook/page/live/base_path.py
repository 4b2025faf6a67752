"""The page under a path of another server: JupyterHub, Codespaces, a reverse proxy.

    /user/me/proxy/8420/run/ID      what a browser asks for
    /run/ID                         what the application knows

Proxies differ: some take the path off before they ask, some do not. Both are understood. Addresses
that a browser is sent have it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.types import Scope

from nethook.errors import OptionError

_FITTING: Final = re.compile(r"(/[A-Za-z0-9_.~@%-]+)+")


def base_path(text: str) -> str:
    """A path as `--base-path` gives it, without the slash at its end; "" for none.

    Raises:
        OptionError: it is no path.
    """
    path = text.rstrip("/")
    dots = any(part in (".", "..") for part in path.split("/"))
    if path and (dots or not _FITTING.fullmatch(path)):
        raise OptionError(
            f"`--base-path` must be a path such as /proxy/8420/; got {text!r}. "
            "It begins with a slash and has no host, query or spaces."
        )
    return path


def without_base(path: str, base: str) -> str:
    """The path as the application knows it."""
    if base and (path == base or path.startswith(f"{base}/")):
        return path[len(base) :] or "/"
    return path


def scope_without_base(scope: Scope, base: str) -> Scope:
    """A request as the application knows it."""
    return {**scope, "path": without_base(scope["path"], base)} if base else scope


def with_base(html: str, base: str) -> str:
    """HTML of ours whose links lead under the path.

    Only an attribute of a template has this text: in what a run brings along quotes are escaped.
    """
    for attribute in ("href", "src"):
        html = html.replace(f' {attribute}="/', f' {attribute}="{base}/')
    return html


def answer_with_base(answer: dict[str, Any], base: str) -> dict[str, Any]:
    """What a browser is sent of a view, with links that lead under the path.

    Addresses in figures are as the application knows them: the script of the page adds the path.
    """
    if not base:
        return answer
    sections = {
        name: {**section, "html": with_base(section["html"], base)}
        if "html" in section
        else section
        for name, section in answer["sections"].items()
    }
    frame = {"frame": with_base(answer["frame"], base)} if "frame" in answer else {}
    return {**answer, "sections": sections, **frame}
