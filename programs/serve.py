"""Serves GET /N with N bytes over HTTP/1.1: python3 serve.py ADDRESS PORT CONTROLLER

The controller is one of the kernel's (sysctl net.ipv4.tcp_available_congestion_control). Prints, once
all is acknowledged, how many bytes the kernel says were retransmitted (tcpi_bytes_retrans); nothing if
the client is silent for a minute."""

import http.server
import signal
import socket
import struct
import sys
import time

CHUNK = bytes(1 << 16)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.strip("/")
        if not name.isdigit():
            self.send_error(404, "the path is not a number of bytes")
            return
        left = int(name)
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left > 0:
            left -= self.wfile.write(CHUNK[:left])
        self.tell()

    def tell(self):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            time.sleep(0.01)
            info = self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 216)
            # tcpi_unacked and tcpi_bytes_retrans (linux/tcp.h).
            (unacknowledged,), (repeated,) = (
                struct.unpack_from(kind, info, at) for kind, at in [("I", 24), ("Q", 208)]
            )
            if unacknowledged == 0:
                print("retransmitted", repeated, flush=True)
                return

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    # Whoever ends it waits until all is told.
    daemon_threads = False


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
address, port, controller = sys.argv[1:]
with Server((address, int(port)), Handler) as server:
    # Connections that it accepts have the same.
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
    server.serve_forever()
