#!/usr/bin/env python3
"""Makes the pages that lead from the five documents to commands:

    docs/sources.py [--check] [KNEE]

Writes docs/sources/NAME.md and its pictures. The outcomes are those on record in studies/*/study.toml
(`knee reproduce` runs them again); the pictures are drawn by the commands that the pages show. With
--check it writes nothing, and fails if a page or a picture would change. KNEE is the program, by
default the one in the path.
"""
import argparse
import fnmatch
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
FOLDER = DOCS / "sources"

HEAD = """
Every figure, table and number of the document, by its own numbering, with the command that tries it
here. A row is a claim of the study [`studies/{study}`](../../studies/{study}/study.toml): what is
said, the document's figure, the values with which the claim holds, the value on record, and the
outcome: *uncertain* where the interval over the seeds crosses a bound. `knee reproduce
{study} --all` runs them all again, and its page tells of each that fails why. Nothing of the document
itself is shown: the pictures are drawn by the commands above them, and dashed lines mark its numbers.
What is in no study is in [claims that are not tested](../claims-not-tried.md).
"""


class Picture:
    """A figure of one of a study's runs, with the document's numbers marked in it."""

    def __init__(self, run, what, seen, marks=(), more=()):
        self.run, self.what, self.seen, self.marks, self.more = run, what, seen, marks, more
        self.stem = f"{run}-{what}"

    def commands(self, study, data, file):
        """Returns the commands that make it, from the project's folder."""
        run = next(run for run in data["run"] if run["name"] == self.run)
        made = ["knee", "run", f"studies/{study}/{run['file']}"]
        for key, value in (run.get("set", {}) | dict(self.more)).items():
            made += ["--set", f"{key}={value if isinstance(value, str) else inline(value)}"]
        plot = ["knee", "plot", self.run, "--what", self.what]
        for mark in self.marks:
            plot += ["--mark", mark]
        return [made + ["--out", self.run], plot + ["--out", file]]


class Drawn:
    """A picture that a single command draws, without a run."""

    run = None

    def __init__(self, stem, words, seen):
        self.stem, self.words, self.seen = stem, words.split(), seen

    def commands(self, study, data, file):
        """Returns the command that makes it."""
        return [["knee", *self.words, "--out", file]]


class Swept:
    """A measure over settings of one of a study's scenarios."""

    def __init__(self, stem, file, vary, sets, measure, seen, marks=()):
        self.stem, self.file, self.vary, self.sets = stem, file, vary, sets
        self.measure, self.seen, self.marks = measure, seen, marks
        self.run = stem

    def commands(self, study, data, file):
        """Returns the commands that make it, from the project's folder."""
        made = ["knee", "sweep", f"studies/{study}/{self.file}"]
        made += [word for one in self.vary for word in ("--vary", one)]
        made += [word for one in self.sets for word in ("--set", one)]
        plot = ["knee", "plot", self.run, "--what", "values", "--measure", self.measure]
        plot += [word for one in self.marks for word in ("--mark", one)]
        return [made + ["--repeat", "5", "--out", self.run], plot + ["--out", file]]


class Item:
    """A figure, a table or a statement of a document, and the claims that try it."""

    def __init__(self, title, words, claims="", pictures=()):
        self.title, self.words, self.claims, self.pictures = title, words, claims.split(), pictures


