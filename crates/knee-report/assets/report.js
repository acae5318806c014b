"use strict";
// Draws the plots of the page from the series embedded in it. One script,
// no framework; uPlot does the drawing.
(() => {
  const FLOW_COLOURS = 8;
  const RATE_POINTS = 700;
  const RATE_WINDOWS = 150;
  const THIN_SPAN_PX = 0.6;

  // ---- Colours: those of the style sheet, read again when the scheme changes.
  const palette = new Map();
  const colour = (name) => {
    if (!palette.has(name)) {
      const style = getComputedStyle(document.documentElement);
      palette.set(name, style.getPropertyValue(name).trim());
    }
    return palette.get(name);
  };
  const charts = new Set();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    palette.clear();
    for (const chart of charts) chart.redraw(false, true);
  });

  // ---- Columns: Base64 of zigzag LEB128 differences, see encode.rs.
  function decode(column) {
    if (!column) return null;
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

  // ---- Units: one per plot, fitting its largest value.
  const UNITS = {
    rate: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
    bytes: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
    time: [[10e9, "s", 1e9], [1e6, "ms"], [1e3, "µs"], [1, "ns"]],
  };
  function unitFor(kind, largest) {
    const fits = UNITS[kind].find(([from]) => largest >= from) ?? UNITS[kind].at(-1);
    return { divisor: fits[2] ?? fits[0], name: fits[1] };
  }
  const largestOf = (lists) => {
    let largest = 0;
    for (const list of lists) if (list) for (const v of list) if (v > largest) largest = v;
    return largest;
  };
  const figures = (v) => {
    if (v == null || Number.isNaN(v)) return "";
    const size = Math.abs(v);
    return v.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3);
  };
  // Zero means "none" in the records; a gap in the plot.
  const scaled = (list, divisor) => Array.from(list, (v) => (v > 0 ? v / divisor : null));
  const scaledWithZero = (list, divisor) => Array.from(list, (v) => v / divisor);

  // ---- A plot.
  const flowStroke = (index) => colour(`--flow-${index % FLOW_COLOURS}`);

  function line(label, stroke, extra) {
    return {
      label, stroke, width: 1.3, spanGaps: false, points: { show: false },
      value: (_, v) => figures(v), ...extra,
    };
  }

  function axis(label, extra) {
    return {
      label, labelSize: 18, labelGap: 0, labelFont: "11px system-ui, sans-serif",
      font: "11px system-ui, sans-serif", gap: 4,
      stroke: () => colour("--quiet"),
      grid: { stroke: () => colour("--grid"), width: 1 },
      ticks: { stroke: () => colour("--grid"), width: 1, size: 4 },
      ...extra,
    };
  }

  // From zero, unless that would flatten a curve that stays far above it.
  function range(fromZero, references) {
    return (_, low, high) => {
      if (low == null) return [0, 1];
      for (const { value } of references) {
        if (value > low / 1.3 && value < high * 1.3) {
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
      if (!fromZero && low > 0.6 * high) {
        const margin = Math.max((high - low) * 0.1, high * 0.005);
        return [low - margin, high + margin];
      }
      return [0, high > 0 ? high * 1.06 : 1];
    };
  }

  // Text with a rim, readable across curves.
  function write(ctx, text, x, y) {
    ctx.save();
    ctx.setLineDash([]);
    ctx.lineJoin = "round";
    ctx.lineWidth = 3 * devicePixelRatio;
    ctx.strokeStyle = colour("--raised");
    ctx.strokeText(text, x, y);
    ctx.fillText(text, x, y);
    ctx.restore();
  }

  function drawReferences(u, references) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.fillStyle = ctx.strokeStyle = colour("--quiet");
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.lineWidth = devicePixelRatio;
    for (const { value, label } of references) {
      if (!(value >= u.scales.y.min && value <= u.scales.y.max)) continue;
      const y = Math.round(u.valToPos(value, "y", true));
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      const above = y - bbox.top > 20 * devicePixelRatio;
      ctx.textAlign = "right";
      ctx.textBaseline = above ? "bottom" : "top";
      write(ctx, label, bbox.left + bbox.width - 4, y + (above ? -3 : 3));
    }
    ctx.restore();
  }

  function plot(holder, { data, series, xLabel, yLabel, sync, fromZero, references = [], hooks = {}, xSeries = {}, tall = 230, whole }) {
    const width = () => Math.max(holder.clientWidth, 200);
    const height = () => (holder.clientWidth < 480 ? Math.min(190, tall) : tall);
    const options = {
      width: width(), height: height(), padding: [8, 8, 0, 0],
      scales: {
        // Data-driven, as at first and after a double click, it is the whole.
        x: { time: false, ...(whole && { range: (u, a, b) => (a <= u.data[0][0] && b >= u.data[0].at(-1) ? whole : [a, b]) }) },
        y: { range: range(fromZero, references) },
      },
      series: [{ label: "", value: (_, v) => (v == null ? "" : `at ${v.toFixed(2)} s`), ...xSeries }, ...series],
      axes: [axis(xLabel, { size: 30, space: 60 }), axis(yLabel, { size: 46, space: 34 })],
      legend: { live: true },
      focus: { alpha: 0.25 },
      cursor: {
        focus: { prox: series.length > 1 ? 24 : -1 },
        points: { size: 6 },
        y: false,
        drag: { x: true, y: false, dist: 4 },
        ...(sync ? { sync: { key: sync, setSeries: false, scales: ["x", null] } } : {}),
      },
      hooks: {
        ...hooks,
        draw: [(u) => drawReferences(u, references), ...(hooks.draw ?? [])],
        // After a zoom uPlot may think that the pointer is in a plot where it
        // only follows: no curve is to fade there.
        setSeries: [(u, index, change) => {
          if (change.focus && index != null && !u.over.matches(":hover")) queueMicrotask(() => u.setSeries(null, { focus: true }));
        }],
      },
    };
    const chart = new uPlot(options, data, holder);
    charts.add(chart);
    const fit = () => {
      if (holder.clientWidth > 0 && chart.width !== width()) chart.setSize({ width: width(), height: height() });
    };
    const watcher = new ResizeObserver(() => requestAnimationFrame(fit));
    watcher.observe(holder);
    chart.destroyAll = () => {
      watcher.disconnect();
      charts.delete(chart);
      chart.destroy();
    };
    return chart;
  }

  // ---- Rates: a counter's growth over a window around each point, which
  // narrows as one zooms in, down to the distance of two samples.
  function counterAt(series, at) {
    const { time, delivered } = series;
    let low = 0, high = time.length;
    if (!high || at <= time[0]) return high ? delivered[0] : 0;
    if (at >= time[high - 1]) return delivered[high - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (time[middle] <= at) low = middle; else high = middle;
    }
    const part = (at - time[low]) / (time[high] - time[low] || 1);
    return delivered[low] + part * (delivered[high] - delivered[low]);
  }
  function rates(flows, from, to) {
    const interval = Math.max(1, ...flows.map((f) => f.interval_ns));
    const points = Math.max(2, Math.min(RATE_POINTS, Math.ceil((to - from) / interval) + 1));
    const step = (to - from) / (points - 1);
    const window = Math.max(interval, step, (to - from) / RATE_WINDOWS);
    const grid = Array.from({ length: points }, (_, i) => from + i * step);
    const lists = flows.map((flow) => {
      const begin = flow.time[0] - flow.interval_ns, end = flow.time.at(-1);
      return grid.map((at) => {
        if (!flow.delivered || at < begin || at > end) return null;
        const first = Math.max(at - window / 2, begin), last = Math.min(at + window / 2, end);
        if (last <= first) return null;
        return (8e9 * (counterAt(flow, last) - counterAt(flow, first))) / (last - first);
      });
    });
    return { grid, lists, window };
  }
  const spanInWords = (ns) => {
    const unit = unitFor("time", ns);
    const value = ns / unit.divisor;
    return `${value >= 10 ? value.toFixed(0) : Number(value.toFixed(1))} ${unit.name}`;
  };

  // ---- One run.
  class Run {
    constructor(section) {
      this.section = section;
      this.key = section.id;
      const data = JSON.parse(section.querySelector("script.series").textContent);
      this.end = data.end_ns;
      this.full = data.rates_vary ? "path full, in the mean" : "path full";
      this.whole = [0, Math.max(this.end, 1) / 1e9];
      this.phases = data.phases;
      this.flows = data.flows.map((f, index) => this.flow(f, () => flowStroke(index)));
      this.mean = data.mean && this.flow(data.mean, () => colour("--text"), { dash: [6, 3] });
      this.multipath = data.multipath.map((m) => ({ ...m, paths: m.paths.map((p, index) => this.flow(p, () => flowStroke(index))) }));
      this.links = data.links;
      this.distribution = data.rtt_distribution;
      this.picked = [];
    }

    flow(f, stroke, extra = {}) {
      return {
        ...f, stroke, extra,
        time: decode(f.time_ns),
        delivered: decode(f.delivered_bytes),
        rtt: decode(f.rtt_ns),
        window: decode(f.window_bytes),
        inFlight: decode(f.in_flight_bytes),
        threshold: decode(f.slow_start_threshold_bytes),
        bandwidth: decode(f.bandwidth_estimate_bps),
        minRtt: decode(f.min_rtt_estimate_ns),
        spans: f.phases && { at: decode(f.phases.at), phase: decode(f.phases.phase) },
      };
    }

    holder(name) {
      return this.section.querySelector(`[data-plot="${name}"] .plot`);
    }

    common(flows, read) {
      const agreed = new Set(flows.map(read));
      const [value] = agreed;
      return agreed.size === 1 && value > 0 ? value : null;
    }

    draw() {
      const all = this.mean ? [...this.flows, this.mean] : this.flows;
      const base = this.common(this.flows, (f) => f.base_rtt_ns);
      const baseLine = base ? [{ value: base, label: "empty path" }] : [];
      this.drawRates(this.holder("rate"), all);
      this.drawSeries("rtt", all, "rtt", "time", { references: baseLine });
      this.drawSeries("window", all, "window", "bytes", { fromZero: true });
      this.drawSeries("in_flight", all, "inFlight", "bytes", { fromZero: true });
      this.multipath.forEach((flow, index) => this.drawPaths(flow, index));
      this.links.forEach((link, index) => this.drawLink(link, index));
      this.drawDistribution(this.holder("distribution"));
      const picker = this.section.querySelector("select.pick");
      picker?.addEventListener("change", () => this.drawController(Number(picker.value)));
      if (picker) this.drawController(Number(picker.value));
    }

    // A strip for each path: the same colour in all of its plots.
    drawPaths({ paths, time_ns, reassembly_bytes }, index) {
      paths.forEach((path, number) => {
        const at = `${index}-${number}`;
        const base = path.base_rtt_ns ? [{ value: path.base_rtt_ns, label: "empty path" }] : [];
        this.drawRates(this.holder(`path_rate-${at}`), [path], { own: [path], tall: 140 });
        this.drawSeries(`path_rtt-${at}`, [path], "rtt", "time", { references: base, tall: 140 });
        this.drawSeries(`path_flight-${at}`, [path], "inFlight", "bytes", { fromZero: true, tall: 140 });
      });
      const holder = this.holder(`reassembly-${index}`), waiting = decode(reassembly_bytes);
      if (!holder || !waiting) return;
      const unit = unitFor("bytes", largestOf([waiting]));
      plot(holder, {
        data: [Array.from(decode(time_ns), (t) => t / 1e9), scaledWithZero(waiting, unit.divisor)],
        series: [line("waiting at the receiver", () => colour("--third"))],
        xLabel: "time (s)", yLabel: unit.name, sync: this.key, whole: this.whole, fromZero: true, tall: 170,
      });
    }

    drawRates(holder, flows, { own = this.flows, tall } = {}) {
      if (!holder) return;
      const note = holder.parentElement.querySelector(".window");
      const full = this.common(own, (f) => f.full_bps);
      const total = !this.mean && own.length > 1;
      const unit = unitFor("rate", largestOf(rates(total ? own : flows, 0, this.end).lists));
      let shown = this.whole;
      const table = (from, to) => {
        const { grid, lists, window } = rates(flows, from, to);
        if (note) note.textContent = spanInWords(window);
        if (total) lists.push(grid.map((_, i) => lists.reduce((sum, l) => sum + (l[i] ?? 0), 0)));
        return [grid.map((at) => at / 1e9), ...lists.map((list) => scaledWithNull(list, unit.divisor))];
      };
      const series = flows.map((f) => line(f.label, f.stroke, f.extra));
      if (total) series.push(line("all together", () => colour("--quiet"), { width: 1, dash: [3, 2] }));
      const rebuild = (u) => {
        const { min, max } = u.scales.x;
        if (min === shown[0] && max === shown[1]) return;
        shown = [min, max];
        // A little more than is seen, so that curves run to the edge.
        const more = (max - min) * 0.02;
        u.setData(table(Math.max(0, (min - more) * 1e9), Math.min(this.end, (max + more) * 1e9)), false);
        u.setScale("x", { min, max });
      };
      plot(holder, {
        data: table(0, this.end), series, xLabel: "time (s)", yLabel: unit.name, sync: this.key, whole: this.whole, fromZero: true, tall,
        references: full ? [{ value: full / unit.divisor, label: this.full }] : [],
        hooks: { setScale: [(u, key) => key === "x" && u.ready && queueMicrotask(() => rebuild(u))], ready: [(u) => (u.ready = true)] },
      });
    }

    drawSeries(name, flows, field, kind, { references = [], fromZero = false, tall }) {
      const holder = this.holder(name);
      if (!holder) return;
      const present = flows.filter((f) => f[field]);
      if (!present.length) {
        const words = document.createElement("p");
        words.className = "empty";
        words.textContent = "There was none.";
        holder.replaceWith(words);
        return;
      }
      const unit = unitFor(kind, largestOf(present.map((f) => f[field])));
      const convert = field === "rtt" ? scaled : scaledWithZero;
      const data = uPlot.join(present.map((f) => [Array.from(f.time, (t) => t / 1e9), convert(f[field], unit.divisor)]));
      plot(holder, {
        data, series: present.map((f) => line(f.label, f.stroke, f.extra)),
        xLabel: "time (s)", yLabel: unit.name, sync: this.key, whole: this.whole, fromZero, tall,
        references: references.map((r) => ({ ...r, value: r.value / unit.divisor })),
      });
    }

    // ---- The controller of one flow, with its phases behind the curves.
    drawController(index) {
      for (const chart of this.picked) chart.destroyAll();
      this.picked = [];
      const flow = this.flows[index];
      this.phaseLegend(flow);
      const goodput = flow.delivered && this.rateOnRows(flow);
      this.controllerPlot("bandwidth", flow, "rate", flow.bandwidth && [
        ["estimate of the bandwidth", flow.bandwidth, "--estimate", { width: 2 }],
        ["goodput", goodput, "--measured", { width: 1 }, scaledWithZero],
      ], flow.full_bps && [{ value: flow.full_bps, label: this.full }]);
      this.controllerPlot("min_rtt", flow, "time", flow.minRtt && [
        ["estimate of the minimum RTT", flow.minRtt, "--estimate", { width: 2 }],
        ["RTT", flow.rtt, "--measured", { width: 1 }],
      ], flow.base_rtt_ns && [{ value: flow.base_rtt_ns, label: "empty path" }]);
      const product = (flow.full_bps * flow.base_rtt_ns) / 8e9;
      this.controllerPlot("flight", flow, "bytes", (flow.window || flow.inFlight) && [
        ["congestion window", flow.window, "--estimate", { width: 2 }],
        ["in flight", flow.inFlight, "--measured", { width: 1 }, scaledWithZero],
        ["slow-start threshold", flow.threshold, "--third", { width: 1, dash: [4, 3] }],
      ], product && [{ value: product, label: "1 BDP" }]);
      const missing = [
        [flow.bandwidth, "no estimate of the bandwidth"], [flow.minRtt, "no estimate of the minimum RTT"],
        [flow.window || flow.inFlight, "no window"],
      ].filter(([values]) => !values).map(([, words]) => words);
      const note = this.section.querySelector(".missing");
      note.hidden = !missing.length;
      note.textContent = `The controller of this flow shows ${missing.join(" and ")}.`;
    }

    rateOnRows(flow) {
      const window = Math.max(2 * flow.interval_ns, (flow.time.at(-1) - flow.time[0]) / RATE_WINDOWS);
      const first = flow.time[0], last = flow.time.at(-1);
      return flow.time.map((at) => {
        const from = Math.max(first, at - window / 2), to = Math.min(last, at + window / 2);
        return to > from ? (8e9 * (counterAt(flow, to) - counterAt(flow, from))) / (to - from) : 0;
      });
    }

    controllerPlot(name, flow, kind, curves, references) {
      const holder = this.holder(name);
      if (!holder) return;
      holder.parentElement.hidden = !curves;
      if (!curves) return;
      curves = curves.filter(([, values]) => values);
      const unit = unitFor(kind, largestOf(curves.map(([, values]) => values)));
      const data = [Array.from(flow.time, (t) => t / 1e9), ...curves.map(([, values, , , scaling = scaled]) => scaling(values, unit.divisor))];
      this.picked.push(plot(holder, {
        data, series: curves.map(([label, , tone, extra]) => line(label, () => colour(tone), extra)),
        xLabel: "time (s)", yLabel: unit.name, sync: this.key, whole: this.whole, fromZero: kind !== "time",
        references: (references || []).map((r) => ({ ...r, value: r.value / unit.divisor })),
        hooks: {
          drawClear: [(u) => this.shade(u, flow)],
          setCursor: [(u) => this.tellPhase(u, flow)],
        },
      }));
    }

    shade(u, flow) {
      if (!flow.spans) return;
      const { ctx, bbox } = u;
      const { at, phase } = flow.spans;
      const right = bbox.left + bbox.width;
      ctx.save();
      for (let i = 0; i < at.length; i++) {
        const until = i + 1 < at.length ? at[i + 1] : flow.time.at(-1);
        const x0 = Math.max(u.valToPos(at[i] / 1e9, "x", true), bbox.left);
        const x1 = Math.min(u.valToPos(until / 1e9, "x", true), right);
        if (x1 - x0 < THIN_SPAN_PX * 0.2 || x1 <= bbox.left || x0 >= right) continue;
        ctx.fillStyle = colour(`--tint-${this.phases[phase[i]].tint}`);
        ctx.fillRect(x0, bbox.top, Math.max(x1 - x0, THIN_SPAN_PX), bbox.height);
      }
      ctx.restore();
    }

    phaseAt(flow, time) {
      if (!flow.spans || time < flow.spans.at[0] || time > flow.time.at(-1)) return null;
      let low = 0, high = flow.spans.at.length;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (flow.spans.at[middle] <= time) low = middle; else high = middle;
      }
      return this.phases[flow.spans.phase[low]];
    }

    tellPhase(u, flow) {
      const out = this.section.querySelector(".phase-now");
      if (!out) return;
      const { idx } = u.cursor;
      const phase = idx == null ? null : this.phaseAt(flow, u.data[0][idx] * 1e9);
      out.textContent = phase ? `At ${u.data[0][idx].toFixed(2)} s: ${phase.words}.` : "";
    }

    phaseLegend(flow) {
      const list = this.section.querySelector(".phases");
      if (!list) return;
      list.replaceChildren();
      if (!flow.spans) {
        list.textContent = "This controller shows no phases.";
        return;
      }
      const lasted = new Map();
      const { at, phase } = flow.spans;
      for (let i = 0; i < at.length; i++) {
        const until = i + 1 < at.length ? at[i + 1] : flow.time.at(-1);
        lasted.set(phase[i], (lasted.get(phase[i]) ?? 0) + until - at[i]);
      }
      const whole = [...lasted.values()].reduce((a, b) => a + b, 0) || 1;
      for (const [index, time] of lasted) {
        const item = document.createElement("li");
        const chip = document.createElement("i");
        chip.className = `tint-${this.phases[index].tint}`;
        const share = (100 * time) / whole;
        item.append(chip, `${this.phases[index].words} (${share >= 10 ? share.toFixed(0) : share.toFixed(1)} %)`);
        list.append(item);
      }
    }

    // ---- Links and distribution.
    drawLink(link, index) {
      const time = decode(link.time_ns);
      const seconds = Array.from(time, (t) => t / 1e9);
      const dropped = decode(link.dropped_packets);
      const drops = { drawClear: [(u) => dropped && this.shadeDrops(u, time, dropped)] };
      const draw = (name, column, kind, tone) => {
        const holder = this.holder(`${name}-${index}`);
        const values = decode(column);
        if (!holder || !values) return;
        const unit = unitFor(kind, largestOf([values]));
        const label = name === "queue_delay" ? "delay of the queue" : "bytes in the queue";
        plot(holder, {
          data: [seconds, scaledWithZero(values, unit.divisor)],
          series: [line(label, () => colour(tone))],
          xLabel: "time (s)", yLabel: unit.name, sync: this.key, whole: this.whole, fromZero: true, hooks: drops,
        });
      };
      draw("queue_delay", link.queue_delay_ns, "time", "--flow-0");
      draw("queue_bytes", link.queue_bytes, "bytes", "--flow-0");
    }

    // A tick at the foot of the plot for each interval with a drop.
    shadeDrops(u, time, dropped) {
      const { ctx, bbox } = u;
      ctx.save();
      ctx.fillStyle = colour("--bad");
      const size = 10 * devicePixelRatio;
      let last = -1;
      for (let i = 0; i < time.length; i++) {
        if (dropped[i] <= (i ? dropped[i - 1] : 0)) continue;
        const x = Math.round(u.valToPos(time[i] / 1e9, "x", true));
        if (x === last || x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.fillRect(x - devicePixelRatio / 2, bbox.top + bbox.height - size, Math.max(1.5, devicePixelRatio * 1.5), size);
        last = x;
      }
      ctx.restore();
    }

    drawDistribution(holder) {
      if (!holder || !this.distribution) return;
      const rtt = decode(this.distribution.rtt_ns);
      const unit = unitFor("time", rtt.at(-1));
      const curves = this.distribution.curves;
      const base = this.common(this.flows, (f) => f.base_rtt_ns);
      const data = [Array.from(rtt, (t) => t / unit.divisor), ...curves.map((c) => Array.from(decode(c.at_or_below), (v) => v / 1000))];
      plot(holder, {
        data,
        series: curves.map((c, i) => line(c.label, () => flowStroke(i), { value: (_, v) => (v == null ? "" : `${v.toFixed(1)} %`) })),
        xSeries: { value: (_, v) => (v == null ? "" : `at most ${figures(v)} ${unit.name}`) },
        xLabel: `RTT (${unit.name})`, yLabel: "samples (%)", fromZero: true, tall: 320,
        hooks: { draw: [(u) => base && this.drawUpright(u, base / unit.divisor, "empty path")] },
      });
    }

    drawUpright(u, at, label) {
      if (at < u.scales.x.min || at > u.scales.x.max) return;
      const { ctx, bbox } = u;
      const x = Math.round(u.valToPos(at, "x", true));
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("--quiet");
      ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.lineWidth = devicePixelRatio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "left";
      ctx.textBaseline = "top";
      write(ctx, label, x + 4, bbox.top + 4);
      ctx.restore();
    }
  }

  function scaledWithNull(list, divisor) {
    return list.map((v) => (v == null ? null : v / divisor));
  }

  // ---- Pages: each section with class "page" is one; the part after # says
  // which is shown. Plots are drawn when their page is first shown.
  const pages = [...document.querySelectorAll("section.page")];
  const drawn = new Set();
  function drawRuns(page) {
    for (const section of page.querySelectorAll("section.run")) {
      if (drawn.has(section.id)) continue;
      drawn.add(section.id);
      new Run(section).draw();
    }
  }
  function show() {
    let wanted = "";
    try {
      wanted = decodeURIComponent(location.hash.slice(1));
    } catch {
      // A damaged address shows the first page.
    }
    const target = wanted ? document.getElementById(wanted) : null;
    const page = target?.closest("section.page") ?? pages[0];
    for (const other of pages) other.hidden = other !== page;
    for (const link of document.querySelectorAll("nav.pages a")) {
      const group = link.getAttribute("href").slice(1);
      const current = group === page.id || group === page.dataset.parent;
      if (current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    drawRuns(page);
    if (pages.length > 1) scrollTo(0, 0);
    if (target && target !== page) target.scrollIntoView();
  }
  addEventListener("hashchange", show);

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent.trim());
      button.textContent = "copied";
      setTimeout(() => (button.textContent = "copy"), 1500);
    });
  }
  show();
})();
