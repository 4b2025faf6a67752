"use strict";
// Draws the figures of a report when they come into view. Everything it needs is in the page.
(() => {
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const { templates, dark } = read("nh-looks");
  const drawn = new Map(); // element -> figure
  const NARROW = 560;

  // Theme: that of the system until another is chosen.
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("nethook-theme"); } catch { /* a file has no storage in some browsers */ }
  const theme = () => chosen || (system.matches ? "dark" : "light");

  // 8-bit codes with their scale: see views/render.py.
  const TOP = 252, INFINITE = 253, ZERO = 254, MISSING = 255;
  function decode(cells) {
    const bytes = Uint8Array.from(atob(cells.codes), (char) => char.charCodeAt(0));
    const [planes, rows, columns] = cells.shape;
    const scaled = new Float64Array(256), values = new Float64Array(256);
    for (let code = 0; code <= TOP; code++) {
      scaled[code] = code === TOP ? cells.high : cells.low + (code / TOP) * (cells.high - cells.low);
      values[code] = cells.log ? 10 ** scaled[code] : scaled[code];
    }
    scaled[INFINITE] = cells.high; values[INFINITE] = Infinity;
    scaled[ZERO] = cells.low; values[ZERO] = 0;
    scaled[MISSING] = NaN; values[MISSING] = NaN;
    const z = [], customdata = [];
    for (let row = 0; row < rows; row++) {
      const colours = new Array(columns), texts = new Array(columns);
      for (let column = 0; column < columns; column++) {
        const at = row * columns + column;
        const code = bytes[at];
        colours[column] = code === MISSING ? null : scaled[code];
        const parts = new Array(planes);
        for (let plane = 0; plane < planes; plane++) parts[plane] = values[bytes[plane * rows * columns + at]];
        texts[column] = parts;
      }
      z.push(colours); customdata.push(texts);
    }
    return { z, customdata };
  }

  function load(element) {
    const figure = JSON.parse(document.getElementById(element.dataset.figure).textContent);
    for (const trace of figure.data) {
      if (trace.cells) { Object.assign(trace, decode(trace.cells)); delete trace.cells; }
    }
    return figure;
  }

  // Brighter colours on the dark background: see `themed` in views/render.py.
  const KEYS = new Set(["color", "fillcolor", "zerolinecolor"]);
  const SPAN = /style="color:(#[0-9A-Fa-f]{6})"/g;
  function onDark(colour) {
    const begin = colour.slice(0, colour.lastIndexOf(","));
    return dark[colour] || (dark[begin] ? dark[begin] + colour.slice(begin.length) : colour);
  }
  function themed(value, key) {
    if (theme() === "light") return value;
    if (typeof value === "string") {
      if (KEYS.has(key)) return onDark(value);
      return key === "text" ? value.replace(SPAN, (_, colour) => `style="color:${onDark(colour)}"`) : value;
    }
    if (Array.isArray(value)) return value.length > 300 ? value : value.map((entry) => themed(entry, key));
    if (value && typeof value === "object" && !ArrayBuffer.isView(value)) {
      return Object.fromEntries(Object.entries(value).map(([name, entry]) => [name, BIG.has(name) ? entry : themed(entry, name)]));
    }
    return value;
  }
  const BIG = new Set(["z", "customdata", "x", "y", "bdata"]);

  // On a narrow screen names take less room, and the scale of colours stands below.
  function fitted(figure, width) {
    const layout = { ...themed(figure.layout), template: templates[theme()], autosize: true };
    if (width >= NARROW) return layout;
    layout.font = { size: 11 };
    layout.margin = { ...layout.margin, l: 8, r: 8 };
    layout.dragmode = false; // a finger scrolls the page
    for (const name of Object.keys(layout)) {
      if (/^[xy]axis\d*$/.test(name)) {
        layout[name] = { ...layout[name], tickfont: { size: 9 }, nticks: layout[name].nticks || (name[0] === "x" ? 5 : undefined) };
        if (name[0] === "y" && layout[name].title) layout[name].title = undefined;
      }
    }
    if (layout.coloraxis && layout.coloraxis.colorbar) {
      layout.coloraxis = { ...layout.coloraxis, colorbar: { ...layout.coloraxis.colorbar, orientation: "h", thickness: 8, len: 1, x: 0.5, y: -0.18, yanchor: "top", title: undefined, nticks: 5 } };
      layout.height = (layout.height || 300) + 40;
      layout.margin = { ...layout.margin, b: 70 };
    }
    return layout;
  }

  const CONFIG = {
    displaylogo: false, responsive: true,
    showSendToCloud: false, plotlyServerURL: "", // nothing leaves this page
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: "nethook" },
  };

  // On a phone the buttons would cover the titles, and fingers scroll instead of zooming.
  const config = (element) => (element.clientWidth < NARROW && root.clientWidth < 700 ? { ...CONFIG, displayModeBar: false } : CONFIG);

  function draw(element) {
    if (drawn.has(element)) return;
    const figure = load(element);
    // What cannot be read when it is narrow is scrolled.
    const least = figure.layout.meta && figure.layout.meta.least;
    if (least && element.clientWidth < least) {
      element.parentElement.style.overflowX = "auto";
      element.style.minWidth = `${least}px`;
    }
    drawn.set(element, figure);
    const layout = fitted(figure, element.clientWidth);
    Plotly.newPlot(element, themed(figure.data), layout, config(element)).then(() => {
      element.dataset.drawn = "yes";
      element.style.height = "";
      // A mark of a finding leads to the finding. The cursor goes through all panels, so a click
      // is about a mark only where it is among the marks.
      element.on("plotly_click", (event) => {
        const strip = figure.layout.yaxis20;
        if (!strip || !event.event) return;
        const { t, b } = { t: 0, b: 0, ...figure.layout.margin };
        const { top, height } = element.getBoundingClientRect();
        const depth = (event.event.clientY - top - t) / (height - t - b);
        if (depth > 1.3 * (1 - strip.domain[0])) return;
        const ids = event.points.map((point) => Array.isArray(point.customdata) && point.customdata[0]);
        const id = ids.find((each) => /^finding-\d+$/.test(each));
        if (id) go(id);
      });
    });
  }

  function redraw() {
    root.dataset.theme = theme();
    for (const [element, figure] of drawn) {
      Plotly.react(element, themed(figure.data), fitted(figure, element.clientWidth), config(element));
    }
  }

  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { observer.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "600px 0px" });

  // Links to a layer open it.
  function go(id) {
    const target = document.getElementById(id);
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    target.scrollIntoView({ block: "start" });
    history.replaceState(null, "", `#${id}`);
  }

  function start() {
    root.dataset.theme = theme();
    for (const element of document.querySelectorAll(".figure")) observer.observe(element);
    document.getElementById("theme").addEventListener("click", () => {
      chosen = theme() === "dark" ? "light" : "dark";
      try { localStorage.setItem("nethook-theme", chosen); } catch { /* as above */ }
      redraw();
    });
    system.addEventListener("change", redraw);
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#"]');
      if (link) { event.preventDefault(); go(link.getAttribute("href").slice(1)); }
    });
    for (const list of document.querySelectorAll('[role="tablist"]')) tabs(list);
    const filter = document.getElementById("filter");
    const layers = [...document.querySelectorAll("details.layer")];
    if (filter) filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase();
      for (const layer of layers) layer.hidden = !layer.dataset.name.toLowerCase().includes(wanted);
    });
    const all = document.getElementById("open-all");
    if (all) all.addEventListener("click", () => {
      const open = layers.some((layer) => !layer.open);
      for (const layer of layers) layer.open = open;
      all.textContent = open ? "close all" : "open all";
    });
    window.addEventListener("beforeprint", () => {
      for (const element of document.querySelectorAll(".figure")) if (element.checkVisibility()) draw(element);
    });
    if (location.hash) go(location.hash.slice(1));
    root.dataset.ready = "yes";
  }

  function tabs(list) {
    const buttons = [...list.querySelectorAll('[role="tab"]')];
    const select = (chosenTab, focus) => {
      for (const button of buttons) {
        const on = button === chosenTab;
        button.setAttribute("aria-selected", String(on));
        button.tabIndex = on ? 0 : -1;
        document.getElementById(button.getAttribute("aria-controls")).hidden = !on;
      }
      if (focus) chosenTab.focus();
    };
    list.addEventListener("click", (event) => {
      const button = event.target.closest('[role="tab"]');
      if (button) select(button);
    });
    list.addEventListener("keydown", (event) => {
      const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!move) return;
      event.preventDefault();
      const at = buttons.indexOf(document.activeElement);
      select(buttons[(at + move + buttons.length) % buttons.length], true);
    });
  }

  start();
})();
