"use strict";
// Columns of numbers as the page brings them, and the lowest and highest of any stretch of one without reading all of it.

// Blocks of a level that are one block of the next.
const FACTOR = 4;

// Columns out of one buffer, as the page's list names them: [name, count, planes, divisor]. A column is made of whole numbers: the
// difference of each to the one before, its sign in the lowest bit, all lowest octets first, then all second ones, and so on.
function unpack(buffer, list) {
  const octets = new Uint8Array(buffer), columns = {};
  let place = 0;
  for (const [name, count, planes, divisor] of list) {
    const column = new Float64Array(count);
    for (let plane = 0, weight = 1; plane < planes; plane++, weight *= 256, place += count) {
      for (let at = 0; at < count; at++) column[at] += octets[place + at] * weight;
    }
    let value = 0;
    for (let at = 0; at < count; at++) {
      const half = Math.floor(column[at] / 2);
      value += column[at] === 2 * half ? half : -half - 1;
      column[at] = value / divisor;
    }
    columns[name] = column;
  }
  return columns;
}

// The first index from `low` on whose value is not below `value`.
function lowerBound(values, value, low = 0) {
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

// What lies over time, each thing from a low to a high value. Levels of blocks are made once; of a stretch, whatever its length, some
// blocks of each level are read.
class Series {
  constructor(times, lows, highs = lows) {
    this.times = times;
    this.levels = [[lows, highs]];
    for (let length = times.length; length > FACTOR;) {
      const [below, above] = this.levels.at(-1), count = Math.ceil(length / FACTOR);
      const low = new Float64Array(count).fill(Infinity), high = new Float64Array(count).fill(-Infinity);
      for (let at = 0, block = 0; at < length; at++) {
        if (below[at] < low[block]) low[block] = below[at];
        if (above[at] > high[block]) high[block] = above[at];
        if ((at + 1) % FACTOR === 0) block++;
      }
      this.levels.push([low, high]);
      length = count;
    }
  }

  // The indices of what lies from one time up to another.
  between(start, end) {
    const from = lowerBound(this.times, start);
    return [from, lowerBound(this.times, end, from)];
  }

  // [lowest, highest] of a stretch; of an empty one [Infinity, -Infinity].
  extent(from, to) {
    let low = Infinity, high = -Infinity;
    const read = ([lows, highs], at, end) => {
      for (; at < end; at++) {
        if (lows[at] < low) low = lows[at];
        if (highs[at] > high) high = highs[at];
      }
    };
    for (const level of this.levels) {
      const begin = Math.ceil(from / FACTOR), end = Math.floor(to / FACTOR);
      if (begin >= end) {
        read(level, from, to);
        break;
      }
      read(level, from, begin * FACTOR);
      read(level, end * FACTOR, to);
      [from, to] = [begin, end];
    }
    return [low, high];
  }

  // For each column of pixels that holds something: each(column, from, to).
  columns(start, scale, width, each) {
    let from = lowerBound(this.times, start);
    for (let x = 0; x < width && from < this.times.length; x++) {
      const to = lowerBound(this.times, start + (x + 1) / scale, from);
      if (to > from) each(x, from, to);
      from = to;
    }
  }
}

if (typeof module !== "undefined") module.exports = { Series, lowerBound, unpack };
