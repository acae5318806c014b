// Tests chart.js with `node --test`: its computations, and its drawings against those of Rust in
// the pages listed in KNEE_PAGES, separated by colons.
"use strict";
const test = require("node:test");
const assert = require("node:assert/strict");
const fs = require("node:fs");
const Charts = require("../assets/chart.js");

test("marks are at 1, 2 or 5 times a power of ten, within the ends", () => {
  assert.deepEqual(Charts.marks(0, 100, 5), { marks: [0, 20, 40, 60, 80, 100], decimals: 0 });
  const { marks, decimals } = Charts.marks(0, 0.3, 3);
  assert.deepEqual(marks.map((mark) => mark.toFixed(decimals)), ["0.0", "0.1", "0.2", "0.3"]);
  for (const [low, high] of [[0, 0], [5, 4], [NaN, 1], [0, Infinity]]) assert.deepEqual(Charts.marks(low, high, 5).marks, []);
});

test("a row is found as by looking at each", () => {
  const xs = [1, 2, 4, 8, 8, 16];
  for (let x = 0; x < 20; x += 0.5) {
    assert.equal(Charts.atOrBelow(xs, x), xs.filter((own) => own <= x).length - 1);
    const distance = Math.min(...xs.map((own) => Math.abs(own - x)));
    assert.equal(Math.abs(xs[Charts.nearest(xs, x)] - x), distance);
  }
  assert.equal(Charts.atOrBelow([], 1), -1);
  assert.equal(Charts.nearest([], 1), -1);
});

const plainFrame = (width) => ({ left: 0, top: 0, right: width, bottom: 10, x: (x) => x, y: (y) => 10 - y });

test("one peak among 100,000 rows is drawn, on at most two points a unit", () => {
  const x = Array.from({ length: 100_000 }, (_, row) => row);
  const y = x.map((row) => (row === 77_777 ? 9 : 1));
  const parts = Charts.parts({ x, y }, { ...plainFrame(500), x: (at) => at / 200 });
  assert.equal(parts.length, 1);
  assert.ok(parts[0].length <= 2 * 502, `${parts[0].length} points`);
  assert.equal(Math.min(...parts[0].map(([, at]) => at)), 10);
});

test("a gap parts a curve", () => {
  assert.equal(Charts.line({ x: [0, 10, 20, 30], y: [1, NaN, 2, 3] }, plainFrame(30)), "M0 9h0M20 8l10-1");
});

// A chart over a counter that grows by 1000 bytes every 10 ms: 0.8 Mbit/s.
const steady = {
  name: "rate", frame: [0, 0, 100, 50], interval_ns: 1e7, shade: "", drops: "", references: [],
  x: { whole: [0, 10], divisor: 1e9 }, y: { divisor: 1e6, from_zero: true },
  curves: [{ class: "c0", source: { as: "rate", of: [["flows.0.time_ns", "flows.0.delivered_bytes"]] } }],
};
const rows = Float64Array.from({ length: 1001 }, (_, row) => row);
const findSteady = (place) => (place.endsWith("time_ns") ? rows.map((row) => row * 1e7) : rows.map((row) => row * 1000));

test("the rate of a steady counter is the same over any part of the time", () => {
  for (const view of [[0, 10], [2, 3], [5, 5.05]]) {
    const [{ x, y }] = Charts.lines(steady, findSteady, steady.curves[0].source, view);
    // The first window begins before the first sample.
    const seen = Array.from(y).filter((_, point) => x[point] > 0.2);
    assert.ok(seen.length > 2);
    for (const rate of seen) assert.ok(Math.abs(rate - 0.8) < 1e-9, `${rate} in ${view}`);
  }
});

test("zooming in changes the axis, not the values", () => {
  const { frame, grid } = Charts.draw(steady, findSteady, [], [2, 3], () => true);
  assert.deepEqual(frame.view, [2, 3]);
  assert.match(grid, />2<.*>3</);
  assert.equal(Charts.draw(steady, findSteady, [], [2, 3], () => false).curves[0], "");
});

// A frame from 50 to 150 and 20 to 120, x from 0 to 10, y from 0 to 100.
const spec = { frame: [50, 20, 150, 120], x: [0, 10], y: [0, 100], both: true };
const plane = [
  '<polyline class="grid" points="50,20 50,120"/>',
  '<polyline class="grid" points="50,120 150,120"/>',
  '<polyline class="lead" points="100,70 108,66"/>',
  '<circle class="k0" cx="100" cy="70" r="3.6"><title>a cx="1"</title></circle>',
  '<text class="quiet tick" x="50" y="135" text-anchor="middle">0</text>',
  '<text class="quiet" x="100" y="152" text-anchor="middle">delay</text>',
  '<text class="name" x="110" y="70" data-of="100 70" text-anchor="start">a</text>',
].join("\n");