# Name of the page, study, title, what the document is, and its items in their order.
PAGES = [
    (
        "low-delay-bbr",
        "improved-bbr",
        "BBR with less delay (a study of 2022)",
        "The study takes BBR apart, finds why its queue does not drain, and improves it. The improved "
        "BBR is `bbr-low-delay` here; its path is 10 Mbit/s and 60 ms unless something else is said.",
        [
            Item(
                "Figure 1: rate and RTT against the bytes in flight",
                "A fixed window from a quarter of a BDP to beyond BDP and buffer. `knee curve` draws "
                "both over all windows, for any path.",
                "A10*",
            ),
            Item(
                "Figure 2: the states of BBR",
                "BBR's phases behind its estimate of the bandwidth. How long each lasts is tried in "
                "the [handbook chapter](lossy-long-path.md).",
                pictures=[
                    Picture("one-plain", "bandwidth", "One flow of plain BBR: the tints are its phases.")
                ],
            ),
            Item(
                "Figures 3 and 4: the RTT of one flow, and its estimate of the minimum",
                "The study reads from them that the RTT swings up to 80 ms, and that the estimate "
                "grows after 10 s because the queue is not empty when it expires.",
                "A1 A1b A1c A1d A1e",
                [
                    Picture(
                        "one-drained",
                        "delay",
                        "The RTT swings as the study says, and comes down to the empty path.",
                        ["upper end in the study=80 ms"],
                    ),
                    Picture(
                        "one-drained",
                        "min-rtt",
                        "The estimate after 10 s is that of an empty path on which an ACK covers two "
                        "packets; it does not grow on.",
                        ["first expiry@10 s"],
                    ),
                ],
            ),
            Item(
                "Figures 5 and 6: two flows that probe in turn",
                "The study's program of two flows, without packets: where the shares and the filters "
                "end, and after how many rounds. `knee model` computes it from any start, for any "
                "number of flows.",
                "A2 A2[!0-9]*",
                [
                    Drawn(
                        "model",
                        "model --start 0.6,0.4 --start 0.9,0.1 --start 0.01,0.99",
                        "Left the shares as each flow probes in turn, from three starts; right the "
                        "estimates of the first, round by round.",
                    )
                ],
            ),
            Item(
                "Figure 7: a short path, RTT 8 ms",
                "Whether the throughput collapses after PROBE_RTT hangs on the rate sampler: with that "
                "of ns-3.35, which the study ran, it does; with Linux's it does not.",
                "A6 A6c A6d A6e A7*",
                [
                    Picture(
                        "8-ms-ns3-sampler",
                        "throughput",
                        "Plain BBR with the rate sampler of ns-3.35.",
                        ["collapse in the study@10 s"],
                    )
                ],
            ),
            Item(
                "Algorithm 1, and how it is set",
                "Gains of 6/5 and 4/5, a window of one BDP less what a standing queue takes: what the "
                "lower bound, the pace and an ACK for every four packets do; as printed "
                "(`shrink_window = \"literal\"`), and with what Knee decides beside it.",
                "A12* A13* A17* A18* A19*",
            ),
            Item(
                "Figure 8: the network of the tests",
                "Senders and receivers on both sides of one bottleneck: the files of "
                "[`studies/improved-bbr`](../../studies/improved-bbr/study.toml).",
            ),
            Item(
                "Figure 9: two flows",
                "Plain BBR, BBR with the two changes that the study adopts from others "
                "(`drain_to_target` and both early exits), and the improved one.",
                "A3*",
                [
                    Picture(
                        "two-baseline",
                        "delay",
                        "BBR with the two changes.",
                        ["study, lower end=70 ms", "study, upper end=90 ms"],
                    ),
                    Picture("two-improved", "delay", "The improved one.", ["the study=72 ms"]),
                ],
            ),
            Item(
                "Figure 10: the second flow stops",
                "Whether the one that stays takes the link sooner, and why.",
                "A4*",
                [
                    Picture(
                        "leaves-improved", "throughput", "Two improved flows.", ["the second stops@27 s"]
                    )
                ],
            ),
            Item(
                "Figure 11: five flows",
                "When the shares are within 5 % of even, and stay there for five seconds.",
                "A5* A15*",
                [
                    Picture(
                        "five-improved",
                        "throughput",
                        "Five improved flows.",
                        ["an even share=2 Mbit/s", "convergence in the study@3 s"],
                    ),
                    Picture(
                        "five-baseline",
                        "throughput",
                        "Five of BBR with the two changes.",
                        ["an even share=2 Mbit/s", "convergence in the study@42 s"],
                        {"duration": "60 s"},
                    ),
                ],
            ),
            Item(
                "Figure 12: a short path, RTT 4 ms",
                "As in figure 7, and which of the changes keeps the rate. Flows that enter PROBE_RTT "
                "together are the study's wish for such paths, a PROBE_RTT of three round trips its "
                "alternative.",
                "A6b A11* A16* A20*",
                [
                    Picture(
                        "4-ms-ns3-sampler",
                        "throughput",
                        "Plain BBR with the rate sampler of ns-3.35.",
                        ["collapse in the study@10 s"],
                    ),
                    Picture("4-ms-improved-ns3-sampler", "throughput", "The improved one with it."),
                ],
            ),
            Item(
                "Figure 13: a long path, RTT 240 ms",
                "How often BBR probes upward with and without a bound on its cruise: 24 and 43 times "
                "in the study, in a time that it does not name.",
                "A8*",
                [
                    Picture("240-ms-plain", "throughput", "Plain BBR."),
                    Picture("240-ms-max-cruise", "throughput", "With a cruise of at most 400 ms."),
                ],
            ),
            Item(
                "Cited: draining to the target by 40 %, and leaving probes early by 10 %",
                "What the two adopted changes do to the queue.",
                "A9*",
            ),
            Item(
                "Cited, and left open: other RTTs, and loss-based flows beside it",
                "Unfairness beyond a ratio of two, and what the study leaves for later.",
                "A14*",
            ),
        ],
    ),
    (
        "lossy-long-path",
        "lossy-long-path",
        "Switching a service to BBR (a handbook chapter)",
        "The chapter switches a video service from CUBIC to BBR, with a table of throughputs and a "
        "description of BBR.",
        [
            Item(
                "Table 2-3: CUBIC and BBR over 140 ms, with and without loss",
                "The table names delay and loss, not what limits the rate. The readings: a link of "
                "350 Mbit/s (B2, B2b, and B3 to B4c), without loss of 358 Mbit/s as well (B2c, B2bc); the "
                "host's limit and a receive window of 6 MiB (w); the same with losses of whole "
                "super-packets, as `tc netem` on a sending host makes them (p), and for BBR with losses of "
                "two segments at a time, in the mean (t). Its first row, without delay and loss, is the "
                "limit of the hosts.",
                "B2* B3* B4*",
                [
                    Picture(
                        "cubic-super-packets-low-loss",
                        "throughput",
                        "CUBIC, 1.5 % of super-packets lost.",
                        ["the table=1.23 Mbit/s"],
                    ),
                    Picture(
                        "bbr-super-packets-low-loss",
                        "throughput",
                        "BBR, 1.5 % of super-packets lost.",
                        ["the table=160 Mbit/s"],
                    ),
                ],
            ),
            Item(
                "The commands of its test: 25 ms and 1 % of loss at each host",
                "The chapter prints commands whose delay and loss are not those of its table.",
                "B8*",
            ),
            Item(
                "5 % of loss from Japan to Shanghai: 45 %, and 30 to 45 % in its conclusion (figure 2-29)",
                "The path is not described further, nor are the sizes. Lasting transfers, short ones, "
                "losses in bursts and by a policer, and a slow link are tried.",
                "B5*",
            ),
            Item("The playback of its viewers", "A video of a ladder over that loss.", "B7*"),
            Item(
                "Figures 2-21 and 2-22: the pipe, and rate and RTT against the bytes in flight",
                "As figure 1 of the [study of BBR with less delay](low-delay-bbr.md): `knee curve` "
                "draws it.",
            ),
            Item(
                "Figures 2-23 to 2-28: the states of BBR",
                "STARTUP doubles, DRAIN empties the queue, PROBE_BW takes nearly all of the time, "
                "PROBE_RTT comes every ten seconds.",
                "B6*",
                [Picture("phases", "controller", "Window and bytes in flight through the phases.")],
            ),
        ],
    ),
    (
        "synchronous-completion",
        "synchronous-completion",
        "SCTC: several paths that finish together (a study of 2022)",
        "The study adds a scheduler to multipath TCP that makes paths finish together. It is `sctc` "
        "here, beside the schedulers that the study compares with: `minrtt`, `minrtt-penalising` (the "
        "default of the kernel fork), `round-robin`, `opportunistic-redundant`.",
        [
            Item(
                "Table 1: three interfaces against one",
                "10, 9 and 8 Mbit/s, and 10, 5 and 1 Mbit/s, against one of 10 Mbit/s.",
                "D1*",
            ),
            Item(
                "Figure 1: an interface more every ten seconds",
                "The rate over time as interfaces join.",
                "D2*",
                [
                    Picture(
                        "joining",
                        "throughput",
                        "Similar interfaces.",
                        ["second interface@10 s", "third@20 s"],
                    ),
                    Picture(
                        "joining-unlike",
                        "throughput",
                        "Unlike interfaces.",
                        ["second interface@10 s", "third@20 s"],
                    ),
                ],
            ),
            Item(
                "Table 2, equations 1 to 6, figures 2 and 3: the model",
                "The terms are those at the head of "
                "[sctc.rs](../../crates/knee-multipath/src/sched/sctc.rs), with the readings of the rules "
                "([schedulers](../schedulers.md#sctc)); how much a perfect scheduler could gain, what "
                "solving the model at each decision gains, and what cycles do.",
                "D3.c* D3.p[0-9]* D3.w1c*",
            ),
            Item(
                "Figure 2: finishing times and the tail delay",
                "When each path has delivered its part, and `T - T'`; a picture with a flow for each "
                "scheduler is in the [gallery](../gallery.md#when-do-the-paths-finish).",
                "D6*",
                [
                    Picture("minrtt-1MB-40ms", "finish", "1 MB over 1 and 5 Mbit/s with minRTT."),
                    Picture("sctc-cycle-1MB-40ms", "finish", "The same with SCTC in cycles."),
                ],
            ),
            Item(
                "Figure 4: the network of the tests",
                "Two hosts joined by two or three interfaces: the files of "
                "[`studies/synchronous-completion`](../../studies/synchronous-completion/study.toml).",
            ),
            Item(
                "Figure 5: files over two interfaces",
                "64 kB to 4 MB; one interface of 1 Mbit/s, the other of 1 to 10. Of its four sizes the study "
                "names 64 kB and 4 MB; 256 kB and 1 MB are of the studies here.",
                "D3.[0-9]* D3.f* D3.r* D3.m* D3.o* D3.w* D3.t* D3.pn* D3.pw*",
                [
                    Swept(
                        "file-times",
                        "two-paths.toml",
                        [
                            "link.fast.rate=1 Mbit/s,2 Mbit/s,4 Mbit/s,6 Mbit/s,8 Mbit/s,10 Mbit/s",
                            "flow.flow.scheduler=minrtt,round-robin,opportunistic-redundant,sctc",
                        ],
                        ["flow.flow.reinjection=false", 'link.slow.jitter={ amount = "0.2 ms" }'],
                        "completion_s",
                        "1 MB over 1 Mbit/s and a second interface: the time by the second one's rate.",
                    ),
                ],
            ),
            Item("Figure 6: a page of 53 files", "The time of the page, and the distribution of arrivals.", "D4*"),
            Item("Table 3: a video", "Bitrate and resolution over 1, 5 and 10 Mbit/s.", "D5*"),
            Item(
                "Beside it: a scheduler of this project",
                "Just-in-time scheduling over the same paths.",
                "J*",
            ),
        ],
    ),
    (
        "retransmission-cost",
        "retransmission-cost",
        "What BBR costs in retransmissions (a kernel engineer's note)",
        "A short note without tables: BBR's rate is paid for by retransmissions, and the upward probe "
        "is their cause. Its sentences in their order.",
        [
            Item(
                "6 to 10 times as much as CUBIC below 1 % of loss, over 20 and 100 times above",
                "The share of the bytes sent that is retransmitted, over a path with a shallow buffer and "
                "over three switches.",
                "C1 C1[a-z]*",
                [
                    Picture("bbr-quarter", "queue", "BBR in a buffer of a quarter of a BDP: the marks are drops."),
                    Picture("cubic-quarter", "queue", "CUBIC in the same buffer."),
                ],
            ),
            Item(
                "Watching `bytes_retrans / bytes_sent` with `ss` in a loop",
                "[`knee observe --open`](../observe.md) does so for the open connections of a host, each second, with "
                "the counters of its stack, qdiscs and cards; every run here has it as `retransmitted`, and over "
                "time in its records.",
            ),
            Item(
                "Where it was dropped: neither stack nor card, so the switch",
                "Drops by link, and what no link accounts for. [`knee drops`](../command-line.md#knee-drops) "
                "says which link dropped which flow's packets, why and when, as the author wishes of a switch.",
                "C5*",
            ),
            Item(
                "A switch with back-pressure",
                "The first switch asks the host to [pause](../scenario.md#back-pressure) instead of dropping.",
                "C10*",
            ),
            Item("With `fq` CUBIC's share falls, to nothing at times", "Pacing the same flow.", "C3*"),
            Item(
                "The cause is the upward probe",
                "The same without the probe, with a smaller window, without the drain after it, and "
                "without each of BBR's other features.",
                "C2* C6d* C6e",
            ),
            Item("A probe to 5/2 BDP within a round", "The most that a flow has in flight.", "C9*"),
            Item("Mixed traffic: a false bandwidth is remembered", "BBR beside CUBIC.", "C6m*"),
            Item(
                "Not to remember it, and to decrease after a probe that lost",
                "The note's two wishes, alone and together.",
                "C6a* C6b* C6c*",
            ),
            Item("Counting what is useful, BBR is no better; BBRv2 lies between", "", "C4*"),
            Item("Those billed by bandwidth should weigh it again", "", "C7*"),
        ],
    ),
    (
        "delivery-network",
        "delivery-network",
        "BBR in a large delivery network (an operator's report)",
        "The report compares CUBIC with BBR for clients, between sites and inside one, first on live "
        "servers and then in a laboratory.",
        [
            Item(
                "Figure 1: sizes against the time to serve them",
                "`knee report --log FILE` and `knee plot --what size-time` draw such a map; one of a "
                "simulated site:",
                pictures=[Picture("site-low-bbr", "size-time", "Transfers of one site.", more={"duration": "30 s"})],
            ),
            Item(
                "Figure 2: a wireless provider, 6 to 8 % and the 5th percentile",
                "Objects over 3 MB, in several readings of the path: a mix on one link, a whole site, "
                "half of its servers.",
                "E1.* E1s.* E1v.* E1r.* E1b.* E1bs.* E1br.*",
            ),
            Item(
                "Figure 3: a cable provider, completion times",
                "When objects are complete, by their size.",
                "E1c* E1d* E1e* E1f* E1g*",
            ),
            Item("Figure 4: between sites and inside one, half of the rate", "", "E2*"),
            Item(
                "Traffic between sites blocks what clients wait for",
                "A client's answer waits for a [fetch between sites](../scenario.md#transfers-that-wait-for-others).",
                "E10*",
            ),
            Item("Figures 5 and 6: two networks of clients, and who retransmits", "", "E3*"),
            Item(
                "Why: CUBIC against BBR, and BBR against BBR",
                "Deep and shallow buffers; flows of different RTTs.",
                "E4*",
                [Picture("duel-deep", "throughput", "A deep buffer: CUBIC does not back off."),
                 Picture("duel-shallow", "throughput", "A shallow one: it does.")],
            ),
            Item(
                "Figures 7 and 8: the laboratory",
                "3 MB to clients and between sites, while the rest of the traffic is CUBIC, BBR, or both.",
                "E6* E7* E8* E9*",
            ),
            Item(
                "A controller for each kind of traffic",
                "The report's wish: [`knee advise`](../advise.md), [experiments](../steer.md) and "
                "[policies](../policy.md).",
            ),
        ],
    ),
]


