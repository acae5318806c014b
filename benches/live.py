#!/usr/bin/env python3
"""The live page of `knee observe` with 50 groups and an hour of minutes, in headless Chromium.

Writes an hour of minutes as an observer would, starts an observer in that folder, opens and
closes connections of all groups over loopback, and prints the page's bytes, the time to its
first paint, how often and how fast it is updated, the memory and the processor time of the
observer with no page open, one and nine, and the page's width on a phone. Fails if a page
writes to the console, is wider than the phone or loads anything from another host, or if
memory grows by more than a tenth between the halves of the time. Times are printed next to
their goals, and decide nothing. Needs pyarrow, and a knee built with --features live.

With `--speed N` the observer's clocks run N times as fast (libfaketime, the package
faketime), so that an hour of minutes passes in an Nth of an hour; its processor time then is
not that of a host.

    benches/live.py KNEE [--seconds S] [--speed N] [--screenshots FOLDER]
"""

import argparse
import base64
import math
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
from page import Browser

GROUPS, MINUTES, RATE = 50, 60, 200
CLASSES = {"under 100 kB": 2e4, "100 kB to 1 MB": 3e5, "1 to 3 MB": 2e6, "3 to 30 MB": 8e6,
           "30 MB and more": 6e7}
CONTROLLERS = ["bbr", "cubic", ""]
FIRST_PAINT_MS_AIM = 1000


def sketch(draw, middle, count):
    """Returns `count` values around `middle` as an observer writes a distribution."""
    buckets = {}
    for _ in range(count):
        bucket = math.floor(16 * math.log2(middle * draw.lognormvariate(0, 0.7)))
        buckets[bucket] = buckets.get(bucket, 0) + 1
    return " ".join(f"{bucket}:{buckets[bucket]}" for bucket in sorted(buckets))


def minutes(folder):
    """Writes an hour of all groups, classes and controllers, up to the last whole minute."""
    draw, rows = random.Random(1), []
    now = int(time.time()) // 60 * 60
    begun = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now - 60 * MINUTES))
    path = folder / f"minutes-{begun}.000Z.parquet"
    for minute in range(now - 60 * MINUTES, now, 60):
        for group in range(GROUPS):
            for name, size in CLASSES.items():
                for cc in CONTROLLERS:
                    count = draw.randint(5, 40)
                    rate = 2e7 * draw.lognormvariate(0, 0.3)
                    acked = int(size * count)
                    busy_s = 8 * size / rate
                    rows.append({
                        "minute_unix_ns": minute * 10**9, "group": f"group-{group:02}",
                        "class": name, "cc": cc or None, "arm": None, "connections": count,
                        "lost_reports": 0, "acked_bytes": acked, "sent_bytes": acked + acked // 99,
                        "retransmitted_bytes": acked // 99, "timeouts": draw.randint(0, 1),
                        "busy_ns": int(1e9 * busy_s * count), "receive_limited_ns": 0,
                        "send_buffer_limited_ns": 0,
                        "throughput_bps_sketch": sketch(draw, rate, count),
                        "busy_us_sketch": sketch(draw, 1e6 * busy_s, count),
                        "rtt_min_us_sketch": sketch(draw, 3e4, count),
                    })
    texts = {"group", "class", "cc", "arm"}
    schema = pyarrow.schema(
        [pyarrow.field(name, pyarrow.string() if name in texts or name.endswith("_sketch")
                       else pyarrow.int64(), nullable=name in texts or name.endswith("_sketch"))
         for name in rows[0]],
        metadata={"knee.schema": "knee-minutes/1"})
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), path,
                                compression="snappy")
    return len(rows)


