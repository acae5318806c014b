#!/usr/bin/env python3
"""Compares `knee report` on logs of real servers with what their client counted itself.

    tests/server_logs.py KNEE FOLDER

Starts nginx, HAProxy, Squid, Varnish and Caddy on loopback, each in front of an origin of its
own that waits before its first byte, fetches objects of several sizes through each, and stops
them. Then `knee report LOG --format json` has to have the same transfers, the same bytes by
size class, times within the span of the requests, and durations no shorter than the origin's
wait; a mix has to read the same log. The formats are those of docs/logs.md. FOLDER must
not exist.
"""

import http.server
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/logs.md"
SIZES = [700, 50_000, 700_000, 4_000_000] * 5 + [40_000_000]
WAIT_S = 0.15
PROGRAMS = ["nginx", "haproxy", "squid", "varnishd", "varnishncsa", "caddy"]
MIX = """
duration = "1 s"
[link.one]
rate = "10 Mbit/s"
delay = "5 ms"
buffer = "1 BDP"
[path.main]
forward = ["one"]
reverse_delay = "5 ms"
[[flow]]
name = "mix"
cc = "cubic"
workload = { mix = { arrival_interval = "100 ms", sizes = { log = "LOG" } } }
"""


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        size = int(self.path.strip("/").split("?")[0])
        time.sleep(WAIT_S)
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        while size > 0:
            part = min(size, 1 << 16)
            self.wfile.write(b"x" * part)
            size -= part

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A server that closes a connection which it kept for later is no error."""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def fetch(port, size, number):
    """Fetches an object; returns the bytes of the answer, and of its body. It closes the connection
    itself: HAProxy does not count the header that announces a close."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as one:
        one.sendall(f"GET /{size}?{number} HTTP/1.1\r\nHost: a.example\r\n\r\n".encode())
        answer, head = bytearray(), 0
        while head == 0 or len(answer) < head + size:
            part = one.recv(1 << 18)
            if not part:
                break
            answer += part
            head = head or answer.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in answer[:8192] else 0
    if not answer.startswith(b"HTTP/1.1 200") or len(answer) - head != size:
        sys.exit(f"port {port}: {bytes(answer[:200])!r}")
    return len(answer), len(answer) - head


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            sys.exit(f"{process.args[0]} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens at {port}")


