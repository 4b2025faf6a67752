"use strict";
// The figures of the page and of the report: which are drawn when, what stays while new numbers
// come, where a click leads, and how curves are shown. Everything it needs is in the page.
window.nethookFigures = (() => {
  const draw = window.nethookDraw;
  const figures = new Map(); // name -> figure as it was sent; null where there is nothing to draw
  const plots = new Map(); // name -> the element that plotly.js draws in
  const zooms = new Map(); // name -> axis -> range
  const finer = new Map(); // name -> traces of what a zoom shows
  const due = new Set(); // figures that are not drawn as they should be
  const frameOf = (name) => document.getElementById(`frame-${name}`);
  // What the page or the report sets: where a click leads, and how curves are to be shown.
  const hooks = { go() {}, fold() {}, finding() {}, curves: () => ({}), step: () => null, drawn() {} };

  // What was zoomed stays so while new steps come, until it is undone or other rows are shown.
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
    refine(name);
  }

  // Curves that have more points than are drawn are fetched as fine as they are kept.
  let fetching = 0;
  function refine(name) {
    const figure = figures.get(name);
    const from = figure && figure.layout.meta && figure.layout.meta.fine;
    const range = (zooms.get(name) || {}).xaxis;
    if (!from) return;
    clearTimeout(fetching);
    if (!range) {
      if (finer.delete(name)) redraw(name);
      return;
    }
    const [first, last] = [...range].map((at) => toStep(figure, +at)).sort((a, b) => a - b);
    fetching = setTimeout(async () => {
      try {
        const answer = await fetch(`${document.documentElement.dataset.base || ""}${from}&from=${first}&to=${last}`);
        if (!answer.ok || figures.get(name) !== figure) return;
        finer.set(name, (await answer.json()).data);
        redraw(name);
      } catch { /* what is drawn stays */ }
    }, 150);
  }
  function redraw(name) {
    const plot = plots.get(name);
    if (plot) plot.shows = null;
    due.add(name);
    drawSoon();
  }

  // A line at the step that is looked at: it moves without the figure being drawn anew.
  const lineOf = (figure) => (hooks.step() !== null && figure && figure.layout.meta && figure.layout.meta.line) || null;
  function withLine(figure, shapes) {
    const line = lineOf(figure), step = hooks.step();
    return line ? [...(shapes || []), draw.themed({ ...line, x0: step, x1: step })] : shapes;
  }

  // Curves: along which axis, on which scale, how smooth.
  const between = (from, to, at) => {
    let low = 0, high = from.length - 1;
    if (high < 1) return at;
    while (high - low > 1) { const middle = (low + high) >> 1; if (from[middle] <= at) low = middle; else high = middle; }
    const wide = from[high] - from[low];
    return wide ? to[low] + ((at - from[low]) / wide) * (to[high] - to[low]) : to[low];
  };
  const axisOf = (figure) => {
    const { x } = hooks.curves();
    return (figure.layout.meta && figure.layout.meta.curves && figure.layout.meta.axes[x]) || null;
  };
  const toStep = (figure, at) => { const axis = axisOf(figure); return axis ? between(axis.at, axis.step, at) : at; };
  const WORDS = { epoch: ["epoch", "epoch %{x:.3~f}"], time: ["seconds", "%{x:,.1f} s"] };
  const numbers = (array) => (Array.isArray(array) ? array : draw.numbers(array));
  function smoothed(values, weight) {
    let mean = 0, total = 0;
    return values.map((value) => {
      if (value === null || !Number.isFinite(value)) return value;
      mean = mean * weight + (1 - weight) * value;
      total = total * weight + (1 - weight);
      return mean / total;
    });
  }
  function asCurves(figure, data, layout) {
    const { x, log, smooth } = hooks.curves();
    const axis = axisOf(figure);
    if (axis) {
      const placed = (at) => between(axis.step, axis.at, at);
      data = data.map((trace) => ({ ...trace, x: numbers(trace.x).map(placed) }));
      layout.shapes = (layout.shapes || []).map((shape) => (shape.xref === "x" ? { ...shape, x0: placed(shape.x0), x1: placed(shape.x1) } : shape));
      layout.annotations = (layout.annotations || []).map((note) => (note.xref === "x" ? { ...note, x: placed(note.x) } : note));
      const [title, hover] = WORDS[x];
      layout.xaxis = { ...layout.xaxis, title: { text: title }, range: layout.xaxis.range.map(placed), unifiedhovertitle: { text: hover }, hoverformat: ",.2f", tickformat: ",~g" };
    }
    if (log === "log" || log === "linear") {
      for (const name of Object.keys(layout)) {
        if (!/^yaxis\d*$/.test(name) || name === "yaxis20") continue;
        const { tickvals, ticktext, range, type, ...rest } = layout[name];
        if ((type === "log") === (log === "log")) continue;
        layout[name] = { ...rest, type: log === "log" ? "log" : "linear", autorange: true };
      }
    }
    if (smooth) {
      const made = [];
      for (const trace of data) {
        const isLine = trace.type === "scatter" && (trace.mode || "").startsWith("lines") && trace.hoverinfo !== "skip" && trace.line && trace.line.width;
        if (!isLine) { made.push(trace); continue; }
        made.push({ ...trace, opacity: 0.3, hoverinfo: "skip", hovertemplate: undefined, line: { ...trace.line, width: 1 } });
        made.push({ ...trace, y: smoothed(numbers(trace.y), smooth / 100), hovertemplate: trace.hovertemplate.replace("<extra>", " (smoothed)<extra>") });
      }
      data = made;
    }
    return data;
  }

  function mark(name, frame) {
    frame.dataset.drawn = "yes";
    hooks.drawn(name, frame);
  }
  function put(name, frame) {
    const figure = figures.get(name);
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
      mark(name, frame);
      return;
    }
    plot.shows = figure;
    const wide = frame.clientWidth;
    const least = figure.layout.meta && figure.layout.meta.least;
    // What cannot be read when it is narrow is scrolled.
    if (least && wide < least) { frame.style.overflowX = "auto"; frame.tabIndex = 0; plot.style.minWidth = `${least}px`; }
    // plotly.js writes into what it is given: a zoom is not to be taken for what was sent.
    const layout = draw.fitted({ layout: structuredClone(figure.layout), data: figure.data }, wide);
    layout.shapes = withLine(figure, layout.shapes);
    layout.height = layout.height || 300;
    frame.style.height = `${layout.height}px`;
    let data = draw.themed(draw.traces(finer.get(name) || figure.data)).map((trace) => ({ ...trace }));
    if (figure.layout.meta && figure.layout.meta.curves) data = asCurves(figure, data, layout);
    for (const [axis, range] of Object.entries(zooms.get(name) || {})) if (layout[axis]) layout[axis] = { ...layout[axis], range, autorange: false };
    window.Plotly.react(plot, data, layout, draw.config(frame));
    if (!plot.nethook) {
      plot.nethook = name;
      plot.on("plotly_click", (event) => clicked(plot, event));
      plot.on("plotly_relayout", (change) => zoomed(name, change));
      plot.on("plotly_doubleclick", () => setTimeout(() => { zooms.delete(name); refine(name); }, 0));
    }
    mark(name, frame);
  }

  // What is seen is drawn first, from the top and one at a time, so that each can be looked at while
  // the next is drawn; the rest when there is nothing else to do, so that nothing is blank in print.
  let drawing = 0, resting = 0;
  function drawSoon(after = 0) {
    if (!drawing && due.size) drawing = setTimeout(drawNext, after);
  }
  const idle = window.requestIdleCallback ? (task) => window.requestIdleCallback(task, { timeout: 1000 }) : (task) => setTimeout(task, 30);
  function drawNext() {
    drawing = 0;
    if (!window.Plotly) return; // it says when it is there
    let seen = null, rest = null;
    for (const name of [...due]) {
      const frame = frameOf(name);
      if (!frame) { due.delete(name); continue; }
      frame.hidden = !figures.get(name);
      if (frame.hidden) { due.delete(name); continue; }
      if (frame.dataset.drawn !== "yes") frame.style.height = `${figures.get(name).layout.height || 300}px`;
      if (!frame.clientWidth) continue; // folded: it is drawn when it is opened
      const { top, bottom } = frame.getBoundingClientRect();
      if (top < window.innerHeight && bottom > 0 && getComputedStyle(frame).visibility !== "hidden") {
        if (!seen || top < seen.top) seen = { name, frame, top };
      } else if (!rest) rest = { name, frame };
    }
    const next = seen || rest;
    if (!next) return;
    const now = () => {
      resting = 0;
      if (!due.delete(next.name) || !next.frame.isConnected) { drawSoon(); return; }
      put(next.name, next.frame);
      // The next one waits until this one is on the screen; a page in the background has no frames.
      if (document.hidden) drawSoon(); else requestAnimationFrame(() => drawSoon());
    };
    if (seen) now();
    else if (!resting) resting = idle(now) || 1;
  }

  // At once, for print: what is open and not drawn.
  function drawAll() {
    for (const name of [...due]) {
      const frame = frameOf(name);
      if (window.Plotly && frame && figures.get(name) && frame.clientWidth) { due.delete(name); put(name, frame); }
    }
  }
  window.addEventListener("beforeprint", drawAll);
  document.addEventListener("toggle", () => drawSoon(), true);
  window.addEventListener("scroll", () => drawSoon(), { passive: true });

  // A picture until plotly.js is there, where curves are to be shown as they were sent.
  function show(name, picture) {
    const frame = frameOf(name), figure = figures.get(name);
    const { x = "step", log = "", smooth = 0 } = hooks.curves();
    if (!frame || plots.has(name) || (isCurves(figure) && (x !== "step" || log || smooth))) return;
    frame.innerHTML = picture;
    frame.style.height = `${figure.layout.height || 300}px`;
    frame.dataset.drawn = "still";
  }

  function set(name, figure, picture) {
    const rows = (one) => (one && one.data[0] && one.data[0].type === "heatmap" ? String(one.data[0].y) : "");
    if (rows(figures.get(name)) !== rows(figure)) zooms.delete(name);
    figures.set(name, figure);
    const old = finer.get(name);
    finer.delete(name);
    due.add(name);
    if (figure && picture && !window.Plotly) show(name, picture);
    if (old) refine(name); // a zoom stays while new numbers come
  }
  function forget() {
    for (const [name, plot] of plots) {
      if (plot.isConnected) continue;
      plots.delete(name);
      if (window.Plotly) window.Plotly.purge(plot);
    }
  }
  function clear() { figures.clear(); due.clear(); zooms.clear(); finer.clear(); setTimeout(forget, 500); }
  function again(which = () => true) {
    for (const [name, figure] of figures) {
      if (!figure || !which(figure)) continue;
      if (plots.has(name)) plots.get(name).shows = null;
      due.add(name);
    }
    drawSoon();
  }
  const curvesAgain = () => {
    // A zoom is of another axis now.
    for (const name of figures.keys()) if (isCurves(figures.get(name))) { zooms.delete(name); finer.delete(name); }
    again(isCurves);
  };
  const isCurves = (figure) => Boolean(figure && figure.layout.meta && figure.layout.meta.curves);
  function moveLine() {
    for (const [name, figure] of figures) if (lineOf(figure)) due.add(name);
    drawSoon();
  }

  // A mark of a finding leads to the finding, a cell of a heatmap to its layer at that step. The
  // cursor goes through all panels, so a click is about a mark only where it is among the marks.
  function clicked(plot, event) {
    const figure = figures.get(plot.nethook);
    if (!figure || !event.points.length || !event.event) return;
    const { layout } = figure;
    if (layout.yaxis20) {
      const margin = { t: 0, b: 0, ...layout.margin };
      const { top, height } = plot.getBoundingClientRect();
      const depth = (event.event.clientY - top - margin.t) / (height - margin.t - margin.b);
      if (depth > 1.3 * (1 - layout.yaxis20.domain[0])) return;
      const ids = event.points.map((point) => Array.isArray(point.customdata) && point.customdata[0]);
      const id = ids.find((each) => /^finding-\d+$/.test(each));
      if (id) hooks.finding(id);
      return;
    }
    const links = layout.meta && layout.meta.links;
    const point = event.points[0];
    if (!links || !point.data.y) return;
    const link = links[[...point.data.y].indexOf(point.y)];
    if (!link || link.to === "") return;
    if (link.fold !== undefined) hooks.fold(link.fold);
    else hooks.go(link.to, point.data.type === "heatmap" ? Math.max(0, Math.round(point.x)) : null);
  }

  return { again, clear, curvesAgain, drawSoon, hooks, isCurves, lineOf, moveLine, set, figures };
})();
