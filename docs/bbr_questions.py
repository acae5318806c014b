#!/usr/bin/env python3
"""Answers the questions that the authors of the BBR draft ask, each on a page:

    docs/bbr_questions.py [--only NAME] [--jobs N] [--kept DIR] [KNEE]
    docs/bbr_questions.py --check [--cases N] [KNEE]
    docs/bbr_questions.py --on kernel [--only NAME] [--kept DIR] [KNEE]

docs/bbr-questions/questions.toml declares the questions, docs/bbr-questions/*.toml are their
scenarios. The command runs every variant of a question in every case on the simulator, first with
10 seeds, then with 20 unless the intervals decide, and writes docs/bbr-NAME.md and .svg, and
the measured values to docs/bbr-questions/NAME.json. --kept goes on with the runs kept in DIR, which
must be of the same build. With --on kernel it runs the cases marked so over Linux's TCP, as root, in
real time, and adds them to the same file and page. --check runs the first N cases of each question
(default 1) again, and fails if a value or a page would change. KNEE is the program, by default the
one in the path.
"""
import argparse
import hashlib
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "bbr-questions"
SEEDS = [10, 20]
KERNEL_SEEDS = 3
# Quantiles of Student's t, 0.975, by the number of pairs.
STUDENT = {10: 2.2622, 20: 2.0930}
# Forms of an effect: the ratio to the first variant, in per cent, or the difference.
UNITS = {"s": (1000, "ms"), "part": (100, "points"), "index": (1, "")}


def load():
    return tomllib.loads((FOLDER / "questions.toml").read_text())["question"]


# ---- running


class Runner:
    """Runs one case of one variant, or takes its values from the runs that were kept."""

    def __init__(self, knee, on, kept):
        self.knee, self.on, self.kept = knee, on, kept

    def values(self, group, case, variant, first, count):
        """Returns, by line, the values of seeds `first` to `first + count - 1`; None is never, and
        "none" that there is nothing to measure."""
        sets = [f"flow.{flow}.cc={variant['cc']}" for flow in group.get("flows", ["candidate"])]
        sets += case.get("set", [])
        if self.on == "kernel":
            sets += case["kernel"]
        scenario = FOLDER / group["file"]
        words = [scenario.read_text(), self.on, *sets, str(first), str(count)]
        key = hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]
        known = self.kept and Path(self.kept) / f"{key}.json"
        if known and known.exists():
            return json.loads(known.read_text())
        with tempfile.TemporaryDirectory() as folder:
            line = [
                self.knee, "run", str(scenario), "--no-alternatives", "--jobs", "1", "--on", self.on,
                "--seed", str(first), "--repeat", str(count), "--out", f"{folder}/run"]
            done = subprocess.run(
                [*line, *(word for one in sets for word in ("--set", one))],
                capture_output=True, text=True)
            if done.returncode not in (0, 1):
                sys.exit(f"{' '.join(line)} {sets}: exit code {done.returncode}\n{done.stderr}")
            found = {}
            for at in range(1, count + 1):
                run = json.loads((Path(folder) / "run" / f"repeat-{at}" / "summary.json").read_text())
                if run["verdict"] == "invalid":
                    continue
                for claim in run["claims"]:
                    untested = claim["outcome"] == "not tested here"
                    found.setdefault(claim["id"], []).append(
                        "none" if untested else claim["measured"])
        if known:
            known.parent.mkdir(parents=True, exist_ok=True)
            known.write_text(json.dumps(found))
        return found


def measure(runner, pool, question, group, cases, seeds):
    """Returns the values by case, variant and line of all seeds."""
    spans = [(first, count) for first, count in zip([1, *(n + 1 for n in SEEDS)],
             [SEEDS[0], *(b - a for a, b in zip(SEEDS, SEEDS[1:]))]) if first <= seeds]
    if seeds < SEEDS[0]:
        spans = [(1, seeds)]
    work = [(case, variant, span) for case in cases for variant in variants(question, group)
            for span in spans]
    done = list(pool.map(lambda one: runner.values(group, one[0], one[1], *one[2]), work))
    found = {}
    for (case, variant, _), values in zip(work, done):
        cell = found.setdefault(case["name"], {}).setdefault(variant["name"], {})
        for line, more in values.items():
            cell.setdefault(line, []).extend(more)
    return found