test("a part of a drawing: places are scaled, words and dots keep their size", () => {
  // The lower right quarter, whose upper left corner is the dot.
  const part = Charts.enlarge(plane, spec, [100, 150, 70, 120]);
  assert.match(part, /<circle class="k0" cx="50" cy="20" r="3.6"><title>a cx="1"<\/title>/);
  assert.match(part, /class="lead" points="50,20 58,16"/);
  assert.match(part, /<text class="name" x="60" y="20"/);
  assert.match(part, /class="quiet" x="100" y="152" text-anchor="middle">delay/);
  // 5 to 10 and 0 to 50, at round values: 6 is a fifth of the way.
  const ticks = [...part.matchAll(/class="quiet tick" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)/g)].map(([, x, y, anchor, text]) => [anchor, text, anchor === "middle" ? x : y]);
  assert.deepEqual(ticks.filter(([anchor]) => anchor === "middle").map(([, text, x]) => [text, x]), [["5", "50"], ["6", "70"], ["7", "90"], ["8", "110"], ["9", "130"], ["10", "150"]]);
  assert.deepEqual(ticks.filter(([anchor, text]) => anchor === "end" && text === "20").map(([, , y]) => y), ["84"]);
});

test("the whole of a drawing is itself, and what has no ends keeps its marks", () => {
  const moving = { ...spec, x: undefined, both: false };
  const whole = Charts.enlarge(plane, moving, [50, 150, 20, 120]).split("\n");
  for (const line of plane.split("\n")) assert.ok(whole.includes(line), line);
  const half = Charts.enlarge(plane, moving, [25, 75, 20, 120]);
  assert.match(half, /<text class="quiet tick" x="100" y="135" text-anchor="middle">0/);
});

/// Returns the contents of the group in a picture whose tag begins with `open`.
function group(svg, open) {
  const from = svg.indexOf(open);
  return from < 0 ? null : svg.slice(from + open.length, svg.indexOf("</g>", from));
}

// Drawings whose axes have known ends: marks that the script sets are those of drawing.rs.
for (const page of (process.env.KNEE_PLANES ?? "").split(":").filter(Boolean)) {
  test(`all of a drawing, drawn by the script: ${page}`, () => {
    const svgs = [...fs.readFileSync(page, "utf8").matchAll(/<svg class="figure"[^>]*data-frame="([^"]*)"([^>]*)>\n([^]*?)<\/svg>/g)];
    assert.ok(svgs.length);
    for (const [, frame, rest, markup] of svgs) {
      const numbers = (name) => rest.match(` data-${name}="([^"]*)"`)?.[1].split(" ").map(Number);
      const sides = frame.split(" ").map(Number), [left, top, right, bottom] = sides;
      const own = { frame: sides, x: numbers("x"), y: numbers("y"), both: rest.includes('data-zoom="both"') };
      const drawn = Charts.enlarge(markup, own, [left, right, top, bottom]).split("\n");
      for (const line of markup.split("\n").filter(Boolean)) assert.ok(drawn.includes(line), line);
    }
  });
}

for (const page of (process.env.KNEE_PAGES ?? "").split(":").filter(Boolean)) {
  test(`the script draws what Rust has drawn: ${page}`, () => {
    const html = fs.readFileSync(page, "utf8");
    const data = JSON.parse(html.split('class="series">')[1].split("</script>")[0]);
    const find = Charts.columns(data), tints = data.phases.map(({ tint }) => tint);
    assert.ok(data.charts.length >= 3);
    for (const chart of data.charts) {
      const svg = html.split(`<svg class="chart" data-chart="${chart.name}"`)[1].split("</figure>")[0];
      const drawn = Charts.draw(chart, find, tints, chart.x.whole, (number) => !chart.curves[number].optional);
      for (const part of ["shade", "grid", "drops", "references"]) assert.equal(drawn[part], group(svg, `<g class="${part}">`), `${part} of ${chart.name}`);
      drawn.curves.forEach((markup, number) => assert.equal(markup, group(svg, `<g data-curve="${number}">`), `curve ${number} of ${chart.name}`));
    }
  });
}
