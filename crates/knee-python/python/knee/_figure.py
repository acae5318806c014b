"""Figures with matplotlib, if installed. Units and scales are those of the pages."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"]
"""The palette of Okabe and Ito, safe for colour blindness, without the yellow."""

OF_FLOWS = {
    "delay": ("rtt_ns", 1e-6, "round-trip time (ms)"),
    "window": ("window_bytes", 1e-3, "congestion window (kB)"),
    "in-flight": ("in_flight_bytes", 1e-3, "in flight (kB)"),
}
"""Column, factor and label of the quantities in a flow's samples."""
OF_RUNS = ["throughput", *OF_FLOWS, "queue"]


def draw(of: Any, what: str | None, ax: Any) -> Any:
    """Plots a run or a ranking; returns the axes."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as missing:
        advice = "figures are drawn by matplotlib, which is not there: pip install 'knee[figures]'"
        raise ImportError(advice) from missing

    is_run = hasattr(of, "samples")
    if not is_run and not hasattr(of, "rows"):
        raise TypeError(f"{type(of).__name__} has no figure: give what knee.run or knee.rank gave")
    known = OF_RUNS if is_run else ["delay-throughput"]
    what = known[0] if what is None else what
    if what not in known:
        raise ValueError(f"{what!r} is no figure of a {type(of).__name__}: write {_any_of(known)}")
    lines = _lines(of, what) if is_run else None
    if is_run and not lines:
        raise ValueError(f"the run has nothing to draw for {what!r}")
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    if is_run:
        _over_time(ax, lines, _label(what))
    else:
        _plane(ax, of.summary["entries"])
    return ax


def _any_of(words: list[str]) -> str:
    return " or ".join(f'"{word}"' for word in words)


def _label(what: str) -> str:
    labels = {"throughput": "goodput (Mbit/s)", "queue": "queueing delay (ms)"}
    return labels[what] if what in labels else OF_FLOWS[what][2]


def _lines(run: Any, what: str) -> dict[str, list[tuple[float, float]]]:
    """Returns the points of each flow or link, by name: seconds and value."""
    if what == "queue":
        table, name, column = run.links, "link_name", "queue_delay_ns"
    else:
        column = "delivered_bytes" if what == "throughput" else OF_FLOWS[what][0]
        table, name = run.samples, "flow_name"
    rows: dict[str, list[tuple[int, int]]] = {}
    for this, time_ns, value in zip(table[name], table["time_ns"], table[column]):
        if value is not None:
            rows.setdefault(this, []).append((time_ns, value))
    if what == "throughput":
        return {name: _rates(points) for name, points in rows.items() if len(points) > 1}
    factor = 1e-6 if what == "queue" else OF_FLOWS[what][1]
    return {name: [(t * 1e-9, v * factor) for t, v in points] for name, points in rows.items()}


def _rates(points: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """Returns the rate in Mbit/s between samples of a byte count, at the later sample."""
    pairs = zip(points, points[1:])
    return [(t2 * 1e-9, 8e3 * (b2 - b1) / (t2 - t1)) for (t1, b1), (t2, b2) in pairs]


def _over_time(ax: Any, lines: dict[str, list[tuple[float, float]]], label: str) -> None:
    for number, (name, points) in enumerate(lines.items()):
        times, values = zip(*points)
        colour = COLOURS[number % len(COLOURS)]
        ax.plot(times, values, label=name, color=colour, linewidth=1)
    ax.set_xlabel("time (s)")
    ax.set_ylabel(label)
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)


def _plane(ax: Any, entries: list[dict[str, Any]]) -> None:
    """Plots the candidates' means with 95 % intervals; fills those on the Pareto front."""
    for number, entry in enumerate(entries):
        (x, across), (y, up) = (_interval(entry[key]) for key in ("delay", "used"))
        colour = COLOURS[number % len(COLOURS)]
        ax.errorbar(
            x,
            100 * y,
            xerr=[[part] for part in across],
            yerr=[[100 * part] for part in up],
            label=entry["candidate"],
            color=colour,
            marker="o",
            markerfacecolor=colour if entry["on_front"] else "none",
            linestyle="none",
        )
    ax.set_xlim(left=1)
    ax.set_xlabel("mean RTT over that of the empty path")
    ax.set_ylabel("part of the path used (%)")
    ax.legend(frameon=False)


def _interval(value: dict[str, Any]) -> tuple[float, tuple[float, float]]:
    """Returns a mean, and the lengths of its interval down and up; zero for one run."""
    mean = value["mean"]
    low, high = (mean if value.get(end) is None else value[end] for end in ("low", "high"))
    return mean, (max(0.0, mean - low), max(0.0, high - mean))
