"use strict";
if (typeof module !== "undefined") Object.assign(globalThis, require("./levels.js"));
// The time-sequence diagram of a captured connection. What shares a column of pixels is drawn as one bar from its lowest to its highest
// octet, which levels.js knows without reading what is in between: the work for a picture grows with its width, not with the segments.

const CAUSES = {
  congestion: "#d55e00", policer: "#e69f00", corruption: "#0072b2", "link-down": "#7a52b8", receiver: "#8a6d3b",
  reordering: "#009e73", "spurious-timeout": "#56b4e9", "ack-loss": "#cc79a7", capture: "#7a8492", unknown: "#7a8492",
};
const ARRIVED = new Set(["reordering", "spurious-timeout", "ack-loss", "capture"]);
// What is in sight is drawn one by one up to this many for each column of pixels.
const SINGLE = 2;
// Marks of one cause that share a square of so many pixels, half of a mark, are one.
const CELL = 4;
// A dashed curve: pixels drawn, of pixels.
const DASH = [4, 7];
const PANELS = [
  { name: "sequence", weight: 5 }, { name: "trips", weight: 1.6 }, { name: "flight", weight: 1.6 },
];

// Ticks at 1, 2 or 5 times a power of ten.
function ticks(low, high, most) {
  const raw = (high - low) / Math.max(most, 1), base = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * base).find((size) => size >= raw) || base;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(value);
  return { found, step };
}

function told(value, step) {
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9)));
  return value.toFixed(digits);
}

class Diagram {
  constructor(flow, columns, look) {
    const d = columns;
    this.flow = flow;
    this.data = d;
    this.look = look;
    this.sent = new Series(d.sent_t, d.sent_start, d.sent_end);
    this.blocks = new Series(d.sack_t, d.sack_start, d.sack_end);
    this.ack = new Series(d.ack_t, d.ack);
    this.edge = new Series(d.ack_t, d.ack_edge);
    this.rtt = new Series(d.rtt_t, d.rtt);
    this.outstanding = new Series(d.rtt_t, d.flight);
    this.window = new Series(d.rtt_t, d.window);
    this.whole = [flow.start, Math.max(flow.end, flow.start + 1e-6)];
    this.view = [...this.whole];
    this.hits = [];
  }

  zoom(factor, about) {
    const [start, end] = this.view, width = Math.min((end - start) * factor, this.whole[1] - this.whole[0]);
    const share = (about - start) / (end - start);
    this.move(about - share * Math.max(width, 1e-6), Math.max(width, 1e-6));
  }

  move(start, width = this.view[1] - this.view[0]) {
    const [first, last] = this.whole;
    const from = Math.max(first, Math.min(start, last - width));
    this.view = [from, from + width];
  }

  reset() { this.view = [...this.whole]; }

  get all() { return this.view[0] <= this.whole[0] && this.view[1] >= this.whole[1]; }

  // Draws everything into a canvas' context of `width` by `height` pixels.
  draw(c, width, height) {
    const left = 64, right = 10, foot = 22, head = 6, gap = 16;
    this.box = { left, width: Math.max(width - left - right, 10) };
    this.scale = this.box.width / (this.view[1] - this.view[0]);
    c.clearRect(0, 0, width, height);
    c.font = this.look.font;
    const free = height - head - foot - gap * (PANELS.length - 1), all = PANELS.reduce((sum, panel) => sum + panel.weight, 0);
    let top = head;
    this.hits = [];
    for (const panel of PANELS) {
      const area = { left, top, width: this.box.width, height: (free * panel.weight) / all };
      this[panel.name](c, area);
      top += area.height + gap;
    }
    this.time(c, left, height - foot);
  }

  x(time) { return this.box.left + (time - this.view[0]) * this.scale; }