def variants(question, group):
    """Returns the variants that a group of cases compares, the first of which is the draft's."""
    chosen = group.get("variants")
    return [one for one in question["variant"] if not chosen or one["name"] in chosen]


# ---- statistics


def number(line, value):
    """Returns a value as it counts: what never happens as the longest time, none as none."""
    return line.get("never") if value is None else None if value == "none" else value


def pairs(line, base, other):
    """Returns the effect of each seed: the logarithm of the ratio, or the difference."""
    found = []
    for before, after in zip(base, other):
        before, after = number(line, before), number(line, after)
        if before is None or after is None:
            found.append(None)
        elif line["form"] == "ratio":
            floor = line.get("floor", 0)
            found.append(math.log((after + floor) / (before + floor)))
        else:
            found.append(after - before)
    return found


def pooled(columns):
    """Returns the mean over the cases, seed by seed, of those that all have a value."""
    whole = [column for column in columns if None not in column]
    return [statistics.fmean(row) for row in zip(*whole)]


def effect(line, found):
    """Returns estimate, interval of 95 %, and the word of the outcome."""
    if not found:
        return None
    mean, spread = statistics.fmean(found), statistics.stdev(found)
    half = STUDENT[len(found)] * spread / math.sqrt(len(found))
    bounds = [mean - half, mean, mean + half]
    margin = line["alike"]
    if line["form"] == "ratio":
        bounds = [math.expm1(bound) for bound in bounds]
    low, middle, high = bounds
    if low > 0 and middle > margin or high < 0 and middle < -margin:
        more = line.get("better")
        word = {None: ("less", "more"), "more": ("worse", "better"), "less": ("better", "worse")}[
            more][middle > 0]
    else:
        word = "alike" if low >= -margin and high <= margin else "undecided"
    return {"estimate": digits(middle), "low": digits(low), "high": digits(high), "word": word}


def needed(line, effect, seeds):
    """Returns the seeds with which four of five intervals would exclude no difference, if it is as
    large as it seems; rounded up to tens."""
    scale = math.log1p if line["form"] == "ratio" else float
    low, middle, high = (scale(effect[key]) for key in ("low", "estimate", "high"))
    error = (high - low) / 2 / STUDENT[seeds] * math.sqrt(seeds)
    return math.ceil((1.96 + 0.84) ** 2 * (error / middle) ** 2 / 10) * 10


def digits(value):
    return None if value is None else float(f"{value:.5g}")


def mean(line, values):
    known = [number(line, value) for value in values]
    known = [value for value in known if value is not None]
    return digits(statistics.fmean(known)) if known else None


def summed(question, group, found):
    """Returns means, effects of each case and of all cases together."""
    lines = {line["id"]: line for line in question["line"]}
    first, *others = [one["name"] for one in variants(question, group)]
    ids = list(next(iter(found.values()))[first])

    def told(key, before, values, is_first):
        """The mean of a line, and its effect against the first variant where all pairs are known."""
        line = lines[key]
        found_mean = {"mean": mean(line, values)}
        if is_first:
            return found_mean
        both = pairs(line, before, values)
        return found_mean | {"effect": effect(line, [] if None in both else both)}

    cases = {
        case: {
            name: {key: told(key, values[first][key], values[name][key], name == first) for key in ids}
            for name in (first, *others)
        }
        for case, values in found.items()
    }
    together = {
        name: {
            key: effect(lines[key], pooled([
                pairs(lines[key], values[first][key], values[name][key])
                for values in found.values()]))
            for key in ids
        }
        for name in others
    }
    seeds = len(next(iter(found.values()))[first][ids[0]])
    return {"seeds": seeds, "cases": cases, "together": together}


def decided(question, group, result):
    wanted = {line["id"] for line in question["line"] if line.get("decides", True)}
    return all(
        one is None or one["word"] != "undecided"
        for lines in result["together"].values() for key, one in lines.items() if key in wanted)


def answered(runner, pool, question):
    """Runs a question with as many seeds as it takes."""
    groups = {}
    for group in question["group"]:
        for seeds in SEEDS:
            found = measure(runner, pool, question, group, group["case"], seeds)
            result = summed(question, group, found)
            if decided(question, group, result):
                break
        groups[group["name"]] = result
        print(f"{question['name']}: {group['name']}, {result['seeds']} seeds", file=sys.stderr)
    return groups


