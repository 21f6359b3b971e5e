// Draws the figures of a run. They come as plotly takes them, but for colours that are variables of the style sheet.
const figures = JSON.parse(document.getElementById("data").textContent);

const painted = (value) => {
  if (typeof value === "string") return value.startsWith("--") ? colour(value) : value;
  // Coordinates, of which there are many, have no colours.
  if (Array.isArray(value)) return value[0] !== null && typeof value[0] === "object" ? value.map(painted) : value;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, painted(inner)]));
};

start((element) => {
  const figure = figures[Number(element.dataset.figure)];
  const lines = Math.ceil(figure.traces.length / (narrow.matches ? 1 : 3));
  const layout = { hovermode: "x unified", ...look(), ...figure.layout };
  for (const key of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) layout[key] = { ...axis(), ...layout[key] };
  const margin = { l: 60, r: 12, t: 8, b: 60 + 24 * lines };
  return {
    traces: painted(figure.traces), layout: { ...layout, margin },
    height: figure.height + margin.b, name: figure.title.toLowerCase().replaceAll(" ", "-"),
  };
});