  frame(c, area, low, high, title, form) {
    // The title has the first line for itself.
    const y = (value) => area.top + area.height - ((value - low) / (high - low || 1)) * (area.height - 16);
    const { found, step } = ticks(low, high, Math.max(2, area.height / 40));
    c.lineWidth = 1;
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const value of found) {
      c.fillStyle = this.look.grid;
      c.fillRect(area.left, Math.round(y(value)), area.width, 1);
      c.fillStyle = this.look.soft;
      c.fillText(form(value, step), area.left - 6, y(value));
    }
    c.textAlign = "left";
    c.textBaseline = "top";
    c.fillStyle = this.look.soft;
    c.fillText(title, area.left + 4, area.top);
    return y;
  }

  time(c, left, y) {
    const [start, end] = this.view, { found, step } = ticks(start, end, this.box.width / 90);
    c.textAlign = "center";
    c.textBaseline = "top";
    c.fillStyle = this.look.soft;
    for (const value of found) {
      c.fillRect(Math.round(this.x(value)), y, 1, 4);
      c.fillText(`${told(value, step)} s`, this.x(value), y + 6);
    }
  }

  // Bars from low to high, or up from `floor`: one for each thing, or, where that would be too many, one for each column of pixels.
  bars(c, area, y, series, tone, thick, floor = null) {
    const [from, to] = series.between(...this.view), [lows, highs] = series.levels[0], width = Math.ceil(area.width);
    c.fillStyle = tone;
    // What goes up from a floor is an area: a bar reaches to the next, if that is near.
    const wide = (at) => (floor === null ? thick : Math.max(1, Math.min(8, (series.times[at + 1] - series.times[at] || 0) * this.scale)));
    const bar = (x, wide, low, high) => {
      const top = y(high), bottom = y(floor ?? low);
      c.fillRect(x, Math.min(bottom - 1, top), wide, Math.max(1, bottom - top));
    };
    if (to - from <= SINGLE * width) {
      for (let at = from; at < to; at++) bar(this.x(series.times[at]) - (floor === null ? thick / 2 : 0), wide(at), lows[at], highs[at]);
    } else {
      series.columns(this.view[0], this.scale, width, (x, first, end) => bar(area.left + x, 1, ...series.extent(first, end)));
    }
  }

  // A curve in steps; of what shares a column of pixels, the span.
  steps(c, area, y, series, tone, dashed = false) {
    const [values] = series.levels[0], width = Math.ceil(area.width), thick = 1.3, [drawn, period] = DASH;
    const before = lowerBound(series.times, this.view[0]) - 1;
    let last = before < 0 ? null : y(values[before]), begun = 0;
    c.fillStyle = tone;
    const level = (end) => {
      if (last === null) return;
      if (!dashed) { c.fillRect(area.left + begun, last - thick / 2, end - begun, thick); return; }
      for (let dash = begun - (begun % period); dash < end; dash += period) {
        const left = Math.max(dash, begun), right = Math.min(dash + drawn, end);
        if (left < right) c.fillRect(area.left + left, last - thick / 2, right - left, thick);
      }
    };
    series.columns(this.view[0], this.scale, width, (x, from, to) => {
      if (x > begun) level(x);
      const [low, high] = series.extent(from, to), top = Math.min(y(high), last ?? Infinity), bottom = Math.max(y(low), last ?? -Infinity);
      // Between dashes only what is high is drawn.
      if (!dashed || x % period < drawn || bottom - top > 2 * period) {
        c.fillRect(area.left + x, top - thick / 2, thick, bottom - top + thick);
      }
      last = y(values[to - 1]);
      begun = x;
    });
    level(width);
  }

  clipped(c, area, draw) {
    c.save();
    c.beginPath();
    c.rect(area.left, area.top, area.width, area.height);
    c.clip();
    draw();
    c.restore();
  }

  // Lowest and highest octet in sight: of data, or else of acknowledgements.
  range() {
    let [low, high] = this.sent.extent(...this.sent.between(...this.view));
    if (high < low) [low, high] = this.ack.extent(...this.ack.between(...this.view));
    if (high < low) return [0, 1];
    const room = Math.max((high - low) * 0.06, 1000);
    return [low - room, high + room];
  }

  sequence(c, area) {
    const [low, high] = this.range();
    const unit = high - low > 5e6 || high > 5e7 ? [1e6, "MB"] : high - low > 5e3 ? [1e3, "kB"] : [1, "octets"];
    const y = this.frame(c, area, low, high, `position in the stream (${unit[1]})`, (value, step) => told(value / unit[0], step / unit[0]));
    this.clipped(c, area, () => {
      this.steps(c, area, y, this.edge, this.look.soft, true);
      this.bars(c, area, y, this.blocks, "#b9a3d6", 2);
      this.bars(c, area, y, this.sent, this.look.ink, 2);
      this.steps(c, area, y, this.ack, "#4a86b8");
      this.marks(c, y);
    });
  }

  // Losses as filled marks where the packet was sent, repairs as hollow ones, coloured by cause.
  marks(c, y) {
    const { losses } = this.flow, drawn = new Set();
    for (let number = 0; number < losses.length; number++) {
      const loss = losses[number], tone = CAUSES[loss.cause] || CAUSES.unknown, height = y(loss.offset + loss.octets / 2);
      for (const [time, filled] of [[loss.time, true], [loss.repaired, false]]) {
        if (time === null || time < this.view[0] || time > this.view[1]) continue;
        const x = this.x(time), cell = `${tone}${filled}${(x / CELL) | 0},${(height / CELL) | 0}`;
        this.hits.push([x, height, number]);
        if (drawn.has(cell) && number !== this.chosen) continue;
        drawn.add(cell);
        const size = number === this.chosen ? 7 : 4.5;
        c.beginPath();
        if (ARRIVED.has(loss.cause)) c.rect(x - size, height - size, 2 * size, 2 * size); else c.arc(x, height, size, 0, 7);
        c.lineWidth = 2;
        c.strokeStyle = c.fillStyle = tone;
        if (filled) c.fill(); else c.stroke();
      }
    }
  }

  // The highest in sight of a curve, with the step that leads into it.
  top(series) {
    const [from, to] = series.between(...this.view);
    return Math.max(series.extent(Math.max(0, from - 1), to)[1], 0);
  }

  trips(c, area) {
    const high = 1.1 * (this.top(this.rtt) || 1e-3), base = this.flow.rtt_min || 0;
    const y = this.frame(c, area, 0, high, "round trip, and the queue in it (ms)", (value, step) => told(value * 1e3, step * 1e3));
    this.clipped(c, area, () => {
      c.globalAlpha = 0.35;
      this.bars(c, area, y, this.rtt, "#d55e00", 1, base);
      c.globalAlpha = 1;
      this.bars(c, area, y, this.rtt, this.look.ink, 2);
      c.fillStyle = "#009e73";
      if (base) c.fillRect(area.left, y(base), area.width, 1);
    });
  }

  flight(c, area) {
    const high = 1.1 * Math.max(this.top(this.outstanding), 1);
    const y = this.frame(c, area, 0, high, "under way, receiver's window (kB)", (value, step) => told(value / 1e3, step / 1e3));
    this.clipped(c, area, () => {
      this.steps(c, area, y, this.outstanding, this.look.ink);
      this.steps(c, area, y, this.window, this.look.soft, true);
    });
  }

  // The loss whose mark is near a point.
  hit(x, y) {
    let best = null, least = 14 * 14;
    for (const [there, height, number] of this.hits) {
      const distance = (there - x) ** 2 + (height - y) ** 2;
      if (distance < least) [best, least] = [number, distance];
    }
    return best;
  }

  // The packets around a loss as a ladder: [{sent, ended, forward, lost, label, tone}], at most `most` of them.
  ladder(number, most = 60) {
    const d = this.data, { losses, rtt_min: trip, place } = this.flow, loss = losses[number];
    const half = (trip || 0) / 2, before = place === "receiver" ? half : 0, after = place === "receiver" ? 0 : half;
    const until = loss.repaired === null ? loss.time + 4 * (trip || 0.05) : loss.repaired;
    const span = Math.max(until - loss.time, trip || 0.01);
    const rows = [], lost = new Map(losses.map((one) => [one.packet, one])), repairs = new Map(losses.map((one) => [one.repair, one]));
    const take = (times, make) => {
      for (let at = lowerBound(times, loss.time - span * 0.25); at < times.length && times[at] <= until + span * 0.5; at++) rows.push(make(at));
    };
    take(d.sent_t, (at) => {
      const packet = d.sent_packet[at], own = lost.get(packet), repair = repairs.get(packet);
      const tone = own || repair ? CAUSES[(own || repair).cause] || CAUSES.unknown : null;
      return {
        time: d.sent_t[at], sent: d.sent_t[at] - before, ended: d.sent_t[at] + after, forward: true,
        lost: Boolean(own) && !ARRIVED.has(own.cause), tone,
        label: `${packet}: ${d.sent_start[at]}–${d.sent_end[at]}${repair ? " again" : ""}`,
      };
    });
    take(d.ack_t, (at) => ({
      time: d.ack_t[at], sent: d.ack_t[at] - after, ended: d.ack_t[at] + before, forward: false, lost: false, tone: null,
      label: `${d.ack_packet[at]}: ACK ${d.ack[at]}`,
    }));
    rows.sort((one, other) => one.time - other.time);
    if (rows.length <= most) return rows;
    // The first sending and the repair stay; of the rest what is nearest to either.
    const near = (row) => Math.min(Math.abs(row.time - loss.time), Math.abs(row.time - until));
    return [...rows].sort((one, other) => near(one) - near(other)).slice(0, most).sort((one, other) => one.time - other.time);
  }
}

