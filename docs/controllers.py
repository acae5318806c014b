#!/usr/bin/env python3
"""Compares all built-in controllers over the ten scenarios in docs/controllers/:

    docs/controllers.py [--check] [--only NAME,NAME] [--jobs N] [KNEE]

Runs each scenario with two flows of a controller, and with one next to a flow of CUBIC.
Writes the table in docs/controllers.md, the picture docs/controllers.svg and the page
docs/controllers-compared.md. With --check it writes nothing, and fails if any of them would
change; with --only as well, if the rows of these controllers would. KNEE is the program, by
default the one in the path.
"""
import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DOCS = Path(__file__).resolve().parent
# In the order of the tables.
SCENARIOS = [
    "home", "slow", "fast", "near", "far", "shallow", "deep", "lossy", "mobile", "two-rtts",
]
# A constant window, and controllers of several paths.
LEFT_OUT = {"fixed", "gcc", "lia", "olia", "balia"}
BEGIN, END = "<!-- compared: begin -->", "<!-- compared: end -->"

# Key, name, meaning, number of digits, and format.
MEASURES = [
    ("utilisation", "utilisation", "of the bottleneck, by both flows", "{:.0%}"),
    ("delay", "queueing delay", "median of both flows, as a part of the RTT without a queue",
     "{:.2f}"),
    ("again", "retransmitted", "share of the bytes sent, start-up included", "{:.2%}"),
    ("jain", "Jain", "index of the two flows' goodputs; 0.5 is one flow alone, 1 is even",
     "{:.2f}"),
    ("share", "beside CUBIC", "share of the goodput of a flow beside one of CUBIC", "{:.0%}"),
    ("convergence", "convergence",
     "from the start of the second flow until both have an even share, within a fifth, for 5 s; "
     "median of those scenarios where that occurs", "{:.0f} s"),
]

HEAD = """\
# All controllers over ten scenarios

Measurements of `docs/controllers.py`, the source of the table and the picture in
[controllers](controllers.md#compared). Each scenario of `docs/controllers/` runs for a
minute with two flows of a controller, the second five seconds after the first, and again with
the second flow under CUBIC. One seed each, measured after ten seconds: a difference of a few
per cent means nothing. The simulator gives the same numbers each time, and CI checks that they
are up to date.
"""


def names(knee):
    """Returns controllers and presets, in the order of the program."""
    listed = run(knee, "list", "controllers", "--format", "text")
    found = re.findall(r"^(?:preset )?([a-z]\S*): ", listed, re.MULTILINE)
    return [name for name in found if name not in LEFT_OUT]


def run(knee, *words):
    """Runs the program, and returns its output."""
    done = subprocess.run([knee, *words], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"knee {' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def summary(knee, scenario, first, second):
    """Returns the summary of one run."""
    with tempfile.TemporaryDirectory() as folder:
        file = DOCS / "controllers" / f"{scenario}.toml"
        return json.loads(run(
            knee, "run", str(file), "--no-alternatives", "--format", "json",
            "--set", f"flow.first.cc={first}", "--set", f"flow.second.cc={second}",
            "--out", f"{folder}/run"))


def values(knee, name, scenario):
    """Returns all measures of a controller in a scenario; None for one that does not occur."""
    pair = summary(knee, scenario, name, name)
    beside = summary(knee, scenario, name, "cubic")
    goodput = [flow["goodput_bps"] for flow in beside["flows"]]
    delay = sum(flow["queueing_delay_us"]["p50"] / flow["base_rtt_us"] for flow in pair["flows"])
    links = [link["utilisation"] for link in pair["links"] if link["name"] == "bottleneck"]
    return {
        "utilisation": links[0],
        "delay": delay / len(pair["flows"]),
        "again": pair["measures"]["retransmit_ratio"],
        "jain": pair["measures"]["jain"],
        "share": goodput[0] / max(sum(goodput), 1),
        "convergence": pair["claims"][0]["measured"],
    }


def cell(form, value):
    return "never" if value is None else form.format(value)


def middle(found, key):
    """Returns the median over the scenarios, or None if the measure never occurs."""
    known = [found[scenario][key] for scenario in SCENARIOS if found[scenario][key] is not None]
    return statistics.median(known) if known else None


def overview_row(name, found):
    cells = []
    for key, _, _, form in MEASURES:
        text = cell(form, middle(found, key))
        if key == "convergence":
            times = sum(found[scenario][key] is not None for scenario in SCENARIOS)
            text += f" ({times} of {len(SCENARIOS)})"
        cells.append(text)
    return f"| `{name}` | {' | '.join(cells)} |"


def overview(rows):
    head = " | ".join(name for _, name, _, _ in MEASURES)
    lines = [f"| controller | {head} |", "| --- |" + " ---: |" * len(MEASURES)]
    return "\n".join(lines + rows)


def detail_row(name, found, key, form):
    return f"| `{name}` | {' | '.join(cell(form, found[s][key]) for s in SCENARIOS)} |"


def page(found):
    parts = [HEAD, scenarios_table()]
    for key, title, meaning, form in MEASURES:
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n{meaning[0].upper()}{meaning[1:]}.\n")
        parts.append(f"| controller | {' | '.join(SCENARIOS)} |\n| --- |" + " ---: |" * len(SCENARIOS))
        parts[-1] += "".join("\n" + detail_row(name, found[name], key, form) for name in found) + "\n"
    return "\n".join(parts)


def scenarios_table():
    """Returns name and first comment of each scenario."""
    rows = ["| scenario | represents |", "| --- | --- |"]
    for scenario in SCENARIOS:
        lines = (DOCS / "controllers" / f"{scenario}.toml").read_text().splitlines()
        comment = " ".join(line[2:] for line in lines if line.startswith("# "))
        rows.append(f"| `{scenario}` | {comment} |")
    return "\n".join(rows) + "\n"


WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 860, 520, 70, 20, 180, 60


def picture(found):
    """Draws medians over the scenarios in the plane of delay and throughput."""
    points = {name: (middle(one, "delay"), middle(one, "utilisation")) for name, one in found.items()}
    least, most = 0.01, 3.0
    low = math.floor(min(y for _, y in points.values()) * 20) / 20
    across = lambda x: LEFT + (math.log(max(x, least) / least) / math.log(most / least)) * (
        WIDTH - LEFT - RIGHT)
    up = lambda y: TOP + (1 - y) / (1 - low) * (HEIGHT - TOP - BOTTOM)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for x in (0.01, 0.03, 0.1, 0.3, 1, 3):
        at = across(x)
        out.append(f'<path d="M{at:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>')
        out.append(f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    steps = 5 if 1 - low > 0.1 else 1
    for percent in range(round(low * 100), 101, steps):
        at = up(percent / 100)
        out.append(f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{percent} %</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 14}" text-anchor="middle">'
               'median queueing delay over the RTT without a queue (less is better)</text>')
    out.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)" '
               'text-anchor="middle">utilisation (more is better)</text>')
    out += labelled(points, across, up)
    return "\n".join(out) + "\n</svg>\n"