# ---- the page


def shown(line, one, interval=True):
    """Formats an effect for reading."""
    if one is None:
        return "none"
    scale, unit = (100, "%") if line["form"] == "ratio" else UNITS[line["unit"]]
    middle, low, high = (scale * one[key] for key in ("estimate", "low", "high"))
    size = max(abs(middle), abs(low), abs(high))
    places = 0 if size >= 20 else 1 if size >= 2 else 2 if size >= 0.2 else 3
    sign = lambda value: f"{value:+.{places}f}".replace("-", "−")
    text = f"{sign(middle)} {unit}".rstrip()
    return f"{text} [{sign(low)}, {sign(high)}]" if interval else text


def plain(line, value):
    """Formats a mean."""
    if value is None:
        return "none"
    form = {"s": lambda v: f"{1000 * v:.0f} ms" if v < 10 else f"{v:.1f} s",
            "bit/s": lambda v: f"{v / 1e6:.2f} Mbit/s", "part": lambda v: f"{100 * v:.2f} %",
            "index": lambda v: f"{v:.3f}"}
    return form[line["unit"]](value)


MARKS = {"better": "**better**", "worse": "**worse**", "alike": "alike", "undecided": "undecided",
         "more": "more", "less": "less"}


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def section(question, group, result):
    """Returns the section of a group of cases."""
    lines = {line["id"]: line for line in question["line"]}
    names = [one["name"] for one in variants(question, group)]
    first, *others = names
    rows = []
    for key in next(iter(result["together"].values())):
        cells = []
        for name in others:
            one = result["together"][name][key]
            cells.append("none" if one is None else f"{shown(lines[key], one)} {MARKS[one['word']]}")
        rows.append([lines[key]["title"], *cells])
    parts = [
        f"### {group['title']}\n\n{group['says'].strip()} {len(result['cases'])} cases, "
        f"{result['seeds']} seeds each.\n",
        table(["against " + first, *others], rows) + "\n",
        "<details><summary>Each case</summary>\n"]
    for key in next(iter(result["together"].values())):
        cells = [[case, *(plain(lines[key], values[name][key]["mean"])
                          + ("" if name == first or values[name][key]["effect"] is None
                             else f" ({shown(lines[key], values[name][key]['effect'], False)})")
                          for name in names)]
                 for case, values in result["cases"].items()]
        parts.append(f"{lines[key]['title']}:\n\n{table(['case', *names], cells)}\n")
    return "\n".join([*parts, "</details>\n"])


def kernel(question, found):
    """Returns the section about runs over Linux's TCP."""
    if not found:
        return ("## On the kernel\n\nNot run yet: `docs/bbr_questions.py --on kernel --only "
                f"{question['name']}` adds it, as root.\n")
    lines = {line["id"]: line for line in question["line"]}
    parts = [
        "## On the kernel\n\nThe same scenarios over Linux's TCP with the controller in BPF, in real "
        f"time, {KERNEL_SEEDS} runs each; means, and in brackets those of the simulator. "
        f"{question['kernel'].strip()}\n"]
    for group in question["group"]:
        names = [one["name"] for one in variants(question, group)]
        for case, values in found["groups"].get(group["name"], {}).items():
            rows = [
                [lines[key]["title"], *(
                    f"{plain(lines[key], values[name][key]['kernel'])} "
                    f"({plain(lines[key], values[name][key]['sim'])})" for name in names)]
                for key in values[names[0]] if all(key in values[name] for name in names)]
            parts.append(f"{group['title']}: {case}\n\n{table(['measure', *names], rows)}\n")
    return "\n".join(parts)


