#!/usr/bin/env python3
"""Judges what Knee makes of a recorded page: load times on other paths than that of the recording.

    sudo python3 benches/har.py --knee target/release/knee FOLDER

Pages are drawn from --seed: a document, style sheets, scripts that compute and ask for more, images, with
sizes over three orders of magnitude and servers that take their time. Chromium loads each from a server of
its own over the emulator (`knee shell`): once on the path of the recording, which gives its HAR, and
--repeat times on each of the other paths. Knee predicts the load times on those from the HAR alone, in the
simulator. Printed are each page with both times; in the end the rank correlation (Spearman) and the median
error over all pages and paths. The goals are 0.85 and 20 %; Lantern's figures are 0.81 and 23 %.

The HAR is made from the events of Chromium's network as its developer tools make it (`HARLog.ts`). Needs
root, `chromium` and a host that is calm. FOLDER keeps what was measured: the same command goes on.
"""
import argparse
import json
import os
import random
import shutil
import socketserver
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from page import Browser  # noqa: E402

# Mbit/s, RTT in ms. The first one is that of the recording.
PATHS = {"cable": (20, 30), "dsl": (6, 50), "lte": (12, 90), "far": (40, 250)}
PORT = 8000
FLAGS = ["--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-dev-shm-usage", "--disable-quic"]
LOAD_S_MAX = 90


def drawn(seed, count):
    """Returns pages: lists of objects, the document first, each with the objects that it asks for."""
    rng = random.Random(seed)
    size = lambda median, sigma: min(int(median * rng.lognormvariate(0, sigma)) + 200, 2_000_000)

    def page():
        objects = []

        def add(kind, median, sigma, **more):
            wait_ms = rng.choice([0, 0, 0, rng.randint(5, 40)])
            objects.append({"kind": kind, "bytes": size(median, sigma), "wait_ms": wait_ms,
                            "asks": [], "compute_ms": 0, **more})
            return len(objects) - 1

        add("html", 18_000, 0.8)
        objects[0]["wait_ms"] = rng.randint(10, 200)
        for _ in range(rng.randint(0, 4)):
            style = add("css", 9_000, 1.0)
            objects[0]["asks"].append(style)
            for _ in range(rng.randint(0, 3)):
                objects[style]["asks"].append(add("png", 20_000, 1.2))
        for _ in range(rng.randint(1, 10)):
            script = add("js", 25_000, 1.3, compute_ms=rng.choice([0, 10, 40]))
            objects[0]["asks"].append(script)
            for _ in range(rng.choice([0, 0, 1, 3])):
                objects[script]["asks"].append(add(rng.choice(["png", "js"]), 20_000, 1.2))
        for _ in range(rng.randint(1, 25)):
            objects[0]["asks"].append(add("png", 25_000, 1.4))
        return objects

    return [page() for _ in range(count)]


