"use strict";
// Redraws part of a chart from the columns embedded in the page, by the rules of chart.rs, which
// drew the whole chart. It only computes: it does not touch the document.
const Charts = (() => {
  const RATE_POINTS = 700, RATE_WINDOWS = 150;
  const MARK_X = 84, MARK_Y = 34, DROP = 9;

  // ---- Columns: Base64 of zigzag LEB128 differences, see encode.rs.
  function decode(column) {
    const bytes = Uint8Array.from(atob(column.d), (c) => c.charCodeAt(0));
    const out = new Float64Array(bytes.reduce((n, b) => n + (b < 128), 0));
    let value = 0, step = 0, word = 0, unit = 1, row = 0;
    for (const byte of bytes) {
      word += (byte & 127) * unit;
      unit *= 128;
      if (byte >= 128) continue;
      const change = word % 2 ? -(word + 1) / 2 : word / 2;
      step = column.o === 2 ? step + change : change;
      value += step;
      out[row++] = value * column.q;
      word = 0;
      unit = 1;
    }
    return out;
  }

  /// Returns columns by their path, such as `flows.0.rtt_ns`; each is decoded once. `*` is the
  /// selected flow.
  function columns(data) {
    const read = new Map();
    const find = (place) => {
      const path = place.replace("*", find.pick);
      if (!read.has(path)) {
        const column = path.split(".").reduce((at, part) => at?.[part], data);
        read.set(path, column ? decode(column) : null);
      }
      return read.get(path);
    };
    find.pick = 0;
    return find;
  }

  // ---- From columns to values: values.rs.
  /// Index of the last of the ascending `xs` that is at most `x`; -1 if there is none.
  function atOrBelow(xs, x) {
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= x) low = middle + 1; else high = middle;
    }
    return low - 1;
  }

  /// Index of the one of the ascending `xs` that is closest to `x`; -1 if `xs` is empty.
  function nearest(xs, x) {
    const low = atOrBelow(xs, x);
    if (low < 0 || low === xs.length - 1) return xs.length ? Math.max(low, 0) : -1;
    return x - xs[low] <= xs[low + 1] - x ? low : low + 1;
  }

  function counterAt(time, counter, at) {
    const row = atOrBelow(time, at);
    if (row < 0) return counter[0];
    if (row === time.length - 1) return counter[row];
    return counter[row] + ((at - time[row]) / (time[row + 1] - time[row])) * (counter[row + 1] - counter[row]);
  }

  /// Points of a rate, and the time over which each is averaged.
  function rateGrid(chart, view) {
    const more = (view[1] - view[0]) * 0.02;
    const from = Math.max(view[0] - more, chart.x.whole[0]) * chart.x.divisor;
    const to = Math.min(view[1] + more, chart.x.whole[1]) * chart.x.divisor;
    const interval = chart.interval_ns;
    const points = Math.min(Math.max(Math.ceil((to - from) / interval) + 1, 2), RATE_POINTS);
    const step = (to - from) / (points - 1);
    return { from, points, step, window: Math.max(interval, step, (to - from) / RATE_WINDOWS) };
  }

  function rates(chart, counters, view) {
    const { from, points, step, window } = rateGrid(chart, view);
    const half = window / 2, x = new Float64Array(points), y = new Float64Array(points).fill(NaN);
    for (let point = 0; point < points; point++) x[point] = (from + point * step) / chart.x.divisor;
    for (const [time, counter] of counters) {
      const begin = time[0] - chart.interval_ns, end = time[time.length - 1];
      for (let point = 0; point < points; point++) {
        const at = from + point * step;
        const first = Math.max(at - half, begin), last = Math.min(at + half, end);
        if (at < begin || at > end || last <= first) continue;
        const rate = (8e9 * (counterAt(time, counter, last) - counterAt(time, counter, first))) / (last - first);
        y[point] = Number.isNaN(y[point]) ? rate : y[point] + rate;
      }
    }
    return { x, y: y.map((rate) => rate / chart.y.divisor) };
  }

  /// The lines of a curve between two places of the axis: one line, or for a band its lower edge,
  /// median and upper edge. NaN is a gap.
  function lines(chart, find, source, view) {
    const gauge = (xPlace, yPlace) => {
      const xs = find(xPlace), ys = find(yPlace);
      if (!xs || !ys) return { x: [], y: [] };
      // Convert to the axis' unit before searching, as values.rs does.
      const first = Math.max(0, atOrBelow(scaled(xs, chart.x.divisor), view[0]));
      const last = atOrBelow(scaled(xs, chart.x.divisor), view[1]) + 2;
      return {
        x: scaled(xs, chart.x.divisor).subarray(first, last),
        y: ys.subarray(first, last).map((value) => (source.zero || value > 0 ? value / chart.y.divisor : NaN)),
      };
    };
    if (source.as === "gauge") return [gauge(source.x, source.y)];
    if (source.as === "band") return source.y.map((y) => gauge(source.x, y));
    const pairs = source.of.map(([x, y]) => [find(x), find(y)]).filter(([x, y]) => x?.length && y);
    return [rates(chart, pairs, view)];
  }

  const scaledColumns = new WeakMap();
  function scaled(column, divisor) {
    let known = scaledColumns.get(column);
    if (!known) scaledColumns.set(column, (known = new Map()));
    if (!known.has(divisor)) known.set(divisor, column.map((value) => value / divisor));
    return known.get(divisor);
  }

  function extent(all, view) {
    let low = Infinity, high = -Infinity;
    for (const { x, y } of all.flat()) {
      for (let row = 0; row < x.length && x[row] <= view[1]; row++) {
        if (y[row] < low) low = y[row];
        if (y[row] > high) high = y[row];
      }
    }
    return low <= high ? [low, high] : null;
  }

  // ---- Axes: axis.rs.
  function marks(low, high, count) {
    const rough = (high - low) / Math.max(1, count);
    if (!(rough > 0 && Number.isFinite(rough))) return { marks: [], decimals: 0 };
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((size) => size * power >= rough * 0.999) * power;
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
    return { marks: Array.from({ length: Math.max(0, last - first + 1) }, (_, number) => (first + number) * step), decimals };
  }

  function range(seen, levels, fromZero) {
    if (!seen) return [0, 1];
    let [low, high] = seen;
    for (const level of levels) {
      if (level > low / 1.3 && level < high * 1.3) {
        low = Math.min(low, level);
        high = Math.max(high, level);
      }
    }
    if (!fromZero && low > 0.6 * high) {
      const margin = Math.max((high - low) * 0.1, high * 0.005);
      return [low - margin, high + margin];
    }
    return [0, high > 0 ? high * 1.06 : 1];
  }

  // ---- Points as paths, in tenths of a unit: outline.rs.
  const tenths = (value) => Math.floor(value * 10 + 0.5);
  const spelt = (count) => String(count / 10).replace(/^(-?)0\./, "$1.");
  // Almost all steps are short, and a page has many, so their texts are cached.
  const SHORT = 8000;
  const plains = Array.from({ length: 2 * SHORT + 1 }), thens = Array.from({ length: 2 * SHORT + 1 });
  const plain = (count) => (count >= -SHORT && count <= SHORT ? (plains[count + SHORT] ??= spelt(count)) : spelt(count));
  /// A number that follows another, with a space unless its sign separates them.
  const next = (count) => (count < 0 ? "" : " ") + plain(count);
  const then = (count) => (count >= -SHORT && count <= SHORT ? (thens[count + SHORT] ??= next(count)) : next(count));

  function frameOf(chart, view, yRange) {
    const [left, top, right, bottom] = chart.frame;
    return {
      left, top, right, bottom, view, range: yRange,
      x: (value) => left + ((value - view[0]) / (view[1] - view[0])) * (right - left),
      y: (value) => bottom - ((value - yRange[0]) / (yRange[1] - yRange[0])) * (bottom - top),
    };
  }

  /// Returns a list of points for each part without a gap; of the points within one unit of width,
  /// only the lowest and the highest.
  function parts({ x: xs, y: ys }, frame) {
    const all = [];
    let part = null, column = null;
    const flush = () => {
      if (!column) return;
      const { x, low, high, lowRow, highRow } = column;
      const ends = (lowRow <= highRow ? [low, high] : [high, low]).map(tenths);
      part.push([tenths(x), ends[0]]);
      if (ends[1] !== ends[0]) part.push([tenths(x), ends[1]]);
      column = null;
    };
    for (let row = 0; row < xs.length; row++) {
      if (Number.isNaN(ys[row])) {
        flush();
        part = null;
        continue;
      }
      if (!part) all.push((part = []));
      const x = frame.x(xs[row]), y = frame.y(ys[row]);
      if (column && Math.floor(column.x + 0.5) === Math.floor(x + 0.5)) {
        if (y < column.low) (column.low = y), (column.lowRow = row);
        if (y > column.high) (column.high = y), (column.highRow = row);
      } else {
        flush();
        column = { x, low: y, high: y, lowRow: row, highRow: row };
      }
    }
    flush();
    return all;
  }

  function steps(part, command) {
    let [x, y] = part[0];
    let path = command + plain(x) + then(y);
    for (let point = 1; point < part.length; point++) {
      const nextX = part[point][0], nextY = part[point][1];
      path += (point === 1 ? `l${plain(nextX - x)}` : then(nextX - x)) + then(nextY - y);
      x = nextX;
      y = nextY;
    }
    return path;
  }

  const line = (points, frame) => parts(points, frame).map((part) => steps(part, "M") + (part.length === 1 ? "h0" : "")).join("");
  const area = (points, frame) => parts(points, frame).map((part) => `${steps(part, "M")}V${plain(tenths(frame.bottom))}H${plain(part[0][0])}z`).join("");
  function band(low, high, frame) {
    const lower = parts(low, frame);
    return parts(high, frame).map((upper, number) => (lower[number] ? `${steps(upper, "M")}${steps(lower[number].reverse(), "L")}z` : "")).join("");
  }

  // ---- Parts of the picture, as svg.rs writes them.
  function curveMarkup({ class: name }, drawn, frame) {
    if (drawn.length === 3) return `<path class="band ${name}" d="${band(drawn[0], drawn[2], frame)}"/><path class="${name}" d="${line(drawn[1], frame)}"/>`;
    return drawn.length ? `<path class="${name}" d="${(name === "area" ? area : line)(drawn[0], frame)}"/>` : "";
  }

  function gridMarkup(frame) {
    const { left, top, right, bottom, view } = frame;
    let path = "", words = "";
    const across = marks(view[0], view[1], (right - left) / MARK_X);
    for (const value of across.marks) {
      const x = plain(tenths(frame.x(value)));
      path += `M${x} ${top}V${bottom + 4}`;
      words += `<text x="${x}" y="${bottom + 18}" text-anchor="middle">${value.toFixed(across.decimals)}</text>`;
    }
    const upwards = marks(...frame.range, (bottom - top) / MARK_Y);
    for (const value of upwards.marks) {
      const at = frame.y(value);
      path += `M${left - 4} ${plain(tenths(at))}H${right}`;
      words += `<text x="${left - 7}" y="${plain(tenths(at + 4))}" text-anchor="end">${value.toFixed(upwards.decimals)}</text>`;
    }
    return `<path d="${path}"/>${words}`;
  }

  const valueOf = (reference, pick) => reference.values[reference.values.length > 1 ? pick : 0] ?? 0;

  function referenceMarkup(chart, frame, pick) {
    return chart.references.map((reference) => {
      const value = valueOf(reference, pick);
      if (!(value > 0)) return "";
      const x = plain(tenths(frame.x(value / chart.x.divisor))), y = plain(tenths(frame.y(value / chart.y.divisor)));
      const path = reference.upright ? `M${x} ${plain(tenths(frame.top))}V${plain(tenths(frame.bottom))}` : `M${plain(tenths(frame.left))} ${y}H${plain(tenths(frame.right))}`;
      return `<path class="reference" d="${path}"/>`;
    }).join("");
  }

  function shadeMarkup(chart, find, tints, frame) {
    const place = (name) => find(`${chart.shade}.${name}`);
    if (!chart.shade) return "";
    const at = place("phases.at"), phase = place("phases.phase"), end = place("time_ns")?.at(-1);
    if (!at || !phase || end == null) return "";
    const count = Math.trunc(frame.right - frame.left);
    const unit = ((frame.view[1] - frame.view[0]) * chart.x.divisor) / count, begin = frame.view[0] * chart.x.divisor;
    const paths = tints.map(() => ""), top = plain(tenths(frame.top)), bottom = plain(tenths(frame.bottom));
    let open = null, span = Math.max(0, atOrBelow(at, begin));
    const close = (column) => {
      if (!open) return;
      const [from, to] = [open.from, column].map((place) => plain(tenths(frame.left + place)));
      paths[open.phase] += `M${from} ${top}H${to}V${bottom}H${from}z`;
    };
    for (let column = 0; column < count; column++) {
      const from = begin + column * unit, to = begin + (column + 1) * unit;
      const lasted = new Float64Array(tints.length);
      while (span < at.length) {
        const until = span + 1 < at.length ? at[span + 1] : end;
        lasted[phase[span]] += Math.max(0, Math.min(until, to) - Math.max(at[span], from));
        if (until > to) break;
        span++;
      }
      let longest = null;
      lasted.forEach((time, index) => {
        if (time > 0 && (longest === null || time > lasted[longest])) longest = index;
      });
      if ((open?.phase ?? null) !== longest) {
        close(column);
        open = longest === null ? null : { phase: longest, from: column };
      }
    }
    close(count);
    return tints.map((tint, index) => (paths[index] ? `<path class="${tint}" d="${paths[index]}"/>` : "")).join("");
  }

  function dropMarkup(chart, find, frame) {
    const time = chart.drops && find(`${chart.drops}.time_ns`), dropped = chart.drops && find(`${chart.drops}.dropped_packets`);
    if (!time || !dropped) return "";
    let path = "", last = NaN;
    for (let row = 0; row < time.length; row++) {
      if (dropped[row] <= (row ? dropped[row - 1] : 0)) continue;
      const x = Math.floor(frame.x(time[row] / chart.x.divisor) + 0.5);
      if (x === last || x < frame.left || x > frame.right) continue;
      path += `M${plain(tenths(x))} ${plain(tenths(frame.bottom))}v-${plain(tenths(DROP))}`;
      last = x;
    }
    return path && `<path d="${path}"/>`;
  }

  /// Draws everything that depends on the visible range. `shown` returns whether a curve is
  /// visible.
  function draw(chart, find, tints, view, shown) {
    const drawn = chart.curves.map((curve, number) => (shown(number) ? lines(chart, find, curve.source, view) : []));
    const levels = chart.references.filter(({ upright }) => !upright).map((one) => valueOf(one, find.pick)).filter((value) => value > 0);
    const seen = extent(drawn, view);
    const frame = frameOf(chart, view, range(seen, levels.map((value) => value / chart.y.divisor), chart.y.from_zero));
    return {
      frame, drawn,
      shade: shadeMarkup(chart, find, tints, frame),
      grid: gridMarkup(frame),
      curves: chart.curves.map((curve, number) => curveMarkup(curve, drawn[number], frame)),
      drops: dropMarkup(chart, find, frame),
      references: referenceMarkup(chart, frame, find.pick),
    };
  }

  // ---- A part of a drawing, larger: drawing.rs.
  const ATTRIBUTE = (name) => new RegExp(`(^<[^>]*? ${name}=")([^"]*)`);
  const read = (line, name) => ATTRIBUTE(name).exec(line)?.[2];
  const write = (line, name, value) => line.replace(ATTRIBUTE(name), (_, before) => before + value);
  const short = (value) => String(Number(value.toFixed(1)));
  const numbers = (text) => text.trim().split(/[ ,]+/).map(Number);
  const pairs = (text) => text.trim().split(" ").map((pair) => pair.split(",").map(Number));

  /// The value of an axis at a place of the drawing.
  const valueAt = ([low, high], at, from, to) => low + ((at - from) / (to - from)) * (high - low);

  /// The markup of a drawing with what lies between the places `[x0, x1, y0, y1]` of its
  /// frame in the whole of it. Axes with known ends get new marks; others keep theirs,
  /// which move. Marks, lines and words keep their size.
  function enlarge(markup, { frame: [left, top, right, bottom], x: xEnds, y: yEnds, both }, [x0, x1, y0, y1]) {
    const x = (at) => left + ((at - x0) / (x1 - x0)) * (right - left);
    const y = (at) => (both ? top + ((at - y0) / (y1 - y0)) * (bottom - top) : at);
    const within = (at, from, to) => at >= from - 0.5 && at <= to + 0.5;
    const framed = ([px, py]) => within(px, left, right) && within(py, top, bottom);
    const beneath = [], inside = [], around = [];
    for (const line of markup.split("\n")) {
      const name = /^<(\w+)/.exec(line)?.[1], points = read(line, "points"), classes = (read(line, "class") ?? "").split(" ");
      if (points && classes.includes("grid")) {
        const [from, to] = pairs(points), upright = from[0] === to[0];
        if (upright && !xEnds) {
          const at = short(x(from[0]));
          if (within(Number(at), left, right)) beneath.push(write(line, "points", `${at},${from[1]} ${at},${to[1]}`));
        } else if (!upright && !(both && yEnds)) beneath.push(line);
      } else if (points && classes.includes("lead")) {
        const all = pairs(points), [dx, dy] = [x(all[0][0]) - all[0][0], y(all[0][1]) - all[0][1]];
        inside.push(write(line, "points", all.map(([px, py]) => `${short(px + dx)},${short(py + dy)}`).join(" ")));
      } else if (points && classes.includes("interval")) {
        // Its ends keep their width.
        const all = pairs(points), middle = (Math.min(...all.map(([px]) => px)) + Math.max(...all.map(([px]) => px))) / 2;
        inside.push(write(line, "points", all.map(([px, py]) => `${short(px + x(middle) - middle)},${short(y(py))}`).join(" ")));
      } else if (points && pairs(points).some(framed)) {
        inside.push(write(line, "points", pairs(points).map(([px, py]) => `${short(x(px))},${short(y(py))}`).join(" ")));
      } else if (name === "circle" && framed([Number(read(line, "cx")), Number(read(line, "cy"))])) {
        inside.push(write(write(line, "cx", short(x(Number(read(line, "cx"))))), "cy", short(y(Number(read(line, "cy"))))));
      } else if (name === "text" && classes.includes("tick")) {
        const along = read(line, "text-anchor") === "middle", at = x(Number(read(line, "x")));
        if (along && !xEnds && within(at, left, right)) around.push(write(line, "x", short(at)));
        if (!along && !(both && yEnds)) around.push(line);
      } else if (name === "text" && read(line, "data-of")) {
        const [px, py] = numbers(read(line, "data-of"));
        const moved = write(line, "x", short(Number(read(line, "x")) + x(px) - px));
        inside.push(write(moved, "y", short(Number(read(line, "y")) + y(py) - py)));
      } else if (line) around.push(line);
    }
    const tick = (px, py, anchor, text) => `<text class="quiet tick" x="${short(px)}" y="${short(py)}" text-anchor="${anchor}">${text}</text>`;
    if (xEnds) {
      const across = marks(valueAt(xEnds, x0, left, right), valueAt(xEnds, x1, left, right), 6);
      for (const value of across.marks) {
        const at = x(left + ((value - xEnds[0]) / (xEnds[1] - xEnds[0])) * (right - left));
        beneath.push(`<polyline class="grid" points="${short(at)},${short(top)} ${short(at)},${short(bottom)}"/>`);
        around.push(tick(at, bottom + 15, "middle", value.toFixed(across.decimals)));
      }
    }
    if (both && yEnds) {
      const upwards = marks(valueAt(yEnds, y1, bottom, top), valueAt(yEnds, y0, bottom, top), 6);
      for (const value of upwards.marks) {
        const at = y(bottom - ((value - yEnds[0]) / (yEnds[1] - yEnds[0])) * (bottom - top));
        beneath.push(`<polyline class="grid" points="${short(left)},${short(at)} ${short(right)},${short(at)}"/>`);
        around.push(tick(left - 6, at + 4, "end", value.toFixed(upwards.decimals)));
      }
    }
    const size = `x="${left}" y="${top}" width="${right - left}" height="${bottom - top}" viewBox="${left} ${top} ${right - left} ${bottom - top}"`;
    return [...beneath, `<svg ${size}>`, ...inside, "</svg>", ...around].join("\n");
  }

  return { enlarge, valueAt, pairs, decode, columns, atOrBelow, nearest, lines, rateGrid, marks, range, extent, parts, line, draw };
})();
if (typeof module !== "undefined") module.exports = Charts;