def answer(question, groups):
    """Returns the answer with its figures, and fails if it does not follow from them any more."""
    lines = {line["id"]: line for line in question["line"]}

    def one(path):
        group, key, name = path.split(".", 2)
        return lines[key], groups[group]["together"][name][key]

    wrong = [
        f"{question['name']}: {path} is {one(path)[1]['word']}, not {word}"
        for path, word in question.get("follows", {}).items() if one(path)[1]["word"] != word]
    if wrong:
        sys.exit("the answer does not follow from the figures:\n" + "\n".join(wrong))

    def figure(found):
        """An effect; with "mean:" before it the value, the mean over the cases; with "seeds:" how
        many seeds would tell the effect from none."""
        what, _, path = found[1].rpartition(":")
        group, key, name = path.split(".", 2)
        if what == "mean":
            cases = groups[group]["cases"].values()
            return plain(lines[key], statistics.fmean(case[name][key]["mean"] for case in cases))
        if what == "seeds":
            return str(needed(*one(path), groups[group]["seeds"]))
        return shown(*one(path))

    fill = lambda text: re.sub(r"\{([^{}]+)\}", figure, text)
    return fill(question["answer"].strip()), fill(question.get("found", "").strip())


def page(question, groups, on_kernel):
    said, found = answer(question, groups)
    settings = table(["variant", "controller"], [
        [f"**{one['name']}**", f"`{one['cc']}`"] for one in question["variant"]])
    runs = sum(
        len(result["cases"]) * result["seeds"] * len(variants(question, group))
        for group, result in zip(question["group"], groups.values()))
    sections = "\n".join(
        section(question, group, groups[group["name"]]) for group in question["group"])
    return f"""# {question['title']}

{question['asked'].strip()}

## What was run

{question['run'].strip()}

{settings}

{runs} runs on the simulator by `docs/bbr_questions.py`; the same command gives the same bytes. Each
effect is that of a variant against the first, paired over the seeds and averaged over the cases of a
group, with its interval of 95 %. A group runs with 10 seeds, and with 20 if an outcome is undecided
then. *Better* and *worse*: the interval excludes no difference, and the difference is beyond the
margin; *alike*: the interval is within it. About one in twenty intervals misses by chance.

{margins(question)}

## What was found

![Effects of each variant against the first with their intervals, by group of cases](bbr-{question['name']}.svg)

{found}

{sections}
{kernel(question, on_kernel)}
## What would overturn it

{question['overturned'].strip()}

## Answer

{said}
"""


def margins(question):
    rows = []
    for line in question["line"]:
        scale, unit = (100, "%") if line["form"] == "ratio" else UNITS[line["unit"]]
        rows.append([line["title"], f"{scale * line['alike']:g} {unit}".rstrip()])
    return table(["measure", "margin"], rows)


COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
WIDTH, LEFT, RIGHT, ROW = 860, 330, 30, 15


def picture(question, groups):
    """Draws the relative effects of all groups, on a scale of ratios."""
    lines = {line["id"]: line for line in question["line"]}
    names = [one["name"] for one in question["variant"]][1:]
    rows, bounds = [], [0.8, 1.25]
    for group in question["group"]:
        together = groups[group["name"]]["together"]
        for key in next(iter(together.values())):
            if lines[key]["form"] != "ratio":
                continue
            ones = [(names.index(name), found[key]) for name, found in together.items() if found[key]]
            if ones:
                rows.append((group["title"], lines[key]["title"], ones))
                bounds += [1 + one[end] for _, one in ones for end in ("low", "high")]
    low, high = max(min(bounds), 0.2), min(max(bounds), 5)
    across = lambda x: LEFT + (WIDTH - LEFT - RIGHT) * math.log(
        min(max(x, low), high) / low) / math.log(high / low)
    body, y, last = [], 50, None
    for group, title, ones in rows:
        if group != last:
            y += 10
            body.append(f'<text x="8" y="{y + 5}" font-weight="bold">{group}</text>')
            y, last = y + 20, group
        body.append(f'<text x="{LEFT - 10}" y="{y + ROW * len(ones) / 2 + 1:.0f}" '
                    f'text-anchor="end">{title}</text>')
        for at, one in ones:
            ends = [across(1 + one[end]) for end in ("low", "high")]
            middle = across(1 + one["estimate"])
            body.append(f'<path d="M{ends[0]:.1f} {y}H{ends[1]:.1f}" stroke="{COLOURS[at]}" '
                        'stroke-width="2"/>')
            body.append(f'<circle cx="{middle:.1f}" cy="{y}" r="4" fill="{COLOURS[at]}"/>')
            y += ROW
        y += 6
    height = y + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>']
    x = 8
    for at, name in enumerate(names):
        out.append(f'<circle cx="{x + 5}" cy="18" r="5" fill="{COLOURS[at]}"/>')
        out.append(f'<text x="{x + 15}" y="22">{name}</text>')
        x += 30 + 7 * len(name)
    for tick in (0.2, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5):
        if low <= tick <= high:
            at, stroke = across(tick), "#888" if tick == 1 else "#ddd"
            out.append(f'<path d="M{at:.1f} 40V{height - 40}" stroke="{stroke}"/>')
            out.append(f'<text x="{at:.1f}" y="{height - 24}" text-anchor="middle">{tick:g}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{height - 6}" text-anchor="middle">'
               f'ratio to “{question["variant"][0]["name"]}”, with intervals of 95 %</text>')
    return "\n".join([*out, *body]) + "\n</svg>\n"