def image(size):
    """Returns a PNG of one pixel with this many bytes: a browser stops to load what is no image."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    rest = chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
    return head + chunk(b"prVt", os.urandom(max(size - len(head) - len(rest) - 12, 0))) + rest


def content(page, number):
    """Returns the bytes of an object, which asks for others as a page does."""
    one = page[number]
    urls = [f"{asked}.{page[asked]['kind']}" for asked in one["asks"]]
    if one["kind"] == "html":
        line = {"css": '<link rel="stylesheet" href="{}">', "js": '<script defer src="{}"></script>',
                "png": '<img src="{}">'}
        head = [line[url.rsplit(".")[-1]].format(url) for url in urls if not url.endswith("png")]
        body = [line["png"].format(url) for url in urls if url.endswith("png")]
        boxes = "".join(f'<div class="b{number}">x</div>' for number in range(len(page)))
        text = "<!DOCTYPE html><html><head>" + "".join(head) + "</head><body>" + "".join(body) + boxes
        filler = "<!--{}-->"
    elif one["kind"] == "css":
        text = "".join(f".b{asked}{{background-image:url({url})}}\n"
                       for asked, url in zip(one["asks"], urls, strict=True))
        filler = "/*{}*/"
    elif one["kind"] == "js":
        text = f"{{const t=performance.now();while(performance.now()-t<{one['compute_ms']});}}\n"
        for url in urls:
            tag = "img" if url.endswith("png") else "script"
            text += f"{{const e=document.createElement('{tag}');e.src='{url}';document.body.append(e);}}\n"
        filler = "/*{}*/"
    else:
        return image(one["bytes"])
    rest = one["bytes"] - len(text) - len(filler) + 2
    return (text + filler.format("x" * rest) if rest > 0 else text).encode()


def serve(pages):
    """Serves the pages over HTTP/1.1: /PAGE/NUMBER.KIND."""
    types = {"html": "text/html", "css": "text/css", "js": "text/javascript", "png": "image/png"}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            try:
                page, name = self.path.strip("/").split("/")
                number, kind = name.split(".")
                one = pages[int(page)][int(number)]
            except (ValueError, IndexError):
                self.send_error(404)
                return
            body = content(pages[int(page)], int(number))
            time.sleep(one["wait_ms"] / 1000)
            self.send_response(200)
            self.send_header("Content-Type", types[kind])
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        allow_reuse_address, daemon_threads, request_queue_size = True, True, 128

    with Server(("", PORT), Handler) as server:
        print("ready", flush=True)
        server.serve_forever()


def har(events, load_s):
    """Makes a HAR from the events of the network, with the fields that DevTools writes."""
    entries, order = {}, []
    for event in events:
        values = event["params"]
        method, name = event["method"], values.get("requestId")
        if method == "Network.requestWillBeSent":
            entries[name] = {"request": values}
            order.append(name)
        elif method == "Network.responseReceived" and name in entries:
            entries[name]["response"] = values["response"]
        elif method == "Network.loadingFinished" and name in entries:
            entries[name]["end"] = values
    out, first = [], None
    for name in order:
        one = entries[name]
        if "response" not in one or "end" not in one:
            continue
        request, response, end = one["request"], one["response"], one["end"]
        wall, timing = request["wallTime"], response["timing"]
        first = wall if first is None else min(first, wall)
        between = lambda a, b: timing[b] - timing[a] if timing[a] >= 0 else -1
        begun = request["timestamp"]
        total = 1000 * (end["timestamp"] - begun)
        blocked = 1000 * (timing["requestTime"] - begun) + max(
            timing["sendStart"] if timing["connectStart"] < 0 else timing["connectStart"], 0)
        headers_end = 1000 * (timing["requestTime"] - begun) + timing["receiveHeadersEnd"]
        out.append({
            "_initiator": request["initiator"], "_resourceType": request["type"].lower(),
            "pageref": "page_1", "connection": response["connectionId"],
            "startedDateTime": datetime.fromtimestamp(wall, timezone.utc).isoformat().replace("+00:00", "Z"),
            "time": total,
            "request": {"method": "GET", "url": request["request"]["url"],
                        "httpVersion": response["protocol"]},
            "response": {"status": response["status"], "httpVersion": response["protocol"],
                         "redirectURL": "", "headersSize": -1, "bodySize": -1,
                         "content": {"size": -1, "mimeType": response["mimeType"]},
                         "_transferSize": end["encodedDataLength"]},
            "timings": {"blocked": blocked, "dns": -1, "ssl": between("sslStart", "sslEnd"),
                        "connect": between("connectStart", "connectEnd"),
                        "send": between("sendStart", "sendEnd"),
                        "wait": timing["receiveHeadersEnd"] - timing["sendEnd"],
                        "receive": total - headers_end}})
    page = {"startedDateTime": datetime.fromtimestamp(first, timezone.utc).isoformat().replace("+00:00", "Z"),
            "id": "page_1", "pageTimings": {"onLoad": 1000 * load_s}}
    creator = {"name": "benches/har.py", "version": "1"}
    return {"log": {"version": "1.2", "creator": creator, "pages": [page], "entries": out}}


def load(url):
    """Loads a page in a browser that has never loaded one; returns its load time, s, and its HAR."""
    profile = tempfile.mkdtemp(prefix="har-")
    program = shutil.which("chromium-headless-shell") or "chromium"
    browser = Browser(profile, program, FLAGS)
    try:
        for domain in ("Page", "Network", "Runtime"):
            browser.call(f"{domain}.enable")
        browser.call("Network.setCacheDisabled", cacheDisabled=True)
        answer = browser.call("Page.navigate", url=url)
        if "errorText" in answer:
            sys.exit(f"{url}: {answer['errorText']}")
        until = time.monotonic() + LOAD_S_MAX
        entry = "performance.getEntriesByType('navigation')[0]"
        while not browser.evaluate(f"location.href !== 'about:blank' && {entry}?.loadEventEnd > 0"):
            if time.monotonic() > until:
                sys.exit(f"{url}: not loaded after {LOAD_S_MAX} s")
            time.sleep(0.05)
        load_s = browser.evaluate(f"({entry}.loadEventStart - {entry}.fetchStart) / 1000")
        events = [event for event in browser.events if event["method"].startswith("Network.")]
        return load_s, har(events, load_s)
    finally:
        browser.close()
        shutil.rmtree(profile, ignore_errors=True)


def drive(folder, path, pages, repeat):
    """Loads what has not been loaded yet over the path around, and keeps it."""
    for number in range(pages):
        for turn in range(repeat):
            kept = folder / f"{path}-{number}-{turn}.json"
            if not kept.exists():
                load_s, recorded = load(f"http://sender.knee:{PORT}/{number}/0.html")
                (folder / f"{path}-{number}.har").write_text(json.dumps(recorded))
                kept.write_text(json.dumps(load_s))


def links(path):
    rate, rtt = PATHS[path]
    return f"""duration = "120 s"
