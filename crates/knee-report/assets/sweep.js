// The page of a sweep: controls above; below, a heat map (two or more settings) or a chart (one
// setting). All text is inserted as text, never as markup.
(() => {
  "use strict";
  const sweep = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") node.className = value;
      else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value);
    }
    node.append(...children);
    return node;
  }
  function svg(name, attributes = {}, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  // Labels of axis marks, which are round: 1, 2 or 5 times a power of ten.
  const significant = (value) => String(Number(value.toPrecision(3)).toLocaleString("en", { useGrouping: false, maximumFractionDigits: 12 }));
  function scaled(value, units) {
    const [size, unit] = units.find(([size]) => Math.abs(value) / size >= 0.9995) || units[units.length - 1];
    return `${significant(value / size)} ${unit}`;
  }
  const marks = {
    "bit/s": (v) => scaled(v, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]),
    s: (v) => scaled(v, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]),
    B: (v) => scaled(v, [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]),
    fraction: (v) => `${significant(v * 100)} %`,
    ratio: (v) => `${significant(v)} ×`,
    1: significant,
  };

  // Keys with a single value have nothing to compare.
  const varied = sweep.keys.map((key, index) => index).filter((index) => sweep.keys[index].values.length > 1);
  const axes = varied.length ? varied : [0];
  const pointAt = new Map(sweep.points.map((point) => [point.at.join(), point]));
  const leftOut = new Map(sweep.left_out.map((point) => [point.at.join(), point.reason]));
  const groups = sweep.groups;

  // The program supplies the positions of numeric values on an axis.
  const isNumeric = (key) => sweep.page.numbers[key] !== null;

  const state = { ...sweep.page.first, y: sweep.page.first.y ?? -1, base: "", picked: "" };

  const texts = new Map(sweep.points.map((point, index) => [point, sweep.page.values[index]]));
  const reading = (point) => {
    const index = point ? point.groups.findIndex((group) => group.group === groups[state.group]) : -1;
    const name = sweep.measures[state.measure].name;
    const found = index < 0 ? null : point.groups[index].measures[name];
    return found && { ...found.interval, runs: found.interval?.runs ?? 0, never: found.never, text: texts.get(point)[index][name] };
  };
  const along = (place, key, value) => place.map((own, index) => (index === key ? value : own));
  // The program's results for the compared values: pairs of runs with the same seed, and which
  // value is best beyond chance.
  const placesOf = new Map();
  const verdictKey = (key, group, measure) => JSON.stringify([key, group, measure]);
  const verdicts = new Map(sweep.verdicts.map((verdict) => [verdictKey(verdict.key, verdict.group, verdict.measure), verdict]));
  const ratios = new Map();
  sweep.verdicts.forEach((verdict, v) => verdict.places.forEach((place, p) => place.pairs.forEach((pair, n) => ratios.set(pair, sweep.page.ratios[v][p][n]))));
  for (const [name, verdict] of verdicts) placesOf.set(name, new Map(verdict.places.map((place) => [place.at.join(), place])));
  const current = () => verdictKey(state.compare, groups[state.group], sweep.measures[state.measure].name);
  const judged = (place) => placesOf.get(current())?.get(along(place, state.compare, 0).join());
  /// Returns what is shown at a place: the value, or its ratio to the base.
  function shown(place) {
    const own = reading(pointAt.get(place.join()));
    if (!own || state.base === "" || own.mean == null) return own ?? null;
    const value = place[state.compare], base = Number(state.base);
    if (value === base) return { ...own, mean: 1, low: null, high: null, text: ["1 ×", ""] };
    const pair = judged(place)?.pairs.find((pair) => pair.value === value && pair.against === base);
    const text = pair && ratios.get(pair);
    return text ? { ...own, mean: pair.estimate, low: pair.low, high: pair.high, text } : null;
  }
  const less = () => sweep.measures[state.measure].better === "less";
  const isBest = (place) => judged(place)?.best === place[state.compare];
  /// Label of an axis mark; values come with their own text.
  const mark = (value) => (state.base === "" ? marks[sweep.measures[state.measure].unit](value) : `${significant(value)} ×`);
  const label = (value) => value.text;

  // Colours: one hue from pale to deep, or orange to blue around 1 for ratios.
  const mix = (a, b, part) => a.map((from, index) => Math.round(from + (b[index] - from) * part));
  const css = (rgb) => `rgb(${rgb.join(", ")})`;
  const palette = () => dark.matches
    ? { pale: [30, 38, 46], deep: [86, 180, 233], worse: [240, 123, 46], mid: [38, 44, 50] }
    : { pale: [238, 244, 248], deep: [0, 90, 143], worse: [200, 80, 0], mid: [245, 245, 243] };
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => ((part /= 255) <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ink = (rgb) => (luminance(rgb) > 0.22 ? "#14171a" : "#ffffff");
  function scale(values) {
    const colours = palette();
    const good = values.filter((value) => value > 0);
    if (state.base !== "") {
      const reach = Math.max(Math.log(1.1), ...good.map((value) => Math.abs(Math.log(value))));
      return (value) => {
        if (!(value > 0)) return colours.mid;
        const part = Math.log(value) / reach;
        const better = less() ? part < 0 : part > 0;
        return mix(colours.mid, better ? colours.deep : colours.worse, Math.min(1, Math.abs(part)) * 0.9);
      };
    }
    const low = Math.min(...values), high = Math.max(...values);
    // If values span decades, equal ratios get equal distances.
    const log = good.length === values.length && high / low > 30;
    const place = (value) => (high === low ? 0.4 : log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
    return (value) => mix(colours.pale, colours.deep, place(value));
  }

  function allPlaces(keys, fixed) {
    let places = [fixed];
    for (const key of keys) places = places.flatMap((place) => sweep.keys[key].values.map((_, value) => along(place, key, value)));
    return places;
  }
  const zero = sweep.keys.map(() => 0);
  const named = (place, keys) => keys.map((key) => `${sweep.keys[key].name} = ${sweep.keys[key].values[place[key]]}`).join(", ");
  const quoted = (word) => (/^[\w./=:%+,@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

  function explain(place) {
    state.picked = place.join();
    document.querySelectorAll(".cell").forEach((cell) => cell.setAttribute("aria-pressed", String(cell.dataset.at === state.picked)));
    const value = shown(place), point = pointAt.get(place.join());
    at("detail").replaceChildren(`${named(place, axes)}: `);
    if (!point) return at("detail").append(leftOut.get(place.join()) ?? "not run yet");
    if (!value) return at("detail").append("no value");
    const [main, more] = label(value);
    const settings = place.map((value, key) => `--set ${quoted(`${sweep.keys[key].name}=${sweep.keys[key].values[value]}`)}`).join(" ");
    const runs = value.runs + value.never;
    at("detail").append(el("b", {}, main), ` ${more} (${runs} run${runs === 1 ? "" : "s"}). One of them with all its records:`,
      el("code", {}, `${sweep.command_of_a_run} ${settings} --seed ${point.seeds[0]}`));
  }

  function heatMap(place, colour) {
    const { x, y } = state;
    const axis = el("tr", {}, el("td"), el("th", { class: "axis", colspan: sweep.keys[x].values.length }, `${sweep.keys[x].name} →`));
    const head = el("tr", {}, el("th", { class: "axis", title: sweep.keys[y].name }, `${sweep.keys[y].name} ↓`));
    sweep.keys[x].values.forEach((value) => head.append(el("th", { scope: "col", title: value }, value)));
    const body = el("tbody");
    sweep.keys[y].values.forEach((name, row) => {
      const line = el("tr", {}, el("th", { scope: "row", title: name }, name));
      sweep.keys[x].values.forEach((_, column) => line.append(el("td", {}, cell(along(along(place, y, row), x, column), colour))));
      body.append(line);
    });
    return el("div", { class: "map" }, el("table", {}, el("thead", {}, axis, head), body));
  }
  function cell(place, colour) {
    const value = shown(place);
    if (!value) {
      const why = leftOut.get(place.join());
      return el("span", { class: "cell none", title: why ?? "no value" }, why ? "not possible" : "–");
    }
    const [main, more] = label(value);
    const button = el("button", {
      type: "button", class: isBest(place) ? "cell best" : "cell", "data-at": place.join(), "aria-pressed": String(state.picked === place.join()),
      title: named(place, axes), onclick: () => explain(place),
    }, isBest(place) ? `★ ${main}` : main);
    if (more) button.append(el("small", {}, more));
    if (value.mean == null) button.classList.add("none");
    else {
      const rgb = colour(value.mean);
      button.style.background = css(rgb);
      button.style.color = ink(rgb);
    }
    return button;
  }

  /// Draws one setting: bars for names, a line for numbers.
  function chart(place) {
    const key = sweep.keys[state.x];
    const rows = key.values.map((name, value) => ({ name, place: along(place, state.x, value) }));
    rows.forEach((row) => { row.value = shown(row.place); row.best = state.compare === state.x && isBest(row.place); });
    const known = rows.filter((row) => row.value?.mean != null);
    if (!known.length) return el("p", { class: "empty" }, "No run has a value of this measure.");
    const top = Math.max(...known.map((row) => row.value.high ?? row.value.mean), state.base === "" ? 0 : 1) || 1;
    return isNumeric(state.x) && rows.length > 2 ? line(key, rows, known, top) : bars(rows, top);
  }
  function bars(rows, top) {
    const narrow = at("charts").clientWidth < 560;
    const width = narrow ? 360 : 900, step = narrow ? 52 : 38, left = narrow ? 8 : 230, right = narrow ? 130 : 190;
    const picture = svg("svg", { class: "bars", viewBox: `0 0 ${width} ${rows.length * step + 12}`, role: "img", "aria-label": "bars" });
    const scaleX = (value) => left + (Math.max(0, value) / top) * (width - left - right);
    rows.forEach((row, index) => {
      const y = 8 + index * step + (narrow ? 18 : 0);
      const name = svg("text", narrow ? { x: left, y: y - 4 } : { x: left - 10, y: y + 17, "text-anchor": "end" }, row.name.length > 34 ? `${row.name.slice(0, 33)}…` : row.name);
      picture.append(name);
      const [main, more] = row.value ? label(row.value) : [leftOut.has(row.place.join()) ? "not possible" : "–", ""];
      const end = row.value?.mean == null ? left : scaleX(row.value.high ?? row.value.mean);
      if (row.value?.mean != null) {
        picture.append(svg("rect", { class: row.best ? "bar best" : "bar", x: left, y, width: Math.max(1, scaleX(row.value.mean) - left), height: 25, rx: 2 }));
        if (row.value.high != null) picture.append(svg("path", { class: "whisker", d: `M${scaleX(row.value.low)} ${y + 12.5}H${scaleX(row.value.high)}m0 -5v10M${scaleX(row.value.low)} ${y + 7.5}v10` }));
      }
      picture.append(svg("text", { x: end + 8, y: y + 17 }, `${row.best ? "★ " : ""}${main}`, svg("tspan", { class: "quiet", dx: 5 }, more)));
    });
    return picture;
  }
  /// Returns a step of 1, 2 or 5 times a power of ten that gives about five marks.
  function tick(top) {
    const size = 10 ** Math.floor(Math.log10(top / 4));
    return [1, 2, 5, 10].find((step) => top / (step * size) <= 5) * size;
  }
  function line(key, rows, known, top) {
    const narrow = at("charts").clientWidth < 560;
    const width = narrow ? 360 : 900, height = narrow ? 260 : 340, left = 82, bottom = 44, up = 14;
    const places = sweep.page.numbers[state.x], from = Math.min(...places), to = Math.max(...places);
    const order = places.slice().sort((a, b) => a - b);
    const steps = order.slice(1).map((value, index) => value / order[index]);
    const log = from > 0 && (to / from > 20 || Math.max(...steps) / Math.min(...steps) < 1.05);
    const x = (value) => left + (log ? Math.log(value / from) / Math.log(to / from) : (value - from) / (to - from)) * (width - left - 30);
    const y = (value) => height - bottom - (Math.max(0, value) / (top * 1.06)) * (height - bottom - up);
    const picture = svg("svg", { class: "bars", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "values over the setting" });
    for (let value = 0; value <= top * 1.06; value += tick(top)) {
      picture.append(svg("line", { class: "grid", x1: left, x2: width - 30, y1: y(value), y2: y(value) }));
      picture.append(svg("text", { class: "quiet", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, value === 0 ? "0" : mark(value)));
    }
    if (state.base !== "") picture.append(svg("line", { class: "one", x1: left, x2: width - 30, y1: y(1), y2: y(1) }));
    let last = -Infinity;
    rows.forEach((row, index) => {
      const place = x(places[index]);
      if (place - last < (narrow ? 62 : 74)) return;
      last = place;
      picture.append(svg("text", { class: "quiet", x: place, y: height - bottom + 19, "text-anchor": "middle" }, row.name));
    });
    picture.append(svg("text", { class: "quiet", x: (left + width - 30) / 2, y: height - 6, "text-anchor": "middle" }, key.name));
    const drawn = known.slice().sort((a, b) => places[rows.indexOf(a)] - places[rows.indexOf(b)]);
    const spot = (row) => `${x(places[rows.indexOf(row)])} ${y(row.value.mean)}`;
    picture.append(svg("path", { class: "line", d: `M${drawn.map(spot).join("L")}` }));
    drawn.forEach((row) => {
      const place = x(places[rows.indexOf(row)]);
      if (row.value.high != null) picture.append(svg("path", { class: "whisker", d: `M${place} ${y(row.value.low)}V${y(row.value.high)}m-4 0h8M${place - 4} ${y(row.value.low)}h8` }));
      picture.append(svg("circle", { class: row.best ? "dot best" : "dot", cx: place, cy: y(row.value.mean), r: row.best ? 6 : 4.5 }, svg("title", {}, `${row.name}: ${label(row.value).join(" ")}`)));
    });
    return picture;
  }

  function legend(colour, places) {
    const values = places.map((value) => value.mean);
    const parts = [];
    if (state.y >= 0 && values.length) {
      const low = Math.min(...values), high = Math.max(...values);
      const reads = (wanted) => places.find((value) => value.mean === wanted).text[0];
      const steps = state.base === "" ? [0, 0.25, 0.5, 0.75, 1].map((part) => low + (high - low) * part) : [low, Math.sqrt(low), 1, Math.sqrt(high), high].sort((a, b) => a - b);
      const ramp = el("i");
      ramp.style.background = `linear-gradient(90deg, ${steps.map((value) => css(colour(value))).join(", ")})`;
      parts.push(el("span", { class: "ramp" }, reads(low), ramp, reads(high)));
    }
    const measure = sweep.measures[state.measure];
    parts.push(el("span", {}, `${less() ? "less" : "more"} is better${state.base === "" ? "" : ": blue is better than the reference, orange worse"}`));
    if (varied.includes(state.compare)) parts.push(el("span", {}, `★ best ${sweep.keys[state.compare].name}, everything else being equal; no star: no difference beyond chance`));
    if (values.length === 0) parts.push(el("span", {}, `no run has ${measure.title}`));
    at("legend").replaceChildren(...parts);
  }

  /// Returns the program's sentence about the comparison.
  function sentence() {
    const key = sweep.keys[state.compare], measure = sweep.measures[state.measure];
    const words = `${measure.title.charAt(0).toUpperCase()}${measure.title.slice(1)}`;
    return verdicts.get(current())?.says ?? `${words}: no two values of ${key.name} are compared.`;
  }

  function draw() {
    const used = state.y < 0 ? [state.x] : [state.x, state.y];
    const facets = axes.filter((index) => !used.includes(index));
    const known = allPlaces(axes, zero).map(shown).filter((value) => value?.mean != null);
    const values = known.map((value) => value.mean);
    const colour = values.length ? scale(values) : null;
    at("result").textContent = sentence();
    legend(colour, known);
    // A map without values is replaced by a sentence instead of an empty frame.
    const any = (place) => allPlaces(used, place).some((inner) => shown(inner));
    const all = allPlaces(facets, zero);
    const empty = all.filter((place) => !any(place));
    const pictures = all.filter(any).map((place) => el("section", { class: state.y < 0 ? "facet chart" : "facet" },
      ...(facets.length ? [el("h3", {}, named(place, facets))] : []),
      state.y < 0 ? chart(place) : heatMap(place, colour)));
    if (empty.length) pictures.push(el("p", { class: "empty" }, `Nothing to show for ${facets.length ? empty.map((place) => named(place, facets)).join("; ") : "this measure"}.`));
    at("charts").replaceChildren(...pictures);
    at("detail").replaceChildren(state.y >= 0 ? "Choose a cell for its settings and the line that repeats it." : "");
  }

  function choice(text, options, value, change) {
    const select = el("select", { onchange: (event) => { change(event.target.value); controls(); draw(); } });
    options.forEach(([id, name]) => {
      const option = el("option", { value: id }, name);
      option.selected = String(id) === String(value);
      select.append(option);
    });
    return el("label", {}, text, select);
  }
  function controls() {
    const keyed = axes.map((index) => [index, sweep.keys[index].name]);
    const parts = [choice("measure", sweep.measures.map((measure, index) => [index, measure.title]), state.measure, (value) => { state.measure = Number(value); })];
    if (groups.length > 1) parts.push(choice("flows", groups.map((group, index) => [index, group === "*" ? "all flows" : group]), state.group, (value) => { state.group = Number(value); }));
    if (axes.length > 1) {
      const swap = (own, other) => (value) => {
        if (state[other] === Number(value)) state[other] = state[own];
        state[own] = Number(value);
      };
      parts.push(choice("to the right", keyed, state.x, swap("x", "y")), choice("downwards", keyed, state.y, swap("y", "x")));
      parts.push(choice("compare", keyed, state.compare, (value) => { state.compare = Number(value); state.base = ""; }));
    }
    const key = sweep.keys[state.compare];
    if (varied.includes(state.compare)) parts.push(choice("relative to", [["", "nothing: values"], ...key.values.map((value, index) => [index, value])], state.base, (value) => { state.base = value; }));
    at("controls").replaceChildren(...parts);
  }

  at("controls").addEventListener("submit", (event) => event.preventDefault());
  if (!sweep.points.length || !sweep.measures.length) {
    at("controls").hidden = true;
    at("charts").replaceChildren(el("p", { class: "empty" }, "No run has ended yet."));
  } else {
    controls();
    draw();
    dark.addEventListener("change", draw);
    let width = innerWidth;
    addEventListener("resize", () => { if (Math.abs(innerWidth - width) > 40) { width = innerWidth; draw(); } });
  }
})();
