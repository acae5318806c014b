"""Serves GET /N with N bytes over HTTP/1.1: python3 serve.py ADDRESS PORT CONTROLLER

The controller is one of the kernel's (sysctl net.ipv4.tcp_available_congestion_control)."""

import http.server
import socket
import sys

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

    def log_message(self, *_):
        pass


address, port, controller = sys.argv[1:]
with http.server.ThreadingHTTPServer((address, int(port)), Handler) as server:
    # Connections that it accepts have the same.
    server.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
    server.serve_forever()
