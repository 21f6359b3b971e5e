"use strict";
// The time-sequence diagram of a captured connection: drawn from typed arrays, however many segments there are. What shares a column of
// pixels is drawn as one bar from its lowest to its highest octet, so that the work for a picture does not grow beyond one pass over what
// is in sight.

const CAUSES = {
  congestion: "#d55e00", policer: "#e69f00", corruption: "#0072b2", "link-down": "#7a52b8", receiver: "#8a6d3b",
  reordering: "#009e73", "spurious-timeout": "#56b4e9", "ack-loss": "#cc79a7", capture: "#7a8492", unknown: "#7a8492",
};
const ARRIVED = new Set(["reordering", "spurious-timeout", "ack-loss", "capture"]);
// Segments in sight up to which each is drawn by itself.
const SINGLE = 4000;
const PANELS = [
  { name: "sequence", weight: 5 }, { name: "trips", weight: 1.6 }, { name: "flight", weight: 1.6 },
];

// The first index whose value is not below `value`.
function lowerBound(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// For each column of pixels the lowest and the highest of what lies in it: [columns with something, lows, highs].
function columns(times, lows, highs, from, to, start, scale, width) {
  const low = new Float64Array(width).fill(Infinity), high = new Float64Array(width).fill(-Infinity);
  for (let at = from; at < to; at++) {
    const x = Math.min(width - 1, Math.max(0, ((times[at] - start) * scale) | 0));
    if (lows[at] < low[x]) low[x] = lows[at];
    if (highs[at] > high[x]) high[x] = highs[at];
  }
  return { low, high };
}

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

// Arrays out of one buffer, as the page's list names them.
function unpack(buffer, list) {
  const kinds = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, u1: Uint8Array };
  const arrays = {};
  let at = 0;
  for (const [name, kind, count] of list) {
    const Kind = kinds[kind];
    arrays[name] = new Kind(buffer, at, count);
    at += Math.ceil((count * Kind.BYTES_PER_ELEMENT) / 8) * 8;
  }
  return arrays;
}

