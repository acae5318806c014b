"""What a run needs and the project does not contain, made or installed once in a folder."""

import json
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DASH_JS = "dashjs@5.2.1"
HYPERCORN = "hypercorn==0.18.0"
SEGMENT_S = 4
CLIP_S = 12
FRAMES_PER_SECOND = 25
# Bitrates, bit/s: those of `knee_workload`'s ladders.
LADDERS = {
    "study": [463_000, 714_000, 1_310_000, 2_407_000, 4_048_000],
    "beyond-one-link": [1_300_000, 2_500_000, 4_500_000, 8_000_000, 11_000_000, 14_000_000],
}


def run(*line, **more):
    """Runs a program, and ends with its messages if it fails."""
    done = subprocess.run(line, capture_output=True, text=True, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, line))}:\n{done.stdout}{done.stderr}")
    return done.stdout


def require(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        sys.exit(f"{', '.join(missing)} cannot be found: install Debian's packages of these names "
                 "(ip is in iproute2, npm in npm)")


def between():
    """Builds the program that sets up hosts, links and `knee bond`."""
    print("building", file=sys.stderr)
    text = run("cargo", "bench", "--locked", "-p", "knee-bond", "--bench", "between", "--no-run",
               "--message-format=json", cwd=ROOT)
    for line in text.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "between":
            return message["executable"]
    return sys.exit("cargo bench built nothing")


class Parts:
    """Web server, certificate, page, player and videos."""

    def __init__(self, folder, program):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.python = folder / "venv/bin/python"
        if not (folder / "venv/installed").exists():
            print("installing the web server", file=sys.stderr)
            venv.create(folder / "venv", with_pip=True, clear=True)
            run(self.python, "-m", "pip", "install", "--quiet", HYPERCORN)
            (folder / "venv/installed").touch()
        if not (folder / "certificate.pem").exists():
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                "-nodes", "-days", "3650", "-subj", "/CN=page", "-keyout", folder / "key.pem",
                "-out", folder / "certificate.pem")
        (folder / "page.csv").write_text(run(program, "page"))
        (folder / "static").mkdir(exist_ok=True)

    def player(self):
        """Adds the player's page and dash.js."""
        static = self.folder / "static"
        shutil.copy(HERE / "player.html", static)
        if (static / "dash.js").exists():
            return
        print("fetching dash.js", file=sys.stderr)
        packed = run("npm", "pack", "--silent", DASH_JS, cwd=self.folder).split()[-1]
        with tarfile.open(self.folder / packed) as archive:
            name = "package/dist/modern/umd/dash.mediaplayer.min.js"
            (static / "dash.js").write_bytes(archive.extractfile(name).read())
        (self.folder / packed).unlink()

    def video(self, ladder, seconds):
        """Makes a video in all bitrates of a ladder, and returns its path at the server.

        Filler holds each bitrate, whatever the picture, so a small one will do: it keeps
        decoding cheap. A short clip is repeated.
        """
        name = f"{ladder}-{seconds}"
        made = self.folder / "static" / name
        # What an interrupted run has begun is made again.
        if not made.exists():
            print(f"making {seconds} s of video", file=sys.stderr)
            begun = self.folder / "begun"
            shutil.rmtree(begun, ignore_errors=True)
            begun.mkdir()
            clips = []
            for number, rate in enumerate(LADDERS[ladder]):
                clip = self.folder / f"{ladder}-{number}.mp4"
                clips.append(clip)
                if not clip.exists():
                    encode(rate, begun / clip.name)
                    (begun / clip.name).rename(clip)
            package(clips, seconds, begun)
            begun.rename(made)
        return f"/static/{name}"


def encode(rate, clip):
    every = SEGMENT_S * FRAMES_PER_SECOND
    source = f"testsrc2=size=320x180:rate={FRAMES_PER_SECOND}:duration={CLIP_S}"
    run("ffmpeg", "-v", "error", "-y", "-f", "lavfi", "-i", source, "-c:v", "libx264",
        "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-b:v", str(rate), "-minrate", str(rate),
        "-maxrate", str(rate), "-bufsize", str(rate // 2), "-x264-params",
        f"nal-hrd=cbr:keyint={every}:min-keyint={every}:scenecut=0", clip)


def package(clips, seconds, folder):
    inputs, maps = [], []
    for number, clip in enumerate(clips):
        inputs += ["-stream_loop", str(-(-seconds // CLIP_S) - 1), "-i", str(clip)]
        maps += ["-map", str(number)]
    run("ffmpeg", "-v", "error", "-y", *inputs, *maps, "-c", "copy", "-t", str(seconds),
        "-f", "dash", "-seg_duration", str(SEGMENT_S), "-use_template", "1", "-use_timeline", "0",
        "-adaptation_sets", "id=0,streams=v", "-init_seg_name", "init-$RepresentationID$.m4s",
        "-media_seg_name", "chunk-$RepresentationID$-$Number%05d$.m4s", "manifest.mpd",
        cwd=folder)
