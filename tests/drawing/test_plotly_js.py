"""plotly.js without what nobody draws: what is left is whole, and anything odd is left alone."""

from __future__ import annotations

import re

import pytest
from plotly.offline import get_plotlyjs

from nethook.drawing.plotly_js import TRACES, without_unused

# The same form in small: `e` is a module of the newer kind, with a function of its own.
SMALL = """/**
* plotly.js v0
*/
(
 function(root, factory) {
  root.moduleName = factory();
} (typeof self !== "undefined" ? self : this, () => {
"use strict";var Plotly=(()=>{var D=Object.create,I=(e,t,r)=>()=>{return e&&(t=e(e=0)),t};var W=(e,t)=>()=>(t||e((t={exports:{}}).exports,t),t.exports);var core=W((a,b)=>{b.exports={register(l){this.all=l}}});var $b=W((a,b)=>{b.exports={moduleType:"trace",name:"bar",of:h()}});function plain(){return 7}var own,e=I(()=>{own=plain()});var h=W((a,b)=>{e();b.exports=own});var globe=W((a,b)=>{b.exports={moduleType:"trace",name:"globe",size:"large"}});var bar=W((a,b)=>{b.exports=$b()});var t1=W((a,b)=>{b.exports=globe()});var main=W((a,b)=>{var c=core();c.register([bar(),t1(),t1(),t1(),t1(),t1(),t1(),t1(),t1(),t1()]);b.exports=c});return main();})();
/*! a licence */

window.Plotly = Plotly;
return Plotly;
}));"""  # noqa: E501


def test_what_nobody_needs_is_left_out() -> None:
    small = without_unused(SMALL, {"bar"})
    assert small.startswith("/**\n* plotly.js v0\n*/\nwindow.Plotly=(()=>{")
    assert "c.register([bar()])" in small
    assert "globe" not in small
    # What is needed over a module of the newer kind, and over a name with a dollar sign, is there.
    for needed in ("function plain()", "own,e=I(()=>", "var h=W(", "var $b=W(", "var core=W("):
        assert needed in small
    assert small.rstrip().endswith("/*! a licence */")
    assert small.count("{") == small.count("}")


@pytest.mark.parametrize(
    "script",
    [
        "",
        "anything else",
        SMALL.replace("window.Plotly = Plotly;", ""),
        SMALL.replace(".register([", ".enrol(["),
        SMALL.replace('name:"bar"', 'name:"beam"'),
        SMALL.replace("var W=(e,t)=>()=>(", "var W=function(e,t){return("),
        SMALL.replace("return main();})();", ""),
    ],
)
def test_another_form_is_left_as_it_is(script) -> None:
    assert without_unused(script, {"bar"}) == script


def test_the_plotly_that_is_installed() -> None:
    whole = get_plotlyjs()
    small = without_unused(whole)
    assert len(small) < 0.4 * len(whole)
    kept = set(re.findall(r'moduleType:"trace",name:"(\w+)"', small))
    assert {*TRACES, "scatter"} <= kept
    assert kept.isdisjoint({"scattergl", "scattermap", "surface", "choropleth"})
    assert re.search(r"plotly\.js v\d", small[:100])  # with its licence
