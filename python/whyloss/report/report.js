// Draws the figures of a paper from the data block.
const figures = JSON.parse(document.getElementById("data").textContent);
const choice = { interval: "bars", reference: false };
// What the reader hid or showed by hand stays so when the plot is drawn again.
const visible = new Map();

const known = (x) => x !== null && x !== undefined;
// Small numbers are shown in thousandths, millionths, …: the unit goes to the axis title.
const scale = (figure) => {
  const top = Math.max(...figure.curves.flatMap((curve) => curve.x.map(Math.abs)));
  return top > 0 && top < 1e-3 ? 3 * Math.ceil(-Math.log10(top) / 3) : 0;
};
const power = (n) => (n ? ` (10${[..."−" + n].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")})` : "");
const fade = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");

function traces(figure, index) {
  const out = [];
  const unit = 10 ** scale(figure);
  figure.curves.forEach((curve, number) => {
    if (curve.reference && !choice.reference) return;
    const { colour: tone, marker, filled, dashed, line } = curve.style;
    const key = `${index}/${number}`;
    const xs = curve.x.map((x) => x * unit);
    const show = visible.has(key) ? visible.get(key) : true;
    const low = curve.low.map((l, i) => (known(l) ? l : curve.y[i]));
    const high = curve.high.map((h, i) => (known(h) ? h : curve.y[i]));
    const group = { legendgroup: key, visible: show };
    if (choice.interval === "bands") {
      out.push({
        ...group, x: [...xs, ...xs.slice().reverse()], y: [...high, ...low.slice().reverse()],
        fill: "toself", fillcolor: fade(tone, curve.reference ? 0.1 : 0.2), mode: "lines", line: { width: 0 },
        hoverinfo: "skip", showlegend: false,
      });
    }
    out.push({
      ...group, meta: key, name: curve.label, x: xs, y: curve.y, mode: line === false ? "markers" : "lines+markers",
      line: { color: tone, width: curve.reference ? 1.2 : 2, dash: dashed ? "dot" : "solid" },
      marker: {
        color: filled ? tone : colour("--paper"), size: curve.reference ? 6 : 8,
        symbol: { triangle: "triangle-up" }[marker] || marker, line: { color: tone, width: 1.8 },
      },
      error_y: {
        type: "data", symmetric: false, array: high.map((h, i) => h - curve.y[i]), arrayminus: low.map((l, i) => curve.y[i] - l),
        color: tone, thickness: 1.2, width: 3, visible: choice.interval === "bars",
      },
      customdata: curve.n.map((n, i) => [low[i], high[i], n]),
      hovertemplate: "%{y:.4~g} (%{customdata[0]:.4~g} … %{customdata[1]:.4~g}), n = %{customdata[2]}<extra>%{fullData.name}</extra>",
    });
  });
  return out;
}

// Height of the legend in pixels. Long names stand below each other; the plot shall not shrink for them.
function legend(figure) {
  const shown = figure.curves.filter((curve) => choice.reference || !curve.reference);
  const long = shown.filter((curve) => curve.label.length > 30).length;
  return 30 * (long + Math.ceil((shown.length - long) / (narrow.matches ? 1 : 2.5)));
}

function layout(figure) {
  const names = figure.x_ticks?.length ? { tickvals: figure.x_ticks.map((_, i) => i), ticktext: figure.x_ticks } : {};
  const zero = figure.y_from_zero === false ? "normal" : "tozero";
  return {
    ...look(),
    margin: { l: 54, r: 12, t: 8, b: 56 + legend(figure) }, hovermode: narrow.matches ? "closest" : "x unified",
    xaxis: {
      ...axis(), ...names, title: { text: figure.x_label + power(scale(figure)), standoff: 6 }, rangemode: names.tickvals ? "normal" : "tozero", hoverformat: ".4~g",
    },
    yaxis: { ...axis(), title: { text: figure.y_label, standoff: 6 }, range: figure.y_limit && zero === "tozero" ? [0, figure.y_limit * 1.04] : undefined, rangemode: zero },
  };
}

start((element) => {
  const index = Number(element.dataset.figure);
  const figure = figures[index];
  const height = (narrow.matches ? 320 : 350) + legend(figure);
  return { traces: traces(figure, index), layout: layout(figure), height, name: `figure-${figure.id}` };
}, (element) => element.on("plotly_restyle", () => {
  element.data.forEach((trace) => { if (trace.meta) visible.set(trace.meta, trace.visible ?? true); });
}));
// One reading of the paper at a time; without JavaScript all of them stand below each other.
const parts = document.querySelectorAll("[data-reading]");
function read(name) {
  parts.forEach((part) => { part.hidden = part.dataset.reading !== name; });
  redraw();
}
document.querySelectorAll("input[name=reading]").forEach((input) => {
  input.addEventListener("change", () => read(input.value));
  if (input.checked) read(input.value);
});
document.querySelectorAll("input[name=interval]").forEach((input) => {
  input.addEventListener("change", () => { choice.interval = input.value; redraw(); });
});
document.getElementById("reference")?.addEventListener("change", (event) => { choice.reference = event.target.checked; redraw(); });
// A link to a claim opens it, and shows the reading that it belongs to.
const open = () => {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.tagName === "DETAILS") target.open = true;
  const name = target?.closest("[data-reading]")?.dataset.reading;
  if (name) document.querySelector(`input[name=reading][value=${name}]`)?.click();
};
addEventListener("hashchange", open);
open();
