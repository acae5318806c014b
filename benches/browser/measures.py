"""Measures of a run between namespaces, and the same ones of the simulator. Times are in seconds,
rates in Mbit/s, under the names of docs/measures.md."""

import json
import math
from pathlib import Path

from parts import LADDERS, SEGMENT_S, run

# An object came earlier only if it did by more than this part of the other's time.
EARLIER = 0.05
SLIP_MAX_S = 0.3
DROPPED_MAX = 0.01
# With less processor time left, the browser itself may be what waits.
BUSY_MAX = 0.9
RANKS = ["valid", "degraded", "invalid"]


def percentile(values, part):
    """Returns the smallest value that at least this part of the values do not exceed."""
    values = sorted(values)
    return values[max(math.ceil(part * len(values)) - 1, 0)]


def page(results, _cell):
    times = {one["name"]: one["ms"] / 1e3 for one in results}
    return {"page_load_time": max(times.values()),
            "object_time p50": percentile(times.values(), 0.5),
            "object_time p95": percentile(times.values(), 0.95)}, times


def video(results, cell):
    # A segment fetched again in another quality replaces the one before.
    kept = {one["number"]: one["quality"] for one in results["segments"]}
    qualities = [kept[number] for number in sorted(kept)]
    rates = [LADDERS[cell.ladder][quality] / 1e6 for quality in qualities]
    changes = sum(one != other for one, other in zip(qualities, qualities[1:], strict=False))
    return {"video_bitrate": sum(rates) / max(len(rates), 1),
            "video_startup_time": results.get("startup", math.inf),
            "video_stall_time": results["stalled"],
            "video_switches": changes}, {}


def file(results, _cell):
    return {"completion_time": results["seconds"]}, {}


def joining(results, _cell):
    return {f"goodput, {count + 1} up": rate / 1e6
            for count, rate in enumerate(results["rates"])}, {}


def simulated(knee, scenario, folder, cell):
    """Returns the simulator's values for the measures of a cell."""
    def summary(**keys):
        sets = [word for key, value in keys.items() for word in ("--set", f"{key}={value}")]
        out = folder / "simulated"
        run(knee, "run", scenario, "--no-alternatives", "--force", "--out", out, *sets)
        return json.loads((out / "summary.json").read_text())["flows"][0]

    if cell.kind == "joining":
        # The measures of a run cover warm-up to end, so each part is the end of a shorter run.
        part = cell.seconds / cell.links
        flows = [summary(duration=f"'{part * (n + 1):g} s'", warmup=f"'{part * (n + 0.5):g} s'")
                 for n in range(cell.links)]
        return {f"goodput, {n + 1} up": flow["goodput_bps"] / 1e6 for n, flow in enumerate(flows)}
    flow = summary()
    if cell.kind == "file":
        return {"completion_time": flow["completion_us"] / 1e6}
    if cell.kind == "page":
        objects = flow["page"]["object_us"]
        return {"page_load_time": flow["page"]["load_us"] / 1e6,
                "object_time p50": objects["p50"] / 1e6, "object_time p95": objects["p95"] / 1e6}
    played = flow["video"]
    return {"video_bitrate": played["bitrate_bps"] / 1e6,
            "video_startup_time": played["startup_us"] / 1e6,
            "video_stall_time": played["stall_us"] / 1e6,
            "video_switches": played["switches"]}


def verdict(cell, done, between):
    """Returns whether a run's values can be used, and the reasons why not."""
    emulator = between["emulator"]
    found = [(emulator["verdict"], emulator["reason"])]
    if done is None or not between.get("succeeded"):
        return "invalid", ["the program on the client's host failed"]
    invalid = list(dict.fromkeys(done["problems"]))
    if done["foreign"] is None:
        invalid.append("the browser left no log of its connections")
    elif done["foreign"]:
        invalid.append(f"the browser also connected to {', '.join(done['foreign'])}")
    if cell.kind == "page":
        invalid += of_page(done["results"], cell)
    if cell.kind == "video":
        invalid += of_video(done["results"], cell)
    found += [("invalid", why) for why in invalid]
    if done["busy"] > BUSY_MAX:
        found.append(("degraded", f"processors were busy for {done['busy']:.0%} of the time"))
    worst = max((one for one, _ in found), key=RANKS.index)
    return worst, [why for _, why in found if why]


def of_page(results, cell):
    count = len({one["name"] for one in results})
    if count != cell.objects:
        yield f"{count} of {cell.objects} objects came"
    wrong = sorted({one["status"] for one in results} - {200})
    if wrong:
        yield f"answers with status {wrong}"
    others = sorted({one["protocol"] for one in results} - {cell.protocol})
    if others:
        yield f"{', '.join(others)} instead of {cell.protocol}"


def of_video(results, cell):
    yield from results["errors"]
    if "ended" not in results or "startup" not in results:
        yield f"the video was not over after {cell.limit} s"
        return
    slip = results["ended"] - results["startup"] - results["duration"] - results["stalled"]
    if abs(slip) > SLIP_MAX_S:
        yield f"the media's clock slipped by {slip:.2f} s"
    dropped = results["dropped"] / max(results["frames"], 1)
    if dropped > DROPPED_MAX:
        yield f"{dropped:.1%} of the frames were dropped"
    whole = -(-int(cell.seconds) // SEGMENT_S)
    if len({one["number"] for one in results["segments"]}) != whole:
        yield f"not all {whole} segments came"


def earlier(these, those):
    """Returns the share of objects that came earlier here than there, beyond the margin."""
    shared = [name for name in these if name in those]
    count = sum(these[name] < those[name] * (1 - EARLIER) for name in shared)
    return count / max(len(shared), 1)


def read(path):
    return json.loads(Path(path).read_text()) if Path(path).exists() else None
