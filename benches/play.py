#!/usr/bin/env python3
"""`knee play` in headless Chromium: how soon a moved slider is drawn, and that the page works.

Moves sliders as a person does, over one flow for 20 s at 100 Mbit/s, and prints the time from the
move to the frame that shows its result, the frames while a slider is moved without a pause, and
what the host did beside. Fails if the page writes to the console, asks another host, is wider than
a phone, cannot be used with the keyboard, shows a result of other positions than the last, or hands
over a file that `knee run` refuses or measures differently. Times are printed next to their goals,
100 ms and 60 frames a second, and decide nothing, because they depend on the machine.

    benches/play.py KNEE [--quick] [--screenshots FOLDER]
"""

import argparse
import base64
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from page import Browser

DRAWN_MS_AIM, FRAMES_AIM = 100, 60
PHONE = (375, 667)
DESKTOP = (1280, 900)

# The positions of all sliders that are shown, as the page asks for them.
WANTED = """
() => ["a", "b"].filter((side) => side === "a" || document.getElementById("compare").checked)
  .map((side) => `${side}=` + [...document.querySelectorAll(`#side-${side} :is(input, select)`)]
    .map((one) => one.value).join(",")).join("&")
"""

# Moves a slider, and resolves with the time until the frame that shows its result has been painted.
# At rest the result is the whole run, which is what `complete` says.
MOVE = """
async (name, value) => {
  const slider = document.getElementById(name), results = document.getElementById("results");
  const began = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const wanted = (WANTED)();
  const drawn = () => results.dataset.of === wanted;
  await new Promise((done) => {
    if (drawn()) return done();
    const watcher = new MutationObserver(() => drawn() && (watcher.disconnect(), done()));
    watcher.observe(results, { attributes: true });
  });
  const complete = results.dataset.complete === "true";
  await new Promise((done) => requestAnimationFrame(() => {
    const after = new MessageChannel();
    after.port1.onmessage = done;
    after.port2.postMessage(0);
  }));
  return [performance.now() - began, complete];
}
""".replace("WANTED", WANTED)

# Moves a slider by a step in each frame, and returns the times between frames and the results shown.
SWEEP = """
async (name, frames) => {
  const slider = document.getElementById(name), results = document.getElementById("results");
  const first = Number(slider.value), gaps = [], moves = 24;
  let shown = 0;
  const watcher = new MutationObserver(() => (shown += 1));
  watcher.observe(results, { attributes: true, attributeFilter: ["data-of"] });
  let before = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < frames; frame++) {
    const at = frame % (2 * moves);
    slider.value = first + Math.round((at < moves ? at : 2 * moves - at) / 4) - 3;
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - before);
    before = now;
  }
  watcher.disconnect();
  slider.value = first;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  return [gaps, shown];
}
"""

# Resolves with the sentence of the result once the whole run of the last positions is shown.
SETTLED = """new Promise((done) => { const wait = setInterval(() => {
  const results = document.getElementById("results");
  if (results.dataset.of === (WANTED)() && results.dataset.complete === "true") {
    clearInterval(wait); done(document.getElementById("state").textContent); } }, 20); })"""
SETTLED = SETTLED.replace("WANTED", WANTED)


