#!/usr/bin/env python3
"""Pages in a real Chromium, videos in a real dash.js and files, over `knee bond` between two
network namespaces with the emulator between them, beside the simulator.

    python3 benches/browser --knee target/release/knee --quick

Run it as root on a quiet host. It needs Debian's chromium-headless-shell (or chromium), ffmpeg,
openssl, npm and iproute2; the web server and dash.js come from PyPI and npm into --parts at the
first run. README.md in this folder says what is measured and how to read the table.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from subprocess import DEVNULL, run

sys.path.insert(0, str(Path(__file__).resolve().parent))
import cells  # noqa: E402
import measures  # noqa: E402
from parts import HERE, ROOT, Parts, between, require  # noqa: E402

# An invalid run is repeated this often.
REPEATS = 1
# Measures of which more is better.
RISING = ("video_bitrate", "goodput")
VALUES = {"page": measures.page, "video": measures.video, "file": measures.file,
          "joining": measures.joining}


class Bench:
    def __init__(self, knee, parts_folder, groups):
        require("cargo", "openssl", "ip", "npm")
        self.knee = knee
        self.between = between()
        self.parts = Parts(parts_folder, self.between)
        kinds = {group[0].kind for group, _ in groups}
        if kinds & {"page", "video"}:
            self.require_browser()
        if "video" in kinds:
            require("ffmpeg")
            self.parts.player()
            for group, _ in groups:
                if group[0].kind == "video":
                    self.parts.video(group[0].ladder, int(group[0].seconds))

    @staticmethod
    def require_browser():
        try:
            require("chromium-headless-shell")
        except SystemExit:
            require("chromium")

    def drive(self, cell, folder):
        """The command line of the program on the client's host."""
        plain, tls = f"http://{cells.ADDRESS}:8080", f"https://{cells.ADDRESS}:8443"
        if cell.kind == "page":
            start = plain if cell.protocol == "http/1.1" else tls
            what = ["open", f"{start}/page/index.html", str(cell.limit)]
        elif cell.kind == "video":
            path = self.parts.video(cell.ladder, int(cell.seconds))
            settings = json.dumps(cells.SETTINGS[cell.settings], separators=(",", ":"))
            query = f"video={path}&settings={settings}".replace('"', "%22")
            what = ["open", f"{plain}/static/player.html?{query}", str(cell.limit)]
        elif cell.kind == "file":
            what = ["file", f"{plain}/file/{cell.size}"]
        else:
            what = ["join", f"{plain}/file/{cell.size}", str(cell.seconds), str(cell.links)]
        return [sys.executable, str(HERE / "drive.py"), str(folder), *what]

    def once(self, cell):
        """Runs a cell between namespaces; returns values, times of objects, verdict and reasons."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
            folder = Path(name)
            for file in ("page.csv", "certificate.pem", "key.pem", "static"):
                (folder / file).symlink_to(self.parts.folder.resolve() / file)
            (folder / "links.toml").write_text(cell.links_toml())
            serve = [str(self.parts.python), str(HERE / "server.py"), name, cells.ADDRESS]
            plan = {"links": cell.links, "present": cell.present, "controller": cells.CONTROLLER,
                    "scheduler": cell.scheduler, "serve": serve, "drive": self.drive(cell, folder)}
            (folder / "plan.json").write_text(json.dumps(plan))
            done = run([self.between, name], stdin=DEVNULL)
            outcome = measures.read(folder / "between.json")
            if done.returncode == 3:
                sys.exit(3)
            if outcome is None:
                return {}, {}, "invalid", ["the run ended early, see above"]
            result = measures.read(folder / "result.json")
            verdict, why = measures.verdict(cell, result, outcome)
            values, times = ({}, {})
            if result and result["results"]:
                values, times = VALUES[cell.kind](result["results"], cell)
            return values, times, verdict, why

    def simulate(self, cell):
        with tempfile.TemporaryDirectory() as name:
            scenario = Path(name) / "cell.toml"
            scenario.write_text(cell.scenario())
            return measures.simulated(self.knee, scenario, Path(name), cell)

    def group(self, group, rounds):
        """Runs the cells of a group, interleaved, and prints their rows."""
        runs = {cell: [] for cell in group}
        for number in range(rounds):
            # Another one begins each round, so that none always follows the same one.
            start = number % len(group)
            for cell in group[start:] + group[:start]:
                for _ in range(1 + REPEATS):
                    done = self.once(cell)
                    if done[2] != "invalid":
                        break
                runs[cell].append(done)
        print(f"\n{group[0].name}", flush=True)
        base = self.rows(group[0], runs[group[0]], None)
        for cell in group[1:]:
            self.rows(cell, runs[cell], base)
        return [done[2] for one in runs.values() for done in one]

    def rows(self, cell, runs, base):
        """Prints a cell's rows, and returns its medians and the median times of its objects."""
        usable = [done for done in runs if done[2] != "invalid"] or runs
        expected = self.simulate(cell)
        medians, label = {}, cell.label
        for measure, value in expected.items():
            values = [done[0][measure] for done in usable if measure in done[0]]
            spread, off, beside = "no value", "", ""
            if values:
                medians[measure] = statistics.median(values)
                spread = f"{medians[measure]:.3f} ({min(values):.3f} to {max(values):.3f})"
                off = ratio(medians[measure], value)
                beside = ratio(medians[measure], base[0].get(measure)) if base else ""
            print(f"  {label:<18} {measure:<20} {spread:<27} {value:>9.3f} {off:>10} {beside:>10}",
                  flush=True)
            label = ""
        times = object_medians(usable)
        if base and times and base[1]:
            share = f"{measures.earlier(times, base[1]):.0%}"
            print(f"  {'':<18} {'objects that came earlier than with the first':<69} {share:>10}")
        tell(runs)
        return medians, times