def nginx(folder, port, origin):
    # The format of the page.
    block = re.search(r"```nginx \S+\n(.*?)```", PAGE.read_text(), re.S).group(1)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.err; events {{}}\n"
        f"http {{ {block} access_log {folder}/nginx.log knee; client_body_temp_path {folder}/b;\n"
        f"proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;\n"
        f"scgi_temp_path {folder}/s;\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{origin}; }} }} }}\n"
    )
    return [["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]], None, True


def haproxy(folder, port, origin):
    (folder / "haproxy.cfg").write_text(
        "global\n log stdout format raw local0\n"
        "defaults\n mode http\n log global\n option httplog\n timeout connect 5s\n"
        " timeout client 60s\n timeout server 60s\n"
        f"frontend web\n bind 127.0.0.1:{port}\n default_backend app\n"
        f"backend app\n server s1 127.0.0.1:{origin}\n"
    )
    return [["haproxy", "-db", "-f", str(folder / "haproxy.cfg")]], 0, True


def squid(folder, port, origin):
    shutil.chown(folder, "proxy", "proxy")
    (folder / "squid.conf").write_text(
        f"http_port 127.0.0.1:{port} accel defaultsite=a.example\n"
        f"cache_peer 127.0.0.1 parent {origin} 0 no-query originserver\n"
        "http_access allow all\ncache deny all\n"
        f"access_log stdio:{folder}/squid.log\ncache_log {folder}/cache.log\n"
        f"pid_filename none\ncoredump_dir {folder}\nvisible_hostname a.example\n"
        "shutdown_lifetime 1 second\n"
    )
    return [["squid", "-N", "-f", str(folder / "squid.conf")]], None, True


def varnish(folder, port, origin):
    form = re.search(r"varnishncsa -F '([^']*)'", PAGE.read_text()).group(1)
    name = str(folder / "work")
    server = ["varnishd", "-F", "-n", name, "-a", f"127.0.0.1:{port}", "-b", f"127.0.0.1:{origin}"]
    return [server, ["varnishncsa", "-n", name, "-t", "20", "-F", form]], 1, False


def caddy(folder, port, origin):
    (folder / "Caddyfile").write_text(
        f"{{\n admin off\n auto_https off\n}}\nhttp://:{port} {{\n bind 127.0.0.1\n"
        f" log {{\n output file {folder}/caddy.log\n }}\n reverse_proxy 127.0.0.1:{origin}\n}}\n"
    )
    return [["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]], None, False


def serve(folder, make, origin):
    """Runs requests through a server; returns its log, and what the client counted."""
    name = make.__name__
    folder.mkdir()
    port = free_port()
    commands, logged_by, with_heads = make(folder, port, origin)
    log = folder / f"{name}.log"
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(folder), "TZ": "UTC"}
    processes = []
    try:
        for number, command in enumerate(commands):
            to = log if number == logged_by else folder / f"{name}-{number}.out"
            processes.append(
                subprocess.Popen(command, stdout=to.open("w"), stderr=subprocess.STDOUT, env=environment)
            )
            wait_for(port, processes[0])
        if len(commands) > 1:
            time.sleep(1)
        began = time.time()
        # Objects of their own, or Varnish would have them already.
        counted = [fetch(port, size, at)[0 if with_heads else 1] for at, size in enumerate(SIZES)]
        ended = time.time()
        time.sleep(1)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(20)
    return log, counted, (began, ended)


def check(knee, log, counted, span):
    """Compares the report with what the client counted."""
    report = json.loads(subprocess.check_output([knee, "report", log, "--format", "json"]))

    def wrong(what, found, expected):
        sys.exit(f"{log}: {what}: {found}, but the client counted {expected}")

    # HAProxy logs the connection that waited for it, which asked for nothing.
    lines = [over for over in report["logs"][0]["passed_over"] if over["reason"] != "without a body"]
    if lines or report["all"]["transfers"] != len(counted):
        wrong("transfers", (report["all"]["transfers"], lines), len(counted))
    limits = {"under 100 kB": (0, 1e5), "100 kB to 1 MB": (1e5, 1e6), "1 to 3 MB": (1e6, 3e6),
              "3 to 30 MB": (3e6, 3e7), "30 MB and more": (3e7, 1e18)}
    for cell in report["classes"]:
        low, high = limits[cell["class"]]
        own = [size for size in counted if low <= size < high]
        # HAProxy counts its own form of a head, which is a byte shorter than what it sends.
        off = len(own) if log.stem == "haproxy" else 0
        if cell["transfers"] != len(own) or not 0 <= sum(own) - cell["bytes"] <= off:
            wrong(cell["class"], (cell["transfers"], cell["bytes"]), (len(own), sum(own)))
    times = (report["from_unix_s"], report["to_unix_s"])
    if not span[0] - 2 <= times[0] <= times[1] <= span[1] + 2:
        wrong("times", times, span)
    # A wait of the origin is in every duration, whatever else happened; percentiles are 4.4 % off.
    for cell in (report["large"], report["small"]):
        shortest = cell["time_us"]["p5"]
        if report["without_duration"] or report["too_short"] or shortest < 1e6 * WAIT_S * 0.95:
            wrong("shortest duration, µs", shortest, f"at least {1e6 * WAIT_S}")
    part = report["small"]["server_ratio"]
    scenario = log.parent / "mix.toml"
    scenario.write_text(MIX.replace("LOG", log.name))
    said = subprocess.run([knee, "check", scenario], capture_output=True, text=True, check=True)
    if f"{len(counted)} lines taken" not in said.stdout + said.stderr:
        wrong("a mix", said.stdout + said.stderr, len(counted))
    part = "not known" if part is None else f"{100 * part:.0f} %"
    print(f"{log.stem:8} {report['logs'][0]['format']}: {len(counted)} transfers, "
          f"{report['all']['bytes']} of {sum(counted)} bytes; server's part below 3 MB {part}")


def main():
    knee, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    missing = [name for name in PROGRAMS if shutil.which(name, path=path) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")
    folder.mkdir()
    folder.chmod(0o755)
    origin = Server(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    for make in (nginx, haproxy, squid, varnish, caddy):
        check(knee, *serve(folder / make.__name__, make, origin.server_port))


main()