class Diagram {
  constructor(flow, arrays, look) {
    this.flow = flow;
    this.data = arrays;
    this.look = look;
    this.ends = arrays.sent_end;
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

  // Bars from `lows` to `highs`, single ones or one for each column.
  bars(c, area, y, times, lows, highs, tone, thick, single = SINGLE) {
    const from = lowerBound(times, this.view[0]), to = lowerBound(times, this.view[1]);
    c.fillStyle = tone;
    if (to - from <= single) {
      for (let at = from; at < to; at++) {
        const bottom = y(lows[at]);
        c.fillRect(this.x(times[at]) - thick / 2, Math.min(bottom - 1, y(highs[at])), thick, Math.max(1, bottom - y(highs[at])));
      }
      return;
    }
    const width = Math.ceil(area.width), { low, high } = columns(times, lows, highs, from, to, this.view[0], this.scale, width);
    for (let x = 0; x < width; x++) {
      if (low[x] <= high[x]) c.fillRect(area.left + x, y(high[x]), 1, Math.max(1, y(low[x]) - y(high[x])));
    }
  }

  // A curve in steps; where points share a column, the span of them.
  steps(c, area, y, times, values, tone, dashes = []) {
    let from = Math.max(0, lowerBound(times, this.view[0]) - 1);
    const to = Math.min(times.length, lowerBound(times, this.view[1]) + 1);
    if (to <= from) return;
    c.strokeStyle = tone;
    c.lineWidth = 1.3;
    c.setLineDash(dashes);
    c.beginPath();
    let column = NaN, low = 0, high = 0, last = y(values[from]);
    c.moveTo(Math.max(area.left, this.x(times[from])), last);
    // What one column holds is one upright stroke.
    const leave = () => {
      if (low < high) { c.lineTo(column, low); c.lineTo(column, high); c.lineTo(column, last); }
    };
    for (; from < to; from++) {
      const x = Math.min(area.left + area.width, Math.max(area.left, this.x(times[from]))), place = y(values[from]);
      if (Math.floor(x) === column) {
        if (place < low) low = place;
        if (place > high) high = place;
      } else {
        leave();
        c.lineTo(x, last);
        c.lineTo(x, place);
        column = Math.floor(x); low = high = place;
      }
      last = place;
    }
    leave();
    c.lineTo(Math.min(area.left + area.width, this.x(this.view[1])), last);
    c.stroke();
    c.setLineDash([]);
  }

  clipped(c, area, draw) {
    c.save();
    c.beginPath();
    c.rect(area.left, area.top, area.width, area.height);
    c.clip();
    draw();
    c.restore();
  }

  // Lowest and highest octet in sight, of data and acknowledgements.
  range() {
    const d = this.data;
    let low = Infinity, high = -Infinity;
    const take = (times, lows, highs) => {
      const from = lowerBound(times, this.view[0]), to = lowerBound(times, this.view[1]);
      for (let at = from; at < to; at++) {
        if (lows[at] < low) low = lows[at];
        if (highs[at] > high) high = highs[at];
      }
    };
    take(d.sent_t, d.sent_start, d.sent_end);
    if (high < low) take(d.ack_t, d.ack, d.ack);
    if (high < low) return [0, 1];
    const room = Math.max((high - low) * 0.06, 1000);
    return [low - room, high + room];
  }

  sequence(c, area) {
    const d = this.data, [low, high] = this.range();
    const unit = high - low > 5e6 || high > 5e7 ? [1e6, "MB"] : high - low > 5e3 ? [1e3, "kB"] : [1, "octets"];
    const y = this.frame(c, area, low, high, `position in the stream (${unit[1]})`, (value, step) => told(value / unit[0], step / unit[0]));
    this.clipped(c, area, () => {
      this.steps(c, area, y, d.ack_t, d.ack_edge, this.look.soft, [4, 3]);
      this.bars(c, area, y, d.sack_t, d.sack_start, d.sack_end, "#b9a3d6", 2);
      this.bars(c, area, y, d.sent_t, d.sent_start, d.sent_end, this.look.ink, 2);
      this.steps(c, area, y, d.ack_t, d.ack, "#4a86b8");
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
        const x = this.x(time), cell = `${filled}${x | 0},${height | 0}`;
        this.hits.push([x, height, number]);
        if (drawn.has(cell)) continue;
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

  // What lies in sight of a series, or two ends for an empty one.
  top(times, values) {
    const from = Math.max(0, lowerBound(times, this.view[0]) - 1), to = lowerBound(times, this.view[1]);
    let high = 0;
    for (let at = from; at < to; at++) if (values[at] > high) high = values[at];
    return high || 1e-3;
  }

  trips(c, area) {
    const d = this.data, high = 1.1 * this.top(d.rtt_t, d.rtt), base = this.flow.rtt_min || 0;
    const y = this.frame(c, area, 0, high, "round trip, and the queue in it (ms)", (value, step) => told(value * 1e3, step * 1e3));
    this.clipped(c, area, () => {
      this.floor ??= new Float64Array(d.rtt_t.length).fill(base);
      c.globalAlpha = 0.35;
      this.bars(c, area, y, d.rtt_t, this.floor, d.rtt, "#d55e00", 1, 0);
      c.globalAlpha = 1;
      this.bars(c, area, y, d.rtt_t, d.rtt, d.rtt, this.look.ink, 2);
      c.fillStyle = "#009e73";
      if (base) c.fillRect(area.left, y(base), area.width, 1);
    });
  }

  flight(c, area) {
    const d = this.data, high = 1.1 * Math.max(this.top(d.rtt_t, d.flight), 1);
    const y = this.frame(c, area, 0, high, "under way, and the receiver's window (kB)", (value, step) => told(value / 1e3, step / 1e3));
    this.clipped(c, area, () => {
      this.steps(c, area, y, d.rtt_t, d.flight, this.look.ink);
      this.steps(c, area, y, d.rtt_t, d.window, this.look.soft, [4, 3]);
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
  const step = 15, left = Math.min(230, width * 0.36), right = width - left, height = 34 + rows.length * step + 12;
  const place = new Map();
  // Time runs evenly from event to event: what happens is seen, however long nothing does.
  const events = [...new Set(rows.flatMap((row) => [row.sent, row.ended]))].sort((one, other) => one - other);
  events.forEach((time, at) => place.set(time, 30 + (at * (rows.length * step)) / Math.max(events.length - 1, 1)));
  c.clearRect(0, 0, width, height);
  c.font = look.font;
  c.fillStyle = look.ink;
  c.textBaseline = "top";
  for (const [x, name] of [[left, names[0]], [right, names[1]]]) {
    c.textAlign = "center";
    c.fillText(name, x, 4);
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
    taken[row.forward] = start;
    c.textAlign = row.forward ? "right" : "left";
    c.textBaseline = "middle";
    c.fillStyle = row.tone || look.ink;
    const time = row.time.toFixed(4);
    c.fillText(row.forward ? `${time}  ${row.label}` : `${row.label}  ${time}`, from + (row.forward ? -6 : 6), start);
  }
  return height;
}

if (typeof module !== "undefined") module.exports = { Diagram, columns, drawLadder, lowerBound, ticks, unpack };