def traffic(ended):
    """Opens and closes connections over loopback, RATE per second, of one group after another."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    draw, turn = random.Random(2), 0
    while not ended.is_set():
        turn += 1
        client = (f"127.1.{turn % GROUPS}.1", 0)
        with socket.create_connection(listener.getsockname(), source_address=client) as near:
            with listener.accept()[0] as far:
                far.sendall(bytes(int(draw.lognormvariate(8, 1))))
            while near.recv(1 << 16):
                pass
        time.sleep(1 / RATE)


class Process:
    """The system's counters of a process."""

    def __init__(self, number):
        self.folder = Path(f"/proc/{number}")
        self.cpu = 0

    def memory_mb(self):
        return int((self.folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def cpu_s(self):
        """Returns the CPU time since the last call."""
        fields = (self.folder / "stat").read_text().rsplit(")", 1)[1].split()
        before, self.cpu = self.cpu, (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return self.cpu - before


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("knee", type=Path)
    parser.add_argument("--seconds", type=float, default=20, help="with one page open")
    parser.add_argument("--speed", type=int, default=1, help="of the observer's clocks")
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "observed"
        folder.mkdir()
        print(f"{'rows of the hour':<34} {minutes(folder):>9}")
        command = [arguments.knee.resolve(), "observe", "--page=127.0.0.1:0", "--out", folder]
        for group in range(GROUPS):
            command += ["--group", f"group-{group:02}=127.1.{group}.0/24"]
        environment = dict(os.environ)
        if arguments.speed > 1:
            library = next(Path("/usr/lib").glob("**/faketime/libfaketimeMT.so.1"))
            environment |= {"LD_PRELOAD": str(library), "FAKETIME": f"+0 x{arguments.speed}"}
        observer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                    text=True, env=environment)
        ended = threading.Event()
        sender = threading.Thread(target=traffic, args=(ended,))
        try:
            lines = iter(observer.stderr.readline, "")
            said = []
            while "http://" not in (line := next(lines)):
                said.append(line)
            if any("Not shown on the page" in line for line in said):
                raise SystemExit("".join(said))
            address = line.split()[-1]
            sender.start()
            look(address, Process(observer.pid), arguments, scratch)
        finally:
            ended.set()
            observer.terminate()
            observer.wait()
        sender.join()


# Records when the page is updated, its requests, and the time an update takes.
WATCH = """
window.shown = [];
new MutationObserver(() => window.shown.push(performance.now()))
  .observe(document.getElementById("state"), { childList: true, characterData: true, subtree: true });
"""


def look(address, process, arguments, scratch):
    def alone(seconds):
        process.cpu_s()
        time.sleep(seconds)
        return 100 * process.cpu_s() / seconds

    print(f"{'nobody looks: processor':<34} {alone(5):>9.1f} %, memory {process.memory_mb():.0f} MB")
    browser = Browser(f"{scratch}/browser")
    browser.call("Runtime.enable")
    browser.call("Log.enable")
    browser.call("Page.enable")
    browser.call("Page.navigate", url=address)
    paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
    deadline = time.monotonic() + 20
    while not (first := browser.evaluate(paint)) and time.monotonic() < deadline:
        time.sleep(0.05)
    size = browser.evaluate("performance.getEntriesByType('navigation')[0].transferSize")
    waited = browser.evaluate("performance.getEntriesByType('navigation')[0].responseStart")
    print(f"{'page':<34} {size / 1e3:>9.0f} kB, answered after {waited:.0f} ms")
    print(f"{'first paint':<34} {first:>9.0f} ms, aim {FIRST_PAINT_MS_AIM} ms")
    browser.evaluate(WATCH)
    parts = 6
    used = [(alone(arguments.seconds / parts), process.memory_mb()) for _ in range(parts)]
    memory = [megabytes for _, megabytes in used]
    grown = memory[-1] / memory[parts // 2 - 1]
    shown = browser.evaluate("window.shown")
    print(f"{'one page: processor':<34} {sum(percent for percent, _ in used) / parts:>9.1f} %, "
          f"memory {', '.join(f'{each:.1f}' for each in memory)} MB, "
          f"{grown:.2f} times that of the middle")
    print(f"{f'renewed in {arguments.seconds * arguments.speed:g} s of its clock':<34} "
          f"{len(shown):>9} times")
    others = browser.evaluate(
        "performance.getEntriesByType('resource').map((one) => one.name)"
        f".filter((name) => !name.startsWith('{address}'))")
    state = browser.evaluate("document.getElementById('state').className")
    wide = {}
    for name, width in {"wide": 1280, "phone": 390}.items():
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                     deviceScaleFactor=1, mobile=name == "phone")
        time.sleep(0.5)
        wide[name] = browser.evaluate("document.documentElement.scrollWidth")
        if arguments.screenshots:
            arguments.screenshots.mkdir(exist_ok=True)
            for scheme in "light", "dark":
                browser.call("Emulation.setEmulatedMedia",
                             features=[{"name": "prefers-color-scheme", "value": scheme}])
                time.sleep(0.3)
                picture = browser.call("Page.captureScreenshot", format="png")["data"]
                (arguments.screenshots / f"live-{name}-{scheme}.png").write_bytes(
                    base64.b64decode(picture))
    print(f"{'width on a phone of 390':<34} {wide['phone']:>9}")
    more = [event_stream(address) for _ in range(8)]
    print(f"{'nine pages: processor':<34} {alone(6):>9.1f} %, memory {process.memory_mb():.0f} MB")
    for stream in more:
        stream.close()
    said = [event["params"] for event in browser.events
            if event["method"] in ("Log.entryAdded", "Runtime.consoleAPICalled",
                                   "Runtime.exceptionThrown")]
    browser.close()
    if others or state or said or not shown or wide["phone"] > 390 or grown > 1.1:
        raise SystemExit(f"from elsewhere: {others}; state: {state!r}; console: {said}; "
                         f"renewed {len(shown)}; width {wide}; memory {grown:.2f} times")


def event_stream(address):
    """Opens an event stream that is never read."""
    host, port = address.removeprefix("http://").split(":")
    stream = socket.create_connection((host, int(port)))
    stream.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return stream


main()
