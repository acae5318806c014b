"""Loads a page, a video or a file on the client's host, through the proxy of `knee bond`.

    drive.py FOLDER WHAT ARGUMENT…

writes result.json in FOLDER. WHAT is one of:

    open URL SECONDS                 Chromium opens a page, until its `finished` is true
    file URL                         one transfer
    join URL SECONDS                 one transfer, while a link joins after each part of the time
"""

import json
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from page import Browser  # noqa: E402

PROXY = ("127.0.0.1", 1080)
# A transfer from which nothing comes for so long has failed.
SILENCE_S = 30
FLAGS = ["--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--mute-audio",
         "--autoplay-policy=no-user-gesture-required", "--disable-dev-shm-usage",
         "--ignore-certificate-errors", f"--proxy-server=socks5://{PROXY[0]}:{PROXY[1]}",
         "--proxy-bypass-list=<-loopback>"]


def busy(before=None):
    """Returns the share of processor time used since `before`, or the counters."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    counters = [int(field) for field in fields]
    if before is None:
        return counters
    spent = [now - then for now, then in zip(counters, before, strict=True)]
    # Idle, and waiting for a disk.
    return 1 - (spent[3] + spent[4]) / max(sum(spent), 1)


def hosts(log, own):
    """Returns the hosts other than `own` to which the browser tried to connect; None if its log
    does not even have the connections to `own`."""
    try:
        events = json.loads(log.read_text())["events"]
    except (OSError, ValueError, KeyError):
        return None
    found = set()
    for event in events:
        values = event.get("params", {})
        for key in ("group_id", "destination", "host"):
            value = values.get(key)
            if isinstance(value, str) and value:
                name = value.rsplit("/", 1)[-1].split(" ")[0]
                name = urlsplit(f"//{name}").hostname
                if name:
                    found.add(name)
    return sorted(found - {own, PROXY[0]}) if own in found else None


def open_page(folder, url, seconds):
    program = shutil.which("chromium-headless-shell") or "chromium"
    log = folder / "net.json"
    browser = Browser(folder / "profile", program, [*FLAGS, f"--log-net-log={log}"])
    browser.call("Page.enable")
    browser.call("Log.enable")
    browser.call("Network.enable")
    browser.call("Runtime.enable")
    before = busy()
    answer = browser.call("Page.navigate", url=url)
    if "errorText" in answer:
        sys.exit(f"{url}: {answer['errorText']}")
    while browser.evaluate("location.href") == "about:blank":
        time.sleep(0.01)
    is_over = f"window.finished || performance.now() > {1000 * float(seconds)}"
    wait = f"""new Promise((done) => {{ const tick = setInterval(() => {{
        if ({is_over}) {{ clearInterval(tick); done(results()); }} }}, 100); }})"""
    results = browser.evaluate(wait)
    busy_share = busy(before)
    problems = []
    for event in browser.events:
        values = event["params"]
        if event["method"] == "Network.loadingFailed" and not values.get("canceled"):
            problems.append(values["errorText"])
        elif event["method"] == "Log.entryAdded" and values["entry"]["level"] == "error":
            problems.append(values["entry"]["text"])
        elif event["method"] == "Runtime.exceptionThrown":
            problems.append(values["exceptionDetails"]["text"])
    browser.session = None
    browser.call("Browser.close")
    browser.process.wait()
    return {"results": results, "busy": busy_share, "problems": problems,
            "program": program, "foreign": hosts(log, urlsplit(url).hostname)}


def request(url):
    """Asks for a file through the proxy, and returns the connection."""
    place = urlsplit(url)
    connection = socket.create_connection(PROXY, SILENCE_S)
    connection.sendall(bytes([5, 1, 0]))
    assert connection.recv(2) == bytes([5, 0]), "the proxy wants a login"
    address = socket.inet_aton(place.hostname) + (place.port or 80).to_bytes(2, "big")
    connection.sendall(bytes([5, 1, 0, 1]) + address)
    reply = b""
    while len(reply) < 10:
        reply += connection.recv(10 - len(reply))
    assert reply[1] == 0, f"the proxy refuses: {reply[1]}"
    head = f"GET {place.path} HTTP/1.1\r\nHost: {place.hostname}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode())
    return connection


def file(url):
    before, began = busy(), time.monotonic()
    connection = request(url)
    count, buffer = 0, bytearray(1 << 16)
    while got := connection.recv_into(buffer):
        count += got
    took = time.monotonic() - began
    size = int(url.rsplit("/", 1)[-1])
    problems = [] if count >= size else [f"{count} of {size} bytes came"]
    return {"results": {"seconds": took}, "busy": busy(before), "problems": problems,
            "foreign": []}


def join(url, seconds, links):
    """Returns the rate in the second half of each part of the time, bit/s. An interface joins when
    it gets its address."""
    seconds, links = float(seconds), int(links)
    part = seconds / links
    before, began = busy(), time.monotonic()
    connection = request(url)
    connection.settimeout(0.05)
    present, counts, buffer, problems = 1, [0] * links, bytearray(1 << 16), []
    while (now := time.monotonic() - began) < seconds:
        if present < links and now >= present * part:
            device = f"knee{present}"
            host = urlsplit(url).hostname
            subprocess.run(["ip", "address", "add", f"10.64.{present}.1/24", "dev", device],
                           check=True)
            subprocess.run(["ip", "route", "append", f"{host}/32", "dev", device, "metric",
                            str(present)], check=True)
            present += 1
        try:
            got = connection.recv_into(buffer)
        except TimeoutError:
            continue
        if got == 0:
            problems.append("the transfer ended early")
            break
        if now % part >= part / 2:
            counts[min(int(now / part), links - 1)] += got
    rates = [8 * count / (part / 2) for count in counts]
    return {"results": {"rates": rates}, "busy": busy(before), "problems": problems, "foreign": []}


def main():
    folder, what, *rest = Path(sys.argv[1]), *sys.argv[2:]
    done = {"open": lambda: open_page(folder, *rest), "file": lambda: file(*rest),
            "join": lambda: join(*rest)}[what]()
    (folder / "result.json").write_text(json.dumps(done))


if __name__ == "__main__":
    main()