def labelled(points, across, up):
    """Draws points, and their names in a column on the right, joined by lines."""
    order = sorted(points, key=lambda name: (up(points[name][1]), name))
    gap = min(19.0, (HEIGHT - TOP - BOTTOM) / max(len(order) - 1, 1))
    ends, last = [], TOP - gap
    for name in order:
        last = max(last + gap, up(points[name][1]))
        ends.append(last)
    over = max(0.0, ends[-1] - (HEIGHT - BOTTOM))
    for at in range(len(ends) - 1, -1, -1):
        ceiling = HEIGHT - BOTTOM - (len(ends) - 1 - at) * gap
        ends[at] = min(ends[at], ceiling) if over else ends[at]
    side = WIDTH - RIGHT + 34
    for name, end in zip(order, ends):
        x, y = across(points[name][0]), up(points[name][1])
        yield (f'<path d="M{x:.1f} {y:.1f}L{side - 6} {end:.1f}" stroke="#0072b2" '
               'stroke-opacity="0.35" fill="none"/>')
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#0072b2"/>'
        yield f'<text x="{side}" y="{end + 4:.1f}">{name}</text>'


def in_controllers(found):
    """Returns controllers.md with its table."""
    text = (DOCS / "controllers.md").read_text()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    table = overview([overview_row(name, found[name]) for name in found])
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def stale_rows(found):
    """Returns rows of these controllers that are missing in the pages."""
    known = (DOCS / "controllers.md").read_text() + (DOCS / "controllers-compared.md").read_text()
    lines = set(known.splitlines())
    rows = [overview_row(name, found[name]) for name in found]
    rows += [detail_row(name, found[name], key, form) for name in found for key, _, _, form in MEASURES]
    return [row for row in rows if row not in lines]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true")
    options.add_argument("--only", type=lambda text: text.split(","))
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("knee", nargs="?", default="knee")
    chosen = options.parse_args()
    if chosen.only and not chosen.check:
        options.error("--only needs --check: the pages have all controllers")
    every = chosen.only or names(chosen.knee)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        cases = [(name, scenario) for name in every for scenario in SCENARIOS]
        done = list(pool.map(lambda case: values(chosen.knee, *case), cases))
    found = {name: {} for name in every}
    for (name, scenario), one in zip(cases, done):
        found[name][scenario] = one
    if chosen.only:
        stale = stale_rows(found)
        if stale:
            sys.exit("not up to date, run docs/controllers.py:\n" + "\n".join(stale))
        return
    wanted = {
        DOCS / "controllers.md": in_controllers(found),
        DOCS / "controllers-compared.md": page(found),
        DOCS / "controllers.svg": picture(found),
    }
    for file, text in wanted.items():
        if not chosen.check:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            sys.exit(f"{file.name} is not up to date, run docs/controllers.py")


if __name__ == "__main__":
    main()
