"use strict";
// The page's side of nethook ui: puts the parts that the server sends where they belong, draws
// figures as the report does, and turns choices, clicks and keys into addresses. It keeps nothing
// that an address does not say, except for the theme.
(() => {
  const root = document.documentElement;
  const draw = window.nethookDraw;
  const figures = new Map(); // name -> figure as it was sent
  let have = { skeleton: "", tags: {} };
  let looked = ""; // the address that was last scrolled to
  root.dataset.theme = draw.theme();

  const element = (kind, name) => document.getElementById(JSON.stringify({ [kind]: name }));
  const nothing = () => window.dash_clientside.no_update;

  // Addresses

  function go(address, replace) {
    if (address === location.pathname + location.search) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
  }

  function setParam(name, value, { keep = false, replace = false } = {}) {
    const query = new URLSearchParams(location.search);
    if (value === "" && !keep) query.delete(name); else query.set(name, value);
    const text = query.toString();
    go(location.pathname + (text ? `?${text}` : ""), replace);
  }

  // Figures: plotly.js draws them in their frames, where React has nothing of its own. (A graph of
  // Dash would ask and be asked several times for each.)

  // What was zoomed stays so while new steps come, until it is undone or other rows are shown.
  const zooms = new Map(); // name -> axis -> range
  function zoomed(name, change) {
    const found = { ...zooms.get(name) };
    for (const [key, value] of Object.entries(change)) {
      const [, axis, end] = key.match(/^([xy]axis\d*)\.(range\[[01]\]|range|autorange)$/) || [];
      if (!axis) continue;
      if (end === "autorange") delete found[axis];
      else if (end === "range") found[axis] = value;
      else found[axis] = Object.assign([...(found[axis] || [])], { [+end[6]]: value });
      const own = figures.get(name) && (figures.get(name).layout[axis] || {}).range;
      if (own && found[axis] && String(own) === String(found[axis])) delete found[axis];
    }
    zooms.set(name, found);
  }

  function mark(name) {
    const frame = element("frame", name);
    if (!frame || !have.tags[name]) return;
    frame.classList.remove("waiting");
    frame.dataset.drawn = "yes";
    frame.dataset.tag = window.nethookTag(frame);
  }

  // The `data-tag` of a place when what was sent last stands in it: for benchmarks/page.py.
  window.nethookTag = ({ id }) => {
    const { frame, part } = JSON.parse(id);
    return part ? have.tags[part] : `${have.tags[frame]} ${lineOf(figures.get(frame)) ? step : ""}`;
  };

  // A line at the step that is looked at: it moves without the figure being drawn anew.
  let step = null;
  const lineOf = (figure) => (step !== null && figure && figure.layout.meta && figure.layout.meta.line) || null;
  function withLine(figure, shapes) {
    const line = lineOf(figure);
    return line ? [...(shapes || []), draw.themed({ ...line, x0: step, x1: step })] : shapes;
  }
  const plots = new Map(); // name -> the element that plotly.js draws in
  function put(name, frame, figure) {
    let plot = plots.get(name);
    if (plot && plot.parentElement !== frame) { window.Plotly.purge(plot); plot = null; }
    if (!plot) {
      plot = document.createElement("div");
      plot.className = "graph";
      frame.replaceChildren(plot);
      plots.set(name, plot);
    }
    if (plot.shows === figure) {
      window.Plotly.relayout(plot, { shapes: withLine(figure, draw.themed(figure.layout.shapes)) });
      mark(name);
      return;
    }
    plot.shows = figure;
    const wide = frame.clientWidth;
    const least = figure.layout.meta && figure.layout.meta.least;
    if (least && wide < least) frame.style.overflowX = "auto";
    // plotly.js writes into what it is given: a zoom is not to be taken for what was sent.
    const layout = draw.fitted({ layout: structuredClone(figure.layout) }, wide);
    layout.shapes = withLine(figure, layout.shapes);
    layout.height = layout.height || 300;
    frame.style.height = `${layout.height}px`;
    for (const [axis, range] of Object.entries(zooms.get(name) || {})) layout[axis] = { ...layout[axis], range, autorange: false };
    const data = draw.themed(draw.traces(figure.data)).map((trace) => ({ ...trace }));
    window.Plotly.react(plot, data, layout, draw.config(frame));
    if (!plot.nethook) {
      plot.nethook = name;
      plot.on("plotly_click", (event) => clicked(plot, event));
      plot.on("plotly_relayout", (change) => zoomed(name, change));
      plot.on("plotly_doubleclick", () => setTimeout(() => zooms.delete(name), 0));
    }
    mark(name);
  }

  // What is seen is drawn first, from the top and one at a time, so that each can be looked at while
  // the next is drawn; the rest when it comes near.
  const AHEAD = 400; // pixels
  const due = new Set(); // figures that were sent and are not drawn
  let drawing = 0;
  function drawSoon(after = 0) {
    if (!drawing && due.size) drawing = setTimeout(drawNext, after);
  }
  function drawNext() {
    drawing = 0;
    if (!window.Plotly) return; // it says when it is there
    const places = [];
    for (const name of [...due]) {
      const frame = element("frame", name);
      if (!frame) { drawSoon(10); return; } // the skeleton is not there yet
      const before = frame.firstElementChild;
      if (before && before.nethook !== name) { // React gave the frame of another view a new name
        frame.replaceChildren();
        frame.dataset.drawn = "no";
      }
      frame.hidden = !figures.get(name);
      if (frame.hidden) due.delete(name); else places.push({ name, frame });
    }
    let seen = null, more = false;
    for (const { name, frame } of places) {
      if (frame.dataset.drawn !== "yes") frame.style.height = `${figures.get(name).layout.height || 300}px`;
    }
    for (const place of places) {
      const { top, bottom } = place.frame.getBoundingClientRect();
      if (top >= window.innerHeight || bottom <= 0) { nearing.observe(place.frame); continue; }
      more = more || seen !== null;
      if (!seen || top < seen.top) seen = { ...place, top };
    }
    if (seen) drawNow(seen.name, seen.frame);
    if (more) drawSoon();
  }
  function drawNow(name, frame) {
    due.delete(name);
    nearing.unobserve(frame);
    put(name, frame, figures.get(name));
  }
  const nearing = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      const { frame: name } = JSON.parse(target.id);
      if (isIntersecting && due.has(name) && figures.get(name)) drawNow(name, target);
    }
  }, { rootMargin: `${AHEAD}px 0px` });

  function drawAll() {
    for (const plot of plots.values()) plot.shows = null;
    for (const name of figures.keys()) due.add(name);
    drawSoon();
  }

  // plotly.js loads beside everything else. It is sent without what nobody draws here; should it
  // not work so, the whole is loaded.
  document.addEventListener("load", ({ target }) => {
    if (target.id !== "plotly-js") return;
    if (window.Plotly) { drawSoon(); return; }
    if (target.dataset.whole) {
      const script = document.createElement("script");
      script.id = "plotly-js";
      script.src = target.dataset.whole;
      document.head.append(script);
    }
  }, true);

  // Figures that are no longer on the page listen to nothing any more.
  function forget() {
    for (const [name, plot] of plots) {
      if (plot.isConnected) continue;
      plots.delete(name);
      if (window.Plotly) window.Plotly.purge(plot);
    }
  }

  // A mark of a finding leads to the finding, a cell of a heatmap to its layer at that step.
  function clicked(plot, event) {
    const { layout } = figures.get(plot.nethook) || {};
    if (!layout || !event.points.length) return;
    if (layout.yaxis20) {
      const margin = { t: 0, b: 0, ...layout.margin };
      const { top, height } = plot.getBoundingClientRect();
      const depth = (event.event.clientY - top - margin.t) / (height - margin.t - margin.b);
      if (depth > 1.3 * (1 - layout.yaxis20.domain[0])) return;
      const ids = event.points.map((point) => Array.isArray(point.customdata) && point.customdata[0]);
      const id = ids.find((each) => /^finding-\d+$/.test(each));
      const run = location.pathname.match(/^\/run\/[^/]+/);
      const path = run ? run[0] : (document.getElementById("go-1") || {}).pathname;
      if (id && path) go(`${path}/findings?n=${id.slice(8)}`);
      return;
    }
    const links = layout.meta && layout.meta.links;
    const point = event.points[0];
    if (!links || !point.data.y) return;
    const link = links[[...point.data.y].indexOf(point.y)];
    if (!link || link.to === "") return;
    if (link.fold !== undefined) { setParam("fold", link.fold, { keep: true }); return; }
    const to = new URL(link.to, location.origin);
    if (point.data.type === "heatmap") to.searchParams.set("step", Math.max(0, Math.round(point.x)));
    go(to.pathname + to.search);
  }

  // What Dash calls: with every answer. A new skeleton has its parts of nodes in it.

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    nethook: {
      have(view) {
        if (!view) return nothing();
        take(view);
        for (const [name, part] of Object.entries(view.parts)) {
          if ("nodes" in part) window.dash_clientside.set_props({ part: name }, { children: part.nodes ?? null, "data-tag": part.tag });
        }
        setTimeout(() => settle(), 0);
        return have;
      },
    },
  });

  const rowsOf = (figure) => (figure && figure.data[0] && figure.data[0].type === "heatmap" ? String(figure.data[0].y) : "");
  function take(view) {
    const tags = view.new ? {} : { ...have.tags };
    if (view.new) { figures.clear(); due.clear(); zooms.clear(); nearing.disconnect(); setTimeout(forget, 500); }
    for (const [name, part] of Object.entries(view.parts)) {
      tags[name] = part.tag;
      if (!("figure" in part)) continue;
      if (rowsOf(figures.get(name)) !== rowsOf(part.figure)) zooms.delete(name);
      figures.set(name, part.figure);
      due.add(name);
    }
    have = { skeleton: view.skeleton, tags };
    if (step !== view.step) {
      step = view.step;
      for (const [name, figure] of figures) if (lineOf(figure)) due.add(name);
    }
    drawSoon();
    window.nethookSent = (window.nethookSent || 0) + 1; // for benchmarks/page.py
    if (document.title !== view.title) {
      document.title = view.title;
      const said = document.getElementById("said");
      if (said && view.new) said.textContent = view.title;
    }
    if (view.new) setTimeout(() => window.scrollTo({ top: 0, behavior: "instant" }), 0);
  }

  // After parts were put in: choices show what the address says, and a finding is brought into view.
  function settle(tries = 0) {
    const places = [...document.querySelectorAll('#page div[id^="{"]:not(.figure)')];
    if (tries < 200 && places.some((place) => place.dataset.tag !== window.nethookTag(place))) {
      setTimeout(() => settle(tries + 1), 10);
      return;
    }
    for (const select of document.querySelectorAll("select.param")) {
      const { options } = select.dataset;
      if (select.nethook !== options) {
        const { value } = select;
        select.nethook = options;
        select.replaceChildren(...JSON.parse(options).map(([of, text]) => new Option(text, of)));
        select.value = document.activeElement === select ? value : select.dataset.value;
      }
      if (document.activeElement !== select && select.value !== select.dataset.value) select.value = select.dataset.value;
    }
    for (const slider of document.querySelectorAll(".slider.param")) {
      const input = slider.querySelector("input");
      const asked = new URLSearchParams(location.search).get(slider.dataset.param);
      const value = asked === null || +asked > +input.max ? slider.dataset.value : asked;
      if (!sliding && input.value !== value) input.value = value;
      if (!sliding) slider.querySelector("output").textContent = (+value).toLocaleString("en");
    }
    const focus = document.querySelector("[data-focus]");
    const target = focus && document.getElementById(focus.dataset.focus);
    if (target && looked !== location.href) {
      looked = location.href;
      for (const other of document.querySelectorAll(".finding.here")) other.classList.remove("here");
      target.classList.add("here");
      target.scrollIntoView({ block: "start", behavior: "instant" });
      target.focus({ preventScroll: true });
    }
    if (!focus) looked = "";
    root.dataset.ready = "yes";
  }

  // Choices

  let sliding = 0, typing = 0;
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches(".param")) setParam(button.dataset.param, button.dataset.value, { keep: button.dataset.keep === "yes" });
    if (button.id === "theme-button") switchTheme();
    if (button.id === "keys" || button.id === "keys-close") showKeys();
  });
  document.addEventListener("change", (event) => {
    const select = event.target.closest("select.param");
    if (select) setParam(select.dataset.param, select.value);
  });
  document.addEventListener("input", (event) => {
    const slider = event.target.closest(".slider.param");
    if (slider) {
      slider.querySelector("output").textContent = (+event.target.value).toLocaleString("en");
      clearTimeout(sliding);
      sliding = setTimeout(() => { sliding = 0; setParam(slider.dataset.param, event.target.value, { replace: true }); }, 120);
    }
    const typed = event.target.closest(".typed.param");
    if (typed) {
      clearTimeout(typing);
      typing = setTimeout(() => setParam(typed.dataset.param, event.target.value, { replace: true }), 250);
    }
  });

  function redraw() {
    root.dataset.theme = draw.theme();
    drawAll();
  }
  function switchTheme() {
    draw.choose(draw.theme() === "dark" ? "light" : "dark");
    redraw();
  }
  draw.system.addEventListener("change", redraw);
  let narrow = root.clientWidth < 700;
  window.addEventListener("resize", () => {
    if (narrow !== root.clientWidth < 700) { narrow = !narrow; redraw(); }
  });

  // Keys

  function showKeys(on) {
    const box = document.getElementById("keys-box");
    if (!box) return;
    box.hidden = on === undefined ? !box.hidden : !on;
    (box.hidden ? document.getElementById("keys") : document.getElementById("keys-close")).focus();
  }
  const press = (id) => { const link = document.getElementById(id); if (link) link.click(); };
  function moveStep(by) {
    const input = document.querySelector(".slider.param input");
    if (!input) return;
    const name = input.closest(".param").dataset.param;
    setParam(name, String(Math.min(+input.max, Math.max(0, +input.value + by))), { replace: true });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, [role=region]")) return;
    const box = document.getElementById("keys-box");
    if (event.key === "Escape" && box && !box.hidden) showKeys(false);
    else if (/^[1-9]$/.test(event.key)) press(`go-${event.key}`);
    else if (event.key === "[") press("layer-before");
    else if (event.key === "]") press("layer-after");
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") moveStep((event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1));
    else if (event.key === "r") go("/");
    else if (event.key === "t") switchTheme();
    else if (event.key === "?") showKeys();
    else return;
    event.preventDefault();
  });

  // Whether the server still answers.
  const ask = window.fetch.bind(window);
  window.fetch = async (...what) => {
    try {
      const answer = await ask(...what);
      there(true);
      return answer;
    } catch (error) {
      if (error.name !== "AbortError") there(false);
      throw error;
    }
  };
  function there(answers) {
    const gone = document.getElementById("gone");
    if (gone) gone.hidden = answers;
  }
})();