[link.down]
rate = "{rate} Mbit/s"
delay = "{rtt / 2} ms"
buffer = "{max(round(rate * rtt / 12), 50)} packets"
[path.main]
forward = ["down"]
reverse_delay = "{rtt / 2} ms"
"""


def measure(knee, folder, path, pages, repeat):
    """Loads all pages over a path."""
    scenario, out = folder / f"{path}.toml", folder / f"shell-{path}"
    scenario.write_text(links(path) + '[[flow]]\ncc = "cubic"\n')
    own = [sys.executable, str(Path(__file__).resolve())]
    server = subprocess.Popen(
        [knee, "shell", scenario, "--out", out, "--force", "--at", "sender", "--", *own, "--serve",
         str(folder)], stdout=subprocess.PIPE, text=True)
    try:
        if "ready" not in server.stdout.readline():
            sys.exit("the server did not start")
        subprocess.run([knee, "shell", "--join", out, "--at", "receiver", "--", *own, "--drive", path,
                        "--pages", str(pages), "--repeat", str(repeat), str(folder)], check=True)
    finally:
        server.terminate()
        server.wait()


def predict(knee, folder, path, number):
    """Returns the load time that Knee predicts over a path from the recording, s."""
    name = f"predicted-{path}-{number}"
    scenario = folder / f"{name}.toml"
    page = f'workload = {{ page = {{ objects = "cable-{number}.har" }} }}\n'
    scenario.write_text(links(path) + f'[[flow]]\nname = "page"\ncc = "cubic"\n{page}')
    subprocess.run([knee, "run", scenario, "--out", folder / name, "--force"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    summary = json.loads((folder / name / "summary.json").read_text())
    return summary["flows"][0]["page"]["load_us"] / 1e6


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    place = [0] * len(values)
    for rank, index in enumerate(order):
        place[index] = rank
    return place


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--knee", default="target/release/knee")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder = options.folder
    if options.serve:
        return serve(json.loads((folder / "pages.json").read_text()))
    if options.drive:
        return drive(folder, options.drive, options.pages, options.repeat)
    folder.mkdir(parents=True, exist_ok=True)
    pages = drawn(options.seed, options.pages)
    (folder / "pages.json").write_text(json.dumps(pages))
    knee = str(Path(options.knee).resolve())
    recording, *others = PATHS
    for path in PATHS:
        repeat = 1 if path == recording else options.repeat
        measure(knee, folder, path, len(pages), repeat)
        print(f"{path}: {len(pages)} pages loaded", file=sys.stderr)
    rows = []
    for path in PATHS:
        for number, page in enumerate(pages):
            repeat = range(1 if path == recording else options.repeat)
            kept = [json.loads((folder / f"{path}-{number}-{turn}.json").read_text()) for turn in repeat]
            real, predicted = statistics.median(kept), predict(knee, folder, path, number)
            rows.append((path, real, predicted))
            print(f"{path:6} page {number:2} {len(page):3} objects  {real:7.3f} s  "
                  f"predicted {predicted:7.3f} s  {100 * (predicted / real - 1):+6.1f} %")
    for path in [*PATHS, "others"]:
        some = [row for row in rows if row[0] == path or path == "others" and row[0] != recording]
        real, predicted = [row[1] for row in some], [row[2] for row in some]
        correlation = statistics.correlation(ranks(real), ranks(predicted))
        errors = [abs(b / a - 1) for a, b in zip(real, predicted, strict=True)]
        error = statistics.median(errors)
        print(f"{path:6} rank correlation {correlation:.3f}, median error {100 * error:.1f} %")
        reached = correlation >= 0.85 and error <= 0.2
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