def inline(value):
    """Writes a value as TOML in one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def claims(data, patterns):
    """Returns the claims of these ids, in the study's order."""
    chosen = [one for one in data["claim"] if any(fnmatch.fnmatchcase(one["id"], p) for p in patterns)]
    if patterns and not chosen:
        sys.exit(f"no claim of {data['name']} is {' or '.join(patterns)}")
    return chosen


def value(measured):
    return f"{measured:.4g}" if isinstance(measured, float) else str(measured)


def bound(claim):
    """Returns the values with which a claim holds."""
    if "between" in claim:
        return " to ".join(map(value, claim["between"]))
    if "equals" in claim:
        within = f" ± {value(claim['within'])}" if "within" in claim else ""
        return f"{value(claim['equals'])}{within}"
    words = {"at_least": "at least", "at_most": "at most"}
    return ", ".join(f"{said} {value(claim[key])}" for key, said in words.items() if key in claim)


def escaped(text):
    return text.replace("|", "\\|")


def table(rows):
    head = "| claim | what is said | the document | holds with | here | |\n| --- | --- | --- | --- | --- | --- |\n"
    line = "| {id} | {says} | {figure} | {bound} | {value} | {outcome} |\n"
    return head + "".join(
        line.format(
            id=one["id"],
            says=escaped(one["says"]),
            figure=escaped(one.get("source_figure", "")),
            bound=bound(one),
            value=value(one.get("measured", "")),
            outcome=one.get("outcome", "holds"),
        )
        for one in rows
    )