function drawLadder(c, rows, look, width, names) {
  // A narrow screen has room for numbers of packets and no more.
  const narrow = width < 560, step = 15, left = narrow ? 60 : Math.min(230, width * 0.36), right = width - left, height = 34 + rows.length * step + 12;
  const place = new Map();
  // Time runs evenly from event to event: what happens is seen, however long nothing does.
  const events = [...new Set(rows.flatMap((row) => [row.sent, row.ended]))].sort((one, other) => one - other);
  events.forEach((time, at) => place.set(time, 30 + (at * (rows.length * step)) / Math.max(events.length - 1, 1)));
  c.clearRect(0, 0, width, height);
  c.font = look.font;
  c.fillStyle = look.ink;
  c.textBaseline = "top";
  for (const [x, name, side, edge] of [[left, names[0], "left", 0], [right, names[1], "right", width]]) {
    c.textAlign = narrow ? side : "center";
    c.fillText(name, narrow ? edge : x, 4);
    c.fillRect(x, 22, 1, height - 26);
  }
  const taken = { true: -Infinity, false: -Infinity };
  for (const row of rows) {
    const [from, to] = row.forward ? [left, right] : [right, left], start = place.get(row.sent);
    const share = row.lost ? 0.5 : 1, x = from + (to - from) * share, end = start + (place.get(row.ended) - start) * share;
    c.strokeStyle = c.fillStyle = row.tone || (row.forward ? look.ink : "#4a86b8");
    c.lineWidth = row.tone ? 2 : 1;
    c.beginPath();
    c.moveTo(from, start);
    c.lineTo(x, end);
    c.stroke();
    c.beginPath();
    if (row.lost) {
      for (const turn of [1, -1]) { c.moveTo(x - 5, end - 5 * turn); c.lineTo(x + 5, end + 5 * turn); }
      c.stroke();
    } else {
      const back = row.forward ? -7 : 7, slope = ((end - start) / (x - from)) * back;
      c.moveTo(x, end);
      c.lineTo(x + back, end + slope - 3);
      c.lineTo(x + back, end + slope + 3);
      c.fill();
    }
    if (start - taken[row.forward] < 12 && !row.tone) continue;
    // The words of a loss are always there, below what they would hide.
    const line = Math.max(start, taken[row.forward] + 12);
    taken[row.forward] = line;
    c.textAlign = row.forward ? "right" : "left";
    c.textBaseline = "middle";
    c.fillStyle = row.tone || look.ink;
    const time = row.time.toFixed(4), words = row.forward ? `${time}  ${row.label}` : `${row.label}  ${time}`;
    c.fillText(narrow ? row.label.split(":")[0] : words, from + (row.forward ? -6 : 6), line);
  }
  return height;
}

if (typeof module !== "undefined") module.exports = { Diagram, drawLadder, ticks };
