"use strict";
// What every report shares: plots are drawn when they come near the screen, all of them before the page is printed.
const dark = matchMedia("(prefers-color-scheme: dark)");
const narrow = matchMedia("(max-width: 44rem)");
const root = document.documentElement;
const drawn = new Set();
// Given the element of a plot: {traces, layout, height, name}.
let describe = null;

const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const axis = () => ({ gridcolor: colour("--grid"), zerolinecolor: colour("--line"), linecolor: colour("--line") });
const look = () => ({
  paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
  font: { family: getComputedStyle(document.body).fontFamily, color: colour("--ink"), size: 13 },
  hoverlabel: { bgcolor: colour("--paper"), bordercolor: colour("--line"), font: { color: colour("--ink") } },
  legend: { orientation: "h", y: 0, yref: "container", x: 0, yanchor: "bottom" },
  modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--accent") },
});

function draw(element) {
  const { traces, layout, height, name } = describe(element);
  element.style.height = `${height}px`;
  Plotly.react(element, traces, layout, {
    responsive: true, displaylogo: false, scrollZoom: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    toImageButtonOptions: { format: "svg", filename: name },
  });
  const first = !drawn.has(element);
  drawn.add(element);
  return first;
}

// What is hidden has no size to draw in; it is drawn when it is shown.
const redraw = () => drawn.forEach((element) => { if (element.offsetParent) show(element); });
let show = draw;

function start(how, onDraw) {
  describe = how;
  show = (element) => { if (draw(element) && onDraw) onDraw(element); };
  const plots = document.querySelectorAll(".plot");
  const watcher = new IntersectionObserver((entries) => {
    entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => { watcher.unobserve(target); show(target); });
  }, { rootMargin: "600px" });
  plots.forEach((element) => watcher.observe(element));
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  // Paper is light, as wide as it is, and nobody scrolls on it.
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    plots.forEach((element) => { if (element.offsetParent) { watcher.unobserve(element); show(element); } });
  });
  addEventListener("afterprint", () => { root.classList.remove("printing"); redraw(); });
}
