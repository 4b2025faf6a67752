"""plotly.js with only the kinds of traces that are drawn.

The whole of it is for maps, globes and 3-D as well: a browser reads and runs 4.8 MB before the
first line is drawn. Its file is a list of modules, each of which names those that it needs:

    var a=W((e,t)=>{…});var b=W((e,t)=>{… a() …});…  x.register([a(),b(),…]) …

Registering fewer traces leaves most modules without anybody who needs them, and these are left
out. A file that is written in another way is given back as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

TRACES: Final = frozenset({"bar", "heatmap", "image"})
"""The kinds of traces that nethook draws, beside lines, which are always there."""

_BEGIN: Final = re.compile(r"\(typeof self[^\n]*\n\"use strict\";var Plotly=\(\(\)=>\{")
_END: Final = re.compile(r"return [\w$]+\(\);\}\)\(\);")
_LICENCE: Final = re.compile(r"\A/\*.*?\*/", re.DOTALL)
_TAIL: Final = "\nwindow.Plotly = Plotly;"
_WRAPPER: Final = re.compile(r"[ ,]([\w$]+)=\([\w$,]+\)=>\(\)=>")  # makes a module of a function
_REGISTER: Final = re.compile(r"([\w$]+)\.register\(\[((?:[\w$]+\(\),?){10,})\]\)")
_CALL: Final = re.compile(r"(?<![\w$.])([\w$]+)\(\)")
_NAME: Final = re.compile(r'moduleType:"trace",name:"(\w+)"')


def without_unused(script: str, traces: Collection[str] = TRACES) -> str:
    """plotly.js for these traces alone; `script` itself where its form is not the known one."""
    begin, tail = _BEGIN.search(script), script.rfind(_TAIL)
    ends = list(_END.finditer(script, max(0, tail - 100_000), tail)) if tail > 0 else []
    if begin is None or not ends:
        return script
    modules = _Modules(script[begin.end() : ends[-1].end()])
    kept = modules.kept(set(traces))
    if not kept:
        return script
    licence = _LICENCE.match(script)
    notes = script[ends[-1].end() : tail]  # the licences of what is inside
    head = licence[0] if licence else ""
    return f'{head}\nwindow.Plotly=(()=>{{"use strict";{kept}{notes}\n'


class _Modules:
    """The text of plotly.js, taken apart at the beginnings of its modules."""

    def __init__(self, text: str) -> None:
        prelude = text[:20_000].partition("});")[0]
        wrappers = "|".join(map(re.escape, _WRAPPER.findall(prelude))) or "(?!)"
        begins = re.compile(rf"(?<=\}}\);)var ([\w$]+)=(?:{wrappers})\(")
        # Modules of the newer kind stand behind one of the older, with functions of their own.
        inside = re.compile(rf"[ ,]([\w$]+)=(?:{wrappers})\(\(\)=>")
        places = [(match.start(), match[1]) for match in begins.finditer(text)]
        ends = [*(start for start, _ in places), len(text)][1:]
        self.prelude = text[: places[0][0]] if places else text
        self.names = [name for _, name in places]
        self.texts = {
            name: text[start:end] for (start, name), end in zip(places, ends, strict=True)
        }
        self.owner = {
            name: owner for owner, module in self.texts.items() for name in inside.findall(module)
        } | {name: name for name in self.names}

    def kept(self, traces: set[str]) -> str:
        """The text with what these traces need; "" where it is not in the known form."""
        if len(self.texts) != len(self.names) or not self.names:
            return ""
        last = self.names[-1]
        registered = _REGISTER.search(self.texts[last])
        if registered is None:
            return ""
        registrations = {self._trace(name): name for name in _CALL.findall(registered[2])}
        if not traces <= registrations.keys():
            return ""
        wanted = ",".join(f"{registrations[trace]}()" for trace in sorted(traces))
        fewer = f"{registered[1]}.register([{wanted}])"
        texts = {**self.texts, last: self.texts[last].replace(registered[0], fewer)}
        needed: set[str] = set()
        waiting = [last, *self._needs(self.prelude)]
        while waiting:
            name = waiting.pop()
            if name not in needed:
                needed.add(name)
                waiting += self._needs(texts[name])
        return self.prelude + "".join(texts[name] for name in self.names if name in needed)

    def _needs(self, text: str) -> set[str]:
        """The modules that a text calls; a few more where a local name is the same."""
        return {self.owner[name] for name in set(_CALL.findall(text)) if name in self.owner}

    def _trace(self, name: str) -> str:
        """What the trace is called that this module, or the one it passes on, defines."""
        text = self.texts.get(name, "")
        for module in (text, *(self.texts[other] for other in self._needs(text))):
            if match := _NAME.search(module):
                return match[1]
        return ""
