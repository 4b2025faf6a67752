"use strict";
// How a figure of drawing/render.py becomes one of plotly.js: shared by the report and the page.
// The page that uses it has the templates in a script of JSON called "nh-looks".
window.nethookDraw = (() => {
  const root = document.documentElement;
  const { templates, dark } = JSON.parse(document.getElementById("nh-looks").textContent);
  const NARROW = 560;

  // Theme: that of the system until another is chosen.
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("nethook-theme"); } catch { /* a file has no storage in some browsers */ }
  const theme = () => chosen || (system.matches ? "dark" : "light");

  // 8-bit codes with their scale: see drawing/render.py.
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

  // Brighter colours on the dark background: see `themed` in drawing/render.py.
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
    if (layout.meta && layout.meta.captions > width) namesBelow(layout, figure.data || [], width);
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
      const above = (layout.margin.t === undefined ? 100 : layout.margin.t), below = 76;
      layout.height = (layout.height || 300) + 46;
      layout.margin = { ...layout.margin, b: below };
      // Below the numbers and the name of the axis, however high the figure is.
      const y = -40 / Math.max(40, layout.height - above - below);
      layout.coloraxis = { ...layout.coloraxis, colorbar: { ...layout.coloraxis.colorbar, orientation: "h", thickness: 8, len: 1, x: 0.5, y, yanchor: "top", title: undefined, nticks: 5 } };
    }
    return layout;
  }

  // Captions that have no room for the names of their lines: these stand below the figure.
  function namesBelow(layout, data, width) {
    const named = data.filter((trace) => trace.showlegend);
    if (!named.length) return;
    const longest = Math.max(...named.map((trace) => String(trace.name || "").length));
    const columns = Math.max(1, Math.floor((width - 20) / (6.2 * longest + 46)));
    const room = 16 + 19 * Math.ceil(named.length / columns);
    const { t = 100, b = 80 } = layout.margin || {};
    layout.annotations = (layout.annotations || []).map((note) => ({ ...note, text: String(note.text).replace(/<\/b>\s+<span.*$/, "</b>") }));
    layout.showlegend = true;
    const y = -(b - 4) / Math.max(40, (layout.height || 300) - t - b);
    layout.legend = { orientation: "h", x: 0, xanchor: "left", y, yanchor: "top", font: { size: 11 }, entrywidth: 6.2 * longest + 6, entrywidthmode: "pixels", traceorder: "normal" };
    layout.height = (layout.height || 300) + room;
    layout.margin = { ...layout.margin, b: b + room };
  }

  const CONFIG = {
    displaylogo: false, responsive: true,
    showSendToCloud: false, plotlyServerURL: "", // nothing leaves this page
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg", filename: "nethook" },
  };

  // On a phone the buttons would cover the titles, and fingers scroll instead of zooming.
  const config = (element) => (element.clientWidth < NARROW && root.clientWidth < 700 ? { ...CONFIG, displayModeBar: false } : CONFIG);

  const choose = (wanted) => {
    chosen = wanted;
    try { localStorage.setItem("nethook-theme", chosen); } catch { /* as above */ }
  };

  // Traces with their numbers, from 8-bit codes where they came as such.
  const traces = (data) => data.map((trace) => {
    if (!trace.cells) return trace;
    const { cells, ...rest } = trace;
    return { ...rest, ...decode(cells) };
  });

  // Numbers that came as the bytes of an array.
  const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array };
  function numbers({ dtype, bdata }) {
    const bytes = Uint8Array.from(atob(bdata), (char) => char.charCodeAt(0));
    return Array.from(new ARRAYS[dtype](bytes.buffer));
  }

  return { choose, config, fitted, numbers, system, theme, themed, traces };
})();