def ratio(value, other):
    if not other:
        return "" if value == other or other is None else "from 0"
    return f"{value / other - 1:+.1%}"


def object_medians(runs):
    names = set().union(*(done[1] for done in runs))
    return {name: statistics.median(done[1][name] for done in runs if name in done[1])
            for name in names}


def tell(runs):
    """Prints how many runs are valid, and why others are not."""
    counts = {rank: sum(done[2] == rank for done in runs) for rank in measures.RANKS}
    words = ", ".join(f"{count} {rank}" for rank, count in counts.items() if count)
    reasons = list(dict.fromkeys(why for done in runs for why in done[3]))
    print(f"  {'':<18} verdict: {words}{': ' if reasons else ''}{'; '.join(reasons)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--knee", type=Path, default=ROOT / "target/release/knee",
                        help="the program, for the simulator (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two schedulers, a few minutes")
    parser.add_argument("--only", default="", help="groups whose name contains this")
    parser.add_argument("--schedulers", default=",".join(cells.SCHEDULERS),
                        help="those of the whole run, the first of which the others are compared "
                             "with (default: %(default)s)")
    parser.add_argument("--rounds", type=int, help="runs of each cell, instead of the plan's")
    parser.add_argument("--parts", type=Path, default=ROOT / "target/browser",
                        help="folder for web server, player and videos (default: %(default)s)")
    options = parser.parse_args()
    if not options.knee.exists():
        parser.error(f"{options.knee} does not exist: cargo build --release, or name it: --knee")
    groups = cells.quick() if options.quick else cells.whole(options.schedulers.split(","))
    groups = [(group, options.rounds or rounds) for group, rounds in groups
              if options.only in group[0].name]
    if not groups:
        parser.error(f"no group's name contains \"{options.only}\"")
    bench = Bench(options.knee.resolve(), options.parts, groups)
    began = time.monotonic()
    print(f"  {'scheduler':<18} {'measure':<20} {'real: median (range)':<27} {'simulated':>9} "
          f"{'off by':>10} {'to first':>10}")
    verdicts = [verdict for group, rounds in groups for verdict in bench.group(group, rounds)]
    counts = {rank: verdicts.count(rank) for rank in measures.RANKS}
    words = ", ".join(f"{count} {rank}" for rank, count in counts.items())
    print(f"\n{len(verdicts)} runs in {time.monotonic() - began:.0f} s: {words}")
    # Nothing is shown by a run of which nothing can be used.
    return 1 if counts["invalid"] == len(verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