def processors():
    """Returns the processor time of the host so far, idle and in all, seconds."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return fields[3] / 100, sum(fields) / 100


def spread(values):
    values = sorted(values)
    high = values[min(len(values) - 1, int(0.95 * len(values)))]
    return f"median {statistics.median(values):.1f}, 95 % {high:.1f}, largest {values[-1]:.1f}"


class Page:
    """The page in a browser."""

    def __init__(self, address, profile):
        self.address = address
        self.browser = Browser(profile)
        for domain in ("Runtime", "Log", "Page"):
            self.browser.call(f"{domain}.enable")
        self.size(*DESKTOP)
        self.browser.call("Page.navigate", url=address)
        while self.browser.evaluate("document.getElementById('results') === null"):
            time.sleep(0.02)
        self.settled()

    def size(self, width, height):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                          deviceScaleFactor=1, mobile=False)

    def settled(self):
        return self.browser.evaluate(SETTLED)

    def move(self, name, value):
        return self.browser.evaluate(f"({MOVE})({json.dumps(name)}, {value})")

    def compare(self, both):
        now = self.browser.evaluate("document.getElementById('compare').checked")
        if now != both:
            self.browser.evaluate("document.getElementById('compare').click()")
            self.settled()

    def key(self, name, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                              windowsVirtualKeyCode=code)

    def picture(self, file):
        shot = self.browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)
        Path(file).write_bytes(base64.b64decode(shot["data"]))

    def wrong(self):
        """Returns what the page wrote to the console, and whom else it asked."""
        wrong = []
        for event in self.browser.events:
            values = event["params"]
            if event["method"] == "Log.entryAdded":
                wrong.append(values["entry"]["text"])
            elif event["method"] == "Runtime.exceptionThrown":
                wrong.append(values["exceptionDetails"]["text"])
            elif event["method"] == "Runtime.consoleAPICalled":
                wrong.append(json.dumps(values["args"]))
        names = self.browser.evaluate(
            "performance.getEntriesByType('resource').map((one) => one.name)")
        return wrong + [name for name in names if not name.startswith(self.address)]


def times(page, rounds):
    """Measures moves that keep one flow for 20 s at 100 Mbit/s, and frames."""
    for both in (False, True):
        page.compare(both)
        words = "A and B" if both else "one flow, 20 s, 100 Mbit/s"
        idle, whole = processors()
        for name in ("a-buffer", "a-rtt", "a-loss"):
            first = int(page.browser.evaluate(f"Number(document.getElementById('{name}').value)"))
            moves = [page.move(name, first + 1 + number % 4) for number in range(rounds)]
            page.move(name, first)
            page.settled()
            complete = sum(complete for _, complete in moves)
            print(f"{words}, {name[2:]}: {spread([ms for ms, _ in moves])} ms from the move to the "
                  f"frame, the whole run in {complete} of {rounds} (the aim is {DRAWN_MS_AIM} ms)")
        gaps, shown = page.browser.evaluate(f"({SWEEP})('a-rtt', {20 * rounds})")
        page.settled()
        rate = 1e3 * len(gaps) / sum(gaps)
        print(f"{words}, moved in each frame: {rate:.1f} frames a second, {spread(gaps)} ms apart, "
              f"{shown} results (the aim is {FRAMES_AIM})")
        free, all_ = processors()
        print(f"{words}: processors idle {100 * (free - idle) / (all_ - whole):.0f} % of the time, "
              f"load {Path('/proc/loadavg').read_text().split()[0]}")


def checks(page, knee, scratch):
    """Returns what does not work."""
    failed = []
    for width, height in (PHONE, DESKTOP):
        page.size(width, height)
        time.sleep(0.1)
        wide = page.browser.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            failed.append(f"the page is {wide} pixels wide on a screen of {width}")
    # The keyboard: from the checkbox to the first slider of A, and one step up.
    page.browser.evaluate("document.getElementById('a-rate').focus()")
    before = page.browser.evaluate("document.getElementById('results').dataset.of")
    page.key("ArrowRight", 39)
    page.settled()
    moved = page.browser.evaluate("document.getElementById('results').dataset.of")
    if moved == before or page.browser.evaluate("document.activeElement.id") != "a-rate":
        failed.append("an arrow key does not move a slider, or it loses the focus")
    reached = set()
    page.browser.evaluate("document.getElementById('compare').focus()")
    for _ in range(40):
        page.key("Tab", 9)
        reached.add(page.browser.evaluate("document.activeElement.id"))
    wanted = {f"{side}-{name}" for side in "ab" for name in ("rate", "rtt", "buffer", "loss", "flows",
                                                             "cc", "file")}
    if wanted - reached:
        failed.append(f"the Tab key does not reach {sorted(wanted - reached)}")
    # What is handed over runs, and comes to the figures that are shown.
    says = page.settled()
    text = page.browser.evaluate(
        "fetch(document.getElementById('b-file').href).then((answer) => answer.text())")
    if text != page.browser.evaluate("document.querySelector('#text-b pre').textContent"):
        failed.append("the file below the charts is not the one that is handed over")
    file = Path(scratch) / "play-b.toml"
    file.write_text(text)
    run = subprocess.run([knee, "run", file, "--json", "--out", f"{scratch}/run"],
                         capture_output=True, text=True)
    if run.returncode != 0:
        return [*failed, f"knee run refuses the file: {run.stderr}"]
    goodput = json.loads(run.stdout)["measures"]["goodput_bps"] / 1e6
    shown = float(re.search(r"B: ([0-9.]+).Mbit/s", says)[1])
    if abs(shown / goodput - 1) > 0.01:
        failed.append(f"the page shows {shown} Mbit/s, the file comes to {goodput:.2f}")
    return failed


def pictures(page, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        page.browser.call("Emulation.setEmulatedMedia",
                          features=[{"name": "prefers-color-scheme", "value": scheme}])
        for name, (width, height) in (("desktop", (1280, 1400)), ("phone", PHONE)):
            page.size(width, height)
            page.browser.evaluate("scrollTo(0, 0)")
            time.sleep(0.3)
            page.picture(folder / f"{name}-{scheme}.png")
        page.browser.evaluate("scrollTo(0, 420)")
        time.sleep(0.3)
        page.picture(folder / f"phone-{scheme}-below.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("knee", type=Path)
    parser.add_argument("--quick", action="store_true", help="only whether the page works")
    parser.add_argument("--screenshots", type=Path)
    arguments = parser.parse_args()
    knee = str(arguments.knee.resolve())
    environment = dict(os.environ, LC_ALL="C")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        play = subprocess.Popen([knee, "play", "--page", "127.0.0.1:0"], stderr=subprocess.PIPE,
                                stdout=subprocess.DEVNULL, text=True, env=environment)
        try:
            address = re.search(r"http://\S+", play.stderr.readline())[0]
            page = Page(address, f"{scratch}/browser")
            if not arguments.quick:
                times(page, 15)
            page.compare(True)
            failed = checks(page, knee, scratch)
            failed += page.wrong()
            if arguments.screenshots:
                pictures(page, arguments.screenshots)
            page.browser.close()
        finally:
            play.terminate()
            play.wait()
    if failed:
        raise SystemExit("\n".join(failed))
    print("knee play works in a browser: phone, keyboard, its file")


if __name__ == "__main__":
    main()
