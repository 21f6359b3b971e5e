// Brings the diagrams to life: unpacks them when they come near the screen, zooms, pans, and tells of each loss.
const flows = JSON.parse(document.getElementById("flows").textContent);
const root = document.documentElement;
const styled = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const look = () => ({
  ink: styled("--ink"), soft: styled("--soft"), grid: styled("--grid"), paper: styled("--paper"),
  font: `12px ${getComputedStyle(document.body).fontFamily}`,
});

async function columns(number) {
  const held = document.getElementById(`octets-${number}`), text = atob(held.textContent), octets = new Uint8Array(text.length);
  for (let at = 0; at < octets.length; at++) octets[at] = text.charCodeAt(at);
  held.remove();
  const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate"));
  return unpack(await new Response(stream).arrayBuffer(), flows[number].columns);
}

function sharp(canvas, width, height) {
  const dots = window.devicePixelRatio || 1;
  const wide = Math.round(width * dots), high = Math.round(height * dots);
  // To set a size, even the same, makes a new picture.
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== high) canvas.height = high;
  canvas.style.height = `${height}px`;
  const c = canvas.getContext("2d");
  c.setTransform(dots, 0, 0, dots, 0, 0);
  return c;
}

function live(canvas, diagram, aside) {
  let waiting = false;
  const now = () => {
    diagram.look = look();
    const width = canvas.clientWidth, height = Math.max(420, Math.min(680, innerHeight * 0.75));
    // Nothing is drawn for what is not shown.
    if (width) diagram.draw(sharp(canvas, width, height), width, height);
    canvas.parentElement.classList.toggle("zoomed", !diagram.all);
  };
  const draw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      now();
      canvas.parentElement.querySelector(".stands").hidden = true;
      if (!performance.getEntriesByName("diagram").length) performance.mark("diagram");
    });
  };
  const time = (event) => diagram.view[0] + (event.offsetX - diagram.box.left) / diagram.scale;
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && !canvas.matches(":focus")) return;
    event.preventDefault();
    diagram.zoom(Math.exp(event.deltaY * 0.002), time(event));
    draw();
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = [event.offsetX, diagram.view[0], false]; canvas.setPointerCapture(event.pointerId); canvas.focus(); });
  canvas.addEventListener("pointermove", (event) => {
    canvas.style.cursor = diagram.hit(event.offsetX, event.offsetY) === null ? "grab" : "pointer";
    if (!held) return;
    held[2] ||= Math.abs(event.offsetX - held[0]) > 3;
    diagram.move(held[1] - (event.offsetX - held[0]) / diagram.scale);
    draw();
  });
  canvas.addEventListener("pointerup", (event) => {
    const moved = held && held[2];
    held = null;
    const number = moved ? null : diagram.hit(event.offsetX, event.offsetY);
    if (number !== null) choose(number);
  });
  canvas.addEventListener("dblclick", () => { diagram.reset(); draw(); });
  canvas.addEventListener("keydown", (event) => {
    const [start, end] = diagram.view, middle = (start + end) / 2, width = end - start;
    const act = {
      "+": () => diagram.zoom(0.5, middle), "-": () => diagram.zoom(2, middle), Home: () => diagram.reset(),
      ArrowLeft: () => diagram.move(start - width / 5), ArrowRight: () => diagram.move(start + width / 5),
      n: () => choose(Math.min((diagram.chosen ?? -1) + 1, diagram.flow.losses.length - 1), true),
      p: () => choose(Math.max((diagram.chosen ?? 1) - 1, 0), true),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
    draw();
  });
  function choose(number, centre) {
    const loss = diagram.flow.losses[number];
    if (!loss) return;
    diagram.chosen = number;
    if (centre) diagram.move(loss.time - (diagram.view[1] - diagram.view[0]) / 2);
    tell(aside, diagram, number);
    draw();
  }
  aside.parentElement.querySelectorAll("[data-loss]").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    const loss = diagram.flow.losses[Number(link.dataset.loss)], trip = diagram.flow.rtt_min || 0.05;
    diagram.view = [loss.time, loss.time + 1e-6];
    diagram.zoom(20 * trip / 1e-6, loss.time);
    choose(Number(link.dataset.loss), true);
  }));
  new ResizeObserver(draw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => { root.classList.add("printing"); now(); });
  addEventListener("afterprint", () => { root.classList.remove("printing"); now(); });
  draw();
}

function tell(aside, diagram, number) {
  const loss = diagram.flow.losses[number], line = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
  aside.replaceChildren();
  aside.append(line("h4", `${loss.packet === null ? "A packet that the capture did not see" : `Packet ${loss.packet}`}: ${loss.words}`));
  const repaired = loss.repair === null ? "never sent again" : `sent again as packet ${loss.repair} at ${loss.repaired.toFixed(4)} s`;
  aside.append(line("p", `At ${loss.time.toFixed(4)} s, octets ${loss.offset} to ${loss.offset + loss.octets}; ${repaired}.`));
  const list = aside.appendChild(document.createElement("ul"));
  for (const words of loss.evidence.length ? loss.evidence : ["no evidence"]) list.append(line("li", words));
  aside.append(line("p", Object.entries(loss.probabilities).map(([cause, share]) => `${cause} ${Math.round(100 * share)} %`).join(", ")));
  const canvas = aside.appendChild(document.createElement("canvas"));
  canvas.className = "ladder";
  const rows = diagram.ladder(number), height = 34 + rows.length * 15 + 12, width = canvas.clientWidth;
  drawLadder(sharp(canvas, width, height), rows, look(), width, [diagram.flow.sender, diagram.flow.receiver]);
  aside.hidden = false;
}

const watcher = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    watcher.unobserve(target);
    const number = Number(target.dataset.flow), aside = target.parentElement.querySelector("aside");
    columns(number).then((found) => live(target, new Diagram(flows[number], found, look()), aside));
  }
}, { rootMargin: "400px" });
document.querySelectorAll("canvas.sequence").forEach((canvas) => watcher.observe(canvas));
