"""The web server of a run: pages, files and video, over HTTP/1.1 and, with TLS, HTTP/2.

    server.py FOLDER ADDRESS

FOLDER has page.csv, certificate.pem and key.pem; its subfolder `static` is served at `/static`.
The server creates the file `ready` there once it listens at ports 8080 and 8443.
"""

import asyncio
import csv
import sys
import zlib
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config

HERE = Path(__file__).parent
# Status line and headers of an answer: the simulator's sizes include them.
HEADER_BYTES = 70
# Content types by the first word of an object's name.
KINDS = {"index": "text/html", "style": "text/css", "script": "text/javascript",
         "font": "font/woff2", "image": "image/png"}
SUFFIXES = {".html": "text/html", ".js": "text/javascript", ".mpd": "application/dash+xml",
            ".m4s": "video/iso.segment"}


def png():
    """Returns the smallest grey picture."""
    def chunk(kind, body):
        return (len(body).to_bytes(4, "big") + kind + body
                + zlib.crc32(kind + body).to_bytes(4, "big"))
    header = bytes([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b""))


def element(name):
    """Returns the tag that has a browser fetch an object of the HTML."""
    then = 'onload="arrived(this)" onerror="arrived(this)"'
    if name.startswith("style"):
        return f'<link rel="stylesheet" href="{name}" {then}>'
    return f'<script async src="{name}" {then}></script>'


def page(rows):
    """Returns the objects of a page by path, with their content types."""
    html = rows[0]["name"]
    at_once = [row["name"] for row in rows if row["after"].split() == [html]]
    later = [f'["{row["name"]}", {row["after"].split()}]' for row in rows
             if row["after"] and row["after"].split() != [html]]
    loader = (HERE / "loader.js").read_text()
    head = "<!doctype html><title>Page</title><link rel=icon href=data:,><!--"
    script = f"const LATER = [{', '.join(later)}], COUNT = {len(rows)};\n{loader}"
    tail = f"--><script>{script}</script>" + "".join(element(name) for name in at_once)
    objects = {}
    for row in rows:
        name, size = row["name"], int(row["bytes"]) - HEADER_BYTES
        kind = name.split("-")[0].split(".")[0]
        if kind == "index":
            # The references come last, because the simulator's page is found whole or not at all.
            body = head.encode() + b"x" * (size - len(head) - len(tail)) + tail.encode()
        elif kind in ("style", "script"):
            body = b"/*" + b"x" * (size - 4) + b"*/"
        elif kind == "image":
            body = png()
            body += b"x" * (size - len(body))
        else:
            body = b"x" * size
        assert len(body) == size, f"{name} needs more than {row['bytes']} bytes"
        objects[f"/page/{name}"] = (KINDS[kind], body)
    return objects


def application(folder):
    with open(folder / "page.csv", newline="") as rows:
        objects = page(list(csv.DictReader(rows)))

    def find(path):
        if path in objects:
            return objects[path]
        if path.startswith("/file/"):
            return "application/octet-stream", bytes(int(path.removeprefix("/file/")))
        static = (folder / "static").resolve()
        file = (static / path.removeprefix("/static/")).resolve()
        if path.startswith("/static/") and file.is_relative_to(static) and file.is_file():
            return SUFFIXES.get(file.suffix, "application/octet-stream"), file.read_bytes()
        return None

    async def answer(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        found = find(scope["path"])
        kind, body = found or ("text/plain", b"not found")
        headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200 if found else 404,
                    "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer


async def main():
    folder, address = Path(sys.argv[1]), sys.argv[2]
    config = Config()
    config.insecure_bind = [f"{address}:8080"]
    config.bind = [f"{address}:8443"]
    config.certfile, config.keyfile = str(folder / "certificate.pem"), str(folder / "key.pem")
    config.alpn_protocols = ["h2"]
    config.include_date_header = config.include_server_header = False
    config.keep_alive_timeout = 60
    config.h2_max_concurrent_streams = 256
    config.errorlog = None
    running = asyncio.create_task(serve(application(folder), config, mode="asgi",
                                        shutdown_trigger=asyncio.Event().wait))
    while not running.done():
        try:
            for port in (8080, 8443):
                _, writer = await asyncio.open_connection(address, port)
                writer.close()
            break
        except OSError:
            await asyncio.sleep(0.02)
    (folder / "ready").touch()
    await running


if __name__ == "__main__":
    asyncio.run(main())