def page(knee, name, study, title, intro, items, scratch):
    """Returns the files of a page, by their names below docs/sources."""
    data = tomllib.loads((ROOT / "studies" / study / "study.toml").read_text())
    parts = [f"# {title}\n\n{intro}\n{HEAD.format(study=study)}"]
    files, left = {}, {one["id"] for one in data["claim"]}
    for item in items:
        parts.append(f"\n## {item.title}\n")
        if item.words:
            parts.append(f"\n{item.words}\n")
        rows = claims(data, item.claims)
        left -= {one["id"] for one in rows}
        for picture in item.pictures:
            stem = f"{name}-{picture.stem}"
            made = picture.commands(study, data, f"{stem}.svg")
            # Pictures of one run share it.
            is_made = picture.run and (scratch / picture.run).exists()
            for words in made[bool(is_made):]:
                perform(knee, words, scratch)
            files[f"{stem}.svg"] = (scratch / f"{stem}.svg").read_bytes()
            lines = "\n".join(map(shlex.join, made))
            shown = f"![{picture.seen}]({stem}.svg)\n\n{picture.seen}"
            parts.append(f"\n```sh\n{lines}\n```\n\n{shown}\n")
        if rows:
            parts.append(f"\n{table(rows)}")
    if left:
        sys.exit(f"docs/sources.py: {study} has claims on no page: {' '.join(sorted(left))}")
    files[f"{name}.md"] = "".join(parts).encode()
    return files


def perform(knee, words, scratch):
    done = subprocess.run([knee, *words[1:]], cwd=scratch, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("knee", nargs="?", default="knee")
    arguments = parser.parse_args()
    found = shutil.which(arguments.knee) or sys.exit(f"there is no program {arguments.knee}")
    made = {}
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "studies").symlink_to(ROOT / "studies")
        for one in PAGES:
            print(f"{one[2]} ...", file=sys.stderr)
            made |= page(str(Path(found).resolve()), *one, Path(scratch))
    kept = {path.name for path in FOLDER.iterdir()} if FOLDER.exists() else set()
    stale = [name for name, new in made.items()
             if name not in kept or (FOLDER / name).read_bytes() != new]
    for name in stale:
        if not arguments.check:
            (FOLDER / name).write_bytes(made[name])
        print(f"{'out of date' if arguments.check else 'written'}: sources/{name}")
    for name in sorted(kept - set(made)):
        if not arguments.check:
            (FOLDER / name).unlink()
        print(f"{'not made any more' if arguments.check else 'removed'}: sources/{name}")
        stale.append(name)
    sys.exit(bool(arguments.check and stale))


if __name__ == "__main__":
    main()
