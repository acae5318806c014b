"use strict";
// Zooming, values under the pointer, hiding of curves, switching between the pages of the document,
// and buttons.
(() => {
  const DRAG_MIN_PX = 4;
  const SVG = "http://www.w3.org/2000/svg";

  const figures = (v) => {
    if (v == null || Number.isNaN(v)) return "–";
    const size = Math.abs(v);
    return v.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
  };
  const spanInWords = (ns) => {
    const [size, unit] = ns >= 10e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    const value = ns / size;
    return `${value >= 10 ? value.toFixed(0) : Number(value.toFixed(1))} ${unit}`;
  };
  function element(name, className) {
    const made = document.createElement(name);
    made.className = className;
    return made;
  }

  // ---- One chart. `run` has the columns, the tints and the other charts.
  class Chart {
    constructor(svg, spec, run) {
      Object.assign(this, { svg, spec, run, view: spec.x.whole, hidden: new Set(), dirty: false });
      spec.curves.forEach((curve, number) => curve.optional && this.hidden.add(number));
      this.holder = svg.parentElement;
      this.group = spec.x.title === "time" ? "time" : spec.name;
      this.frame = { ...Object.fromEntries(["left", "top", "right", "bottom"].map((side, index) => [side, spec.frame[index]])) };
      this.keys = new Map([...svg.querySelectorAll("[data-key]")].map((key) => [Number(key.dataset.key), key]));
      for (const [number, key] of this.keys) this.listenToKey(number, key);
      this.mark = document.createElementNS(SVG, "path");
      this.mark.setAttribute("class", "cursor");
      this.selection = document.createElementNS(SVG, "path");
      this.selection.setAttribute("class", "selection");
      svg.append(this.selection, this.mark);
      this.told = element("p", "values");
      this.told.hidden = true;
      this.holder.append(this.told);
      this.note = this.holder.parentElement.querySelector(".window");
      this.tellWindow();
      this.listen();
      if (!svg.querySelector(".grid").firstChild) this.later();
    }

    // ---- Drawing.
    later() {
      this.dirty = true;
      this.run.draw();
    }

    paint() {
      const { svg, spec, run } = this;
      const shown = (number) => !this.hidden.has(number);
      const drawn = Charts.draw(spec, run.find, run.tints, this.view, shown);
      const put = (part, markup) => (svg.querySelector(`.${part}`).innerHTML = markup);
      for (const part of ["shade", "grid", "drops", "references"]) put(part, drawn[part]);
      drawn.curves.forEach((markup, number) => (svg.querySelector(`[data-curve="${number}"]`).innerHTML = markup));
      this.drawn = drawn.drawn;
      this.dirty = false;
      this.tellWindow();
    }

    tellWindow() {
      if (this.note) this.note.textContent = spanInWords(Charts.rateGrid(this.spec, this.view).window);
    }

    // ---- Pointer.
    place(event) {
      const box = this.svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * this.spec.size[0];
      return Math.min(this.frame.right, Math.max(this.frame.left, x));
    }
    valueAt(x) {
      const { left, right } = this.frame;
      return this.view[0] + ((x - left) / (right - left)) * (this.view[1] - this.view[0]);
    }
    x(value) {
      const { left, right } = this.frame;
      return left + ((value - this.view[0]) / (this.view[1] - this.view[0])) * (right - left);
    }

    listen() {
      const { svg, frame } = this;
      let from = null, to = null;
      svg.addEventListener("pointerdown", (event) => {
        if (event.button || event.target.closest(".key")) return;
        svg.setPointerCapture(event.pointerId);
        from = to = this.place(event);
      });
      svg.addEventListener("pointermove", (event) => {
        const at = this.place(event);
        if (from != null) {
          to = at;
          this.selection.setAttribute("d", `M${from} ${frame.top}H${to}V${frame.bottom}H${from}z`);
        }
        this.run.point(this.group, this.valueAt(at));
      });
      svg.addEventListener("pointerleave", () => this.run.point(this.group, null));
      const release = (event) => {
        const ends = from != null && Math.abs(to - from) > DRAG_MIN_PX ? [from, to].map((x) => this.valueAt(x)).sort((a, b) => a - b) : null;
        from = null;
        this.selection.removeAttribute("d");
        if (ends && event.type === "pointerup") this.run.zoom(this.group, ends);
      };
      svg.addEventListener("pointerup", release);
      svg.addEventListener("pointercancel", release);
      svg.addEventListener("dblclick", () => this.run.zoom(this.group, null));
    }

    listenToKey(number, key) {
      key.setAttribute("role", "button");
      key.setAttribute("tabindex", "0");
      key.setAttribute("aria-pressed", "true");
      const toggle = () => this.show(number, this.hidden.has(number));
      key.addEventListener("click", toggle);
      key.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle();
      });
    }

    show(number, shown) {
      if (shown) this.hidden.delete(number); else this.hidden.add(number);
      this.keys.get(number)?.setAttribute("aria-pressed", String(shown));
      this.later();
    }

    /// Shows the values at a place; hides them if `at` is null.
    point(at) {
      const seen = at != null && at >= this.view[0] && at <= this.view[1];
      this.told.hidden = !seen;
      if (!seen) return this.mark.removeAttribute("d");
      if (!this.drawn) this.drawn = Charts.draw(this.spec, this.run.find, this.run.tints, this.view, (number) => !this.hidden.has(number)).drawn;
      const x = this.x(at);
      this.mark.setAttribute("d", `M${x} ${this.frame.top}V${this.frame.bottom}`);
      const { spec } = this;
      const rows = [`${figures(at)} ${spec.x.unit}`];
      this.drawn.forEach((lines, number) => {
        if (!lines.length) return;
        const row = Charts.nearest(lines[0].x, at);
        const values = lines.map(({ y }) => figures(row < 0 ? NaN : y[row]));
        const text = values.length === 3 ? `${values[1]} (${values[0]} to ${values[2]})` : values[0];
        rows.push([spec.curves[number], `${text} ${spec.y.unit}`]);
      });
      this.told.replaceChildren(rows[0], ...rows.slice(1).map(([curve, text]) => {
        const row = element("span", ""), chip = document.createElementNS(SVG, "svg"), stroke = document.createElementNS(SVG, "path");
        chip.setAttribute("class", "chart");
        chip.setAttribute("viewBox", "0 0 14 6");
        stroke.setAttribute("class", curve.class);
        stroke.setAttribute("d", "M0 3h14");
        chip.append(stroke);
        row.append(chip, `${curve.label} `, Object.assign(document.createElement("b"), { textContent: text }));
        return row;
      }));
      // On the side away from the pointer.
      this.told.classList.toggle("left", x > (this.frame.left + this.frame.right) / 2);
    }
  }

  // ---- The charts of one run.
  class Run {
    constructor(section) {
      this.section = section;
      this.data = JSON.parse(section.querySelector("script.series").textContent);
      this.find = Charts.columns(this.data);
      this.tints = this.data.phases.map(({ tint }) => tint);
      this.seen = new Set();
      const svgs = new Map([...section.querySelectorAll("svg[data-chart]")].map((svg) => [svg.dataset.chart, svg]));
      this.charts = this.data.charts.filter(({ name }) => svgs.has(name)).map((spec) => new Chart(svgs.get(spec.name), spec, this));
      const byElement = new Map(this.charts.map((chart) => [chart.svg, chart]));
      // Charts off the screen are drawn when they come into view.
      this.watcher = new IntersectionObserver((entries) => {
        for (const { target, isIntersecting } of entries) {
          if (isIntersecting) this.seen.add(byElement.get(target)); else this.seen.delete(byElement.get(target));
        }
        this.draw();
      }, { rootMargin: "150px" });
      for (const chart of this.charts) this.watcher.observe(chart.svg);
      for (const hint of section.querySelectorAll(".live")) hint.hidden = false;
      const pick = section.querySelector("select.pick"), single = section.querySelector("select.single");
      pick?.addEventListener("change", () => this.pick(Number(pick.value)));
      if (pick) this.pick(Number(pick.value));
      single?.addEventListener("change", () => this.single(single.value));
      addEventListener("beforeprint", () => this.paint(this.charts));
    }

    draw() {
      this.wanted ??= requestAnimationFrame(() => {
        this.wanted = null;
        this.paint(this.seen);
      });
    }
    paint(charts) {
      for (const chart of charts) if (chart.dirty) chart.paint();
    }

    zoom(group, view) {
      for (const chart of this.charts.filter((one) => one.group === group)) {
        chart.view = view ?? chart.spec.x.whole;
        chart.later();
      }
    }
    point(group, at) {
      for (const chart of this.charts) if (chart.group === group && this.seen.has(chart)) chart.point(at);
      if (group === "time") this.tellPhase(at);
    }

    /// Shows single flows: a number, `all`, or the empty string for none.
    single(which) {
      for (const chart of this.charts) {
        chart.spec.curves.forEach((curve, number) => {
          if (!curve.optional) return;
          const place = JSON.stringify(curve.source).match(/(?:flows|curves)\.(\d+)\./)?.[1];
          chart.show(number, which === "all" || (which !== "" && place === which));
        });
      }
    }

    // ---- The flow whose controller is shown.
    pick(index) {
      const changed = this.find.pick !== index;
      this.find.pick = index;
      const flow = this.data.flows[index];
      for (const chart of this.charts) if (changed && JSON.stringify(chart.spec).includes("flows.*")) chart.later();
      this.phaseLegend(flow);
      const missing = [
        [flow.bandwidth_estimate_bps, "no estimate of the bandwidth"], [flow.min_rtt_estimate_ns, "no estimate of the minimum RTT"],
        [flow.window_bytes || flow.in_flight_bytes, "no window"],
      ].filter(([values]) => !values).map(([, words]) => words);
      const note = this.section.querySelector(".missing");
      note.hidden = !missing.length;
      note.textContent = `The controller of this flow shows ${missing.join(" and ")}.`;
    }

    phaseLegend(flow) {
      const list = this.section.querySelector(".phases");
      list.replaceChildren();
      if (!flow.phases) list.textContent = "This controller shows no phases.";
      for (const [index, share] of flow.phases?.shares ?? []) {
        const item = document.createElement("li");
        item.append(element("i", this.tints[index]), `${this.data.phases[index].words} (${share})`);
        list.append(item);
      }
    }

    tellPhase(at) {
      const out = this.section.querySelector(".phase-now");
      const spans = this.find("flows.*.phases.at"), end = this.find("flows.*.time_ns")?.at(-1);
      if (!out) return;
      const span = at != null && spans && at * 1e9 <= end ? Charts.atOrBelow(spans, at * 1e9) : -1;
      out.textContent = span < 0 ? "" : `At ${at.toFixed(2)} s: ${this.data.phases[this.find("flows.*.phases.phase")[span]].words}.`;
    }
  }

  // ---- Drawings: values under the pointer, and in those with a frame zoom.
  const NEAR_PX = 14, LARGEST = 40;
  const tip = element("p", "values tip");
  tip.hidden = true;
  document.body.append(tip);
  const zooms = new WeakMap();
  function zoomOf(svg) {
    if (!zooms.has(svg)) {
      const numbers = (name) => svg.dataset[name]?.split(" ").map(Number);
      const frame = numbers("frame"), [left, top, right, bottom] = frame;
      const spec = { frame, x: numbers("x"), y: numbers("y"), both: svg.dataset.zoom === "both" };
      zooms.set(svg, { spec, markup: svg.innerHTML, whole: [left, right, top, bottom], view: [left, right, top, bottom] });
    }
    return zooms.get(svg);
  }
  /// Where the pointer is in the units of a drawing.
  function placeIn(svg, event) {
    const box = svg.getBoundingClientRect(), { width, height } = svg.viewBox.baseVal;
    return [((event.clientX - box.left) / box.width) * width, ((event.clientY - box.top) / box.height) * height];
  }
  /// The text of an element, which the browser shall not tell as well.
  function textOf(part) {
    const title = part?.querySelector(":scope > title");
    if (title) {
      part.dataset.told = title.textContent;
      title.remove();
    }
    return part?.dataset.told;
  }
  function closestDot(svg, event) {
    let found = null, least = NEAR_PX;
    for (const dot of svg.querySelectorAll("circle")) {
      const box = dot.getBoundingClientRect();
      const away = Math.hypot(box.left + box.width / 2 - event.clientX, box.top + box.height / 2 - event.clientY);
      if (away < least && textOf(dot)) [found, least] = [dot, away];
    }
    return found;
  }
  /// The values of named curves at the pointer.
  function curvesAt(svg, event) {
    const curves = svg.dataset.y ? [...svg.querySelectorAll("polyline[data-name]")] : [];
    if (!curves.length) return "";
    const { spec, view } = zoomOf(svg), [left, top, right, bottom] = spec.frame, [unitX, unitY] = svg.dataset.units.split(" ");
    const [at, height] = placeIn(svg, event);
    if (at < left || at > right || height < top || height > bottom) return "";
    const place = view[0] + ((at - left) / (right - left)) * (view[1] - view[0]);
    const told = curves.map((curve) => {
      const points = Charts.pairs(curve.getAttribute("points")), row = Charts.nearest(points.map(([x]) => x), at);
      return `${curve.dataset.name} ${figures(Charts.valueAt(spec.y, points[row][1], bottom, top))} ${unitY}`;
    });
    return [`${figures(Charts.valueAt(spec.x, place, left, right))} ${unitX}`, ...told].join("\n");
  }
  function tell(svg, event) {
    const part = event.target.closest?.(".cell") ?? event.target.closest?.("rect, polygon, circle");
    const text = svg && (textOf(closestDot(svg, event)) || curvesAt(svg, event) || (part && svg.contains(part) && textOf(part)));
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { offsetWidth: width, offsetHeight: height } = tip;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18}px`;
  }
  let drag = null;
  const drawingOf = (event) => event.target.closest?.("svg.figure");
  addEventListener("pointerdown", (event) => {
    const svg = drawingOf(event);
    if (!svg?.dataset.frame || event.button) return;
    const { spec: { frame: [left, top, right, bottom] } } = zoomOf(svg), [x, y] = placeIn(svg, event);
    if (x < left || x > right || y < top || y > bottom) return;
    drag = { svg, from: [x, y], to: [x, y], mark: document.createElementNS(SVG, "rect") };
    drag.mark.setAttribute("class", "selection");
    svg.append(drag.mark);
    svg.setPointerCapture(event.pointerId);
  });
  addEventListener("pointermove", (event) => {
    if (!drag) return tell(drawingOf(event), event);
    const { spec: { frame: [left, top, right, bottom], both } } = zoomOf(drag.svg), [x, y] = placeIn(drag.svg, event);
    drag.to = [Math.min(right, Math.max(left, x)), Math.min(bottom, Math.max(top, y))];
    const [x0, x1] = [drag.from[0], drag.to[0]].sort((a, b) => a - b);
    const [y0, y1] = both ? [drag.from[1], drag.to[1]].sort((a, b) => a - b) : [top, bottom];
    for (const [name, value] of Object.entries({ x: x0, y: y0, width: x1 - x0, height: y1 - y0 })) drag.mark.setAttribute(name, value);
  });
  function enlarge(svg, view) {
    const zoom = zoomOf(svg);
    zoom.view = view ?? zoom.whole;
    svg.innerHTML = view ? Charts.enlarge(zoom.markup, zoom.spec, view) : zoom.markup;
  }
  function release(event) {
    if (!drag) return;
    const { svg, from, to, mark } = drag, { spec, view, whole } = zoomOf(svg);
    drag = null;
    mark.remove();
    const ends = [0, 1].map((side) => [from[side], to[side]].sort((a, b) => a - b));
    const moved = ends.map(([low, high]) => high - low);
    if (event.type !== "pointerup" || moved[0] < DRAG_MIN_PX || (spec.both && moved[1] < DRAG_MIN_PX)) return;
    const [left, top, right, bottom] = spec.frame;
    const x = ends[0].map((at) => view[0] + ((at - left) / (right - left)) * (view[1] - view[0]));
    const y = spec.both ? ends[1].map((at) => view[2] + ((at - top) / (bottom - top)) * (view[3] - view[2])) : view.slice(2);
    const fits = ([low, high], from, to) => high - low >= (to - from) / LARGEST;
    if (fits(x, whole[0], whole[1]) && fits(y, whole[2], whole[3])) enlarge(svg, [...x, ...y]);
  }
  addEventListener("pointerup", release);
  addEventListener("pointercancel", release);
  document.addEventListener("pointerleave", () => (tip.hidden = true));
  addEventListener("scroll", () => (tip.hidden = true), { passive: true });
  addEventListener("dblclick", (event) => drawingOf(event)?.dataset.frame && enlarge(drawingOf(event), null));

  // ---- Pages: each section with class "page" is one; the part of the address after # selects
  // which is shown. The contents of a script with class "held" become a page when it is first
  // shown, and so do a run's charts, so that a report of many runs opens quickly.
  let pages = [...document.querySelectorAll("section.page")];
  const held = new Map([...document.querySelectorAll("script.held")].map((one) => [one.dataset.page, one]));
  const alive = new Map();
  function enliven(page) {
    for (const section of page.querySelectorAll("section.run")) {
      if (!alive.has(section.id)) alive.set(section.id, new Run(section));
    }
  }
  /// Creates the held page that contains an element with this id, if there is one.
  function unfold(wanted) {
    const has = (name) => wanted === name || wanted.startsWith(`${name}-`);
    const name = [...held.keys()].filter(has).sort((a, b) => b.length - a.length)[0];
    const holder = held.get(name);
    if (!holder) return;
    held.delete(name);
    const made = document.createElement("template");
    made.innerHTML = holder.textContent.replaceAll("<\\", "<");
    const page = made.content.firstElementChild;
    holder.replaceWith(page);
    pages = [...document.querySelectorAll("section.page")];
    copyable(page);
  }
  function show() {
    let wanted = "";
    try {
      wanted = decodeURIComponent(location.hash.slice(1));
    } catch {
      // An invalid address shows the first page.
    }
    if (wanted && !document.getElementById(wanted)) unfold(wanted);
    const target = wanted ? document.getElementById(wanted) : null;
    const page = target?.closest("section.page") ?? pages[0];
    // A page that is not divided.
    if (!page) return;
    for (const other of pages) other.classList.toggle("shown", other === page);
    for (const link of document.querySelectorAll("nav.pages a")) {
      const group = link.getAttribute("href").slice(1);
      const current = group === page.id || group === page.dataset.parent;
      if (current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    enliven(page);
    if (pages.length + held.size > 1) scrollTo(0, 0);
    if (target && target !== page) target.scrollIntoView();
  }
  addEventListener("hashchange", show);

  function copyable(within) {
    for (const button of within.querySelectorAll("button.copy")) {
      button.hidden = !navigator.clipboard;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.previousElementSibling.textContent.trim());
        button.textContent = "copied";
        setTimeout(() => (button.textContent = "copy"), 1500);
      });
    }
  }
  copyable(document);
  for (const hint of document.querySelectorAll(".live:not(.run .live)")) hint.hidden = false;
  show();
})();
