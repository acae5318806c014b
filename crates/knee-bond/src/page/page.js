"use strict";

// Asks for the state once a second, and draws it.

const SECONDS = 120;
// Below this rate links share nothing but what keeps them open, bit/s.
const LEAST_SHARED = 10000;
// Colours that people with any kind of sight tell apart (Okabe and Ito).
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8a6d00", "#777777"];
const SVG = "http://www.w3.org/2000/svg";

/** The colour, counts and past rates ([time, bit/s]) of each link, by peer, bundle and name. */
const links = new Map();
let before = null;

const at = (id) => document.getElementById(id);

function rate(bits) {
  if (bits === null) return "–";
  const units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
  let unit = 0;
  while (bits >= 999.5 && unit < units.length - 1) {
    bits /= 1000;
    unit += 1;
  }
  return `${Number(bits.toPrecision(3))} ${units[unit]}`;
}

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (count >= 999.5 && unit < units.length - 1) {
    count /= 1000;
    unit += 1;
  }
  return `${Number(count.toPrecision(3))} ${units[unit]}`;
}

const milliseconds = (value) => `${Number(value.toPrecision(3))} ms`;

function span(seconds) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"]];
  const part = parts.find(([length]) => seconds >= length);
  return part ? `${Math.floor(seconds / part[0])} ${part[1]}` : `${Math.floor(seconds)} s`;
}

/** Adds a cell with a text, which is never interpreted as HTML. */
function cell(row, text, kind) {
  const made = row.insertCell();
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function known(key) {
  if (!links.has(key)) {
    links.set(key, { colour: COLOURS[links.size % COLOURS.length], rates: [], counts: null });
  }
  return links.get(key);
}

function show(status) {
  const now = status.running_s;
  const verb = status.role === "client" ? "takes connections at" : "listens at";
  at("said").textContent = `This ${status.role} ${verb} ${status.listen}. It has run for ${span(now)}.`;
  at("said").className = "";
  const rows = document.createElement("tbody");
  rows.id = "links";
  for (const bundle of status.bundles) {
    const shares = [];
    for (const link of bundle.links) {
      const of = known(`${bundle.peer} ${bundle.number} ${link.name}`);
      const grown = (name) => {
        // A link that was not there before, or began anew, has no rate yet.
        const is_known = of.counts !== null && of.counts[name] <= link[name] && now > before;
        return is_known ? ((link[name] - of.counts[name]) * 8) / (now - before) : null;
      };
      const [incoming, outgoing] = [grown("received_bytes"), grown("sent_bytes")];
      of.counts = link;
      if (incoming !== null && outgoing !== null) of.rates.push([now, incoming + outgoing]);
      const row = rows.insertRow();
      cell(row, bundle.peer);
      const name = cell(row, link.name);
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.style.background = of.colour;
      name.prepend(mark);
      cell(row, link.silent ? "silent" : link.left_out ? "left out" : link.backup ? "waits" : "up", link.silent || link.left_out ? "bad" : "");
      cell(row, rate(incoming), "number");
      cell(row, rate(outgoing), "number");
      shares.push([cell(row, "–", "number"), incoming === null || outgoing === null ? null : incoming + outgoing]);
      cell(row, milliseconds(link.rtt_ms), "number");
      cell(row, milliseconds(link.min_rtt_ms), "number");
      const loss = link.sent_packets > 0 ? (100 * link.lost_packets) / link.sent_packets : 0;
      cell(row, `${Number(loss.toPrecision(2))} %`, "number");
      cell(row, bytes(link.packet_bytes), "number");
    }
    const all = shares.reduce((sum, [, bits]) => sum + bits, 0);
    for (const [made, bits] of shares) {
      if (all >= LEAST_SHARED && bits !== null) made.textContent = `${Math.round((100 * bits) / all)} %`;
    }
  }
  if (rows.rows.length === 0) {
    const none = status.role === "client" ? "No link to the server is up." : "No client is here.";
    cell(rows.insertRow(), none).colSpan = 10;
  }
  at("links").replaceWith(rows);
  const more = status.caps.map(
    (cap) => `${cap.name}: ${bytes(cap.used_bytes)} of ${bytes(cap.cap_bytes)} since ${cap.since}, anew on ${cap.resets}.`,
  );
  more.push(
    ...status.carried.map((one) => `${one.client}: ${bytes(one.used_bytes)} of ${bytes(one.limit_bytes)} in its 24 hours.`),
  );
  const links = status.bundles.flatMap((bundle) => bundle.links).filter((link) => link.left_out);
  more.push(...links.map((link) => `${link.name} is left out: ${link.left_out}.`));
  more.push(...status.unused.map((unused) => `${unused.name} is not used: ${unused.why}.`));
  at("more").replaceChildren(
    ...more.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }),
  );
  before = now;
  draw(now);
}

function drawn(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Rounds a value up to 1, 2 or 5 times a power of ten. */
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1000)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function draw(now) {
  // Use the full width of the page, so that the text is as large as elsewhere.
  const width = at("plot").clientWidth;
  at("plot").setAttribute("viewBox", `0 0 ${width} 200`);
  const [left, right, top, bottom] = [70, width - 10, 10, 175];
  let most = 0;
  for (const of of links.values()) {
    of.rates = of.rates.filter(([time]) => time >= now - SECONDS);
    most = Math.max(most, ...of.rates.map(([, bits]) => bits));
  }
  const scale = rounded(most);
  const x = (time) => right - ((now - time) / SECONDS) * (right - left);
  const y = (bits) => bottom - (bits / scale) * (bottom - top);
  const parts = [];
  for (const part of [0, 0.5, 1]) {
    const height = y(part * scale);
    parts.push(drawn("line", { class: "grid", x1: left, x2: right, y1: height, y2: height }));
    parts.push(drawn("text", { x: left - 6, y: height + 4, "text-anchor": "end" }, rate(part * scale)));
  }
  for (const ago of width < 500 ? [60, 0] : [120, 90, 60, 30, 0]) {
    const text = ago === 0 ? "now" : `${ago} s ago`;
    parts.push(drawn("text", { x: x(now - ago), y: bottom + 18, "text-anchor": ago === 0 ? "end" : "middle" }, text));
  }
  for (const of of links.values()) {
    if (of.rates.length < 2) continue;
    const line = of.rates.map(([time, bits], index) => `${index ? "L" : "M"}${x(time).toFixed(1)} ${y(bits).toFixed(1)}`);
    parts.push(drawn("path", { d: line.join(""), stroke: of.colour }));
  }
  at("plot").replaceChildren(...parts);
}

async function ask() {
  try {
    const answer = await fetch("status", { cache: "no-store" });
    show(await answer.json());
  } catch {
    at("said").textContent = "It does not answer: has it been stopped?";
    at("said").className = "bad";
  }
  setTimeout(ask, 1000);
}

ask();