# ---- the command


def stored(question):
    file = FOLDER / f"{question['name']}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def write(question, data):
    texts = {
        FOLDER / f"{question['name']}.json": json.dumps(data, indent=1, ensure_ascii=False) + "\n",
        DOCS / f"bbr-{question['name']}.md": page(question, data["groups"], data.get("kernel")),
        DOCS / f"bbr-{question['name']}.svg": picture(question, data["groups"]),
    }
    for file, text in texts.items():
        file.write_text(text)


def check(runner, pool, question, count):
    """Fails if the pages are not those of the stored values, or if a case has other values now."""
    data = stored(question)
    made = page(question, data["groups"], data.get("kernel"))
    drawn = picture(question, data["groups"])
    for file, text in ((f"bbr-{question['name']}.md", made), (f"bbr-{question['name']}.svg", drawn)):
        if (DOCS / file).read_text() != text:
            sys.exit(f"{file} would change: run docs/bbr_questions.py")
    left = count
    for group in question["group"]:
        known = data["groups"][group["name"]]
        if [case["name"] for case in group["case"]] != list(known["cases"]):
            sys.exit(f"{question['name']}: other cases of {group['name']}: run docs/bbr_questions.py")
        cases = group["case"][:left]
        left -= len(cases)
        if cases:
            found = measure(runner, pool, question, group, cases, known["seeds"])
            again = summed(question, group, found)["cases"]
            for name, values in again.items():
                if values != known["cases"][name]:
                    sys.exit(f"{question['name']}: other values in {name}: run docs/bbr_questions.py")


def on_kernel(runner, pool, question, data):
    """Adds the runs over Linux's TCP."""
    lines = {line["id"]: line for line in question["line"]}
    groups = {}
    for group in question["group"]:
        cases = [case for case in group["case"] if "kernel" in case]
        if not cases:
            continue
        found = measure(runner, pool, question, group, cases, KERNEL_SEEDS)
        known = data["groups"][group["name"]]["cases"]
        groups[group["name"]] = {
            case: {
                name: {
                    key: {"kernel": mean(lines[key], given),
                          "sim": known[case][name][key]["mean"]}
                    for key, given in values.items() if mean(lines[key], given) is not None}
                for name, values in each.items()}
            for case, each in found.items()}
    return {"groups": groups}


def main():
    parser = argparse.ArgumentParser(description="Answers questions about the BBR draft.")
    parser.add_argument("--only", help="name of one question")
    parser.add_argument("--check", action="store_true", help="fail if a page would change")
    parser.add_argument("--cases", type=int, default=1, help="cases that --check runs again")
    parser.add_argument("--page", action="store_true", help="only make the pages of stored values")
    parser.add_argument("--on", default="sim", choices=["sim", "kernel"], help="where to run")
    parser.add_argument("--kept", help="folder of runs that the same build has made")
    parser.add_argument("--jobs", type=int, default=2, help="number of runs at a time")
    parser.add_argument("knee", nargs="?", default="knee", help="the program")
    options = parser.parse_args()
    runner = Runner(options.knee, options.on, options.kept)
    with ThreadPoolExecutor(1 if options.on == "kernel" else options.jobs) as pool:
        for question in load():
            if options.only not in (None, question["name"]):
                continue
            if options.check:
                check(runner, pool, question, options.cases)
                continue
            data = stored(question)
            if options.on == "kernel":
                data["kernel"] = on_kernel(runner, pool, question, data)
            elif not options.page:
                data["groups"] = answered(runner, pool, question)
            write(question, data)


if __name__ == "__main__":
    main()
