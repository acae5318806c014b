"""What is tried: links, schedulers and workloads of `studies/synchronous-completion`."""

from dataclasses import dataclass, replace

ADDRESS = "10.99.0.1"
# Rate in Mbit/s and queue in bytes (100 ms): the links of three-interfaces.toml, the fastest
# first, and of joining.toml.
UNLIKE = ((10, 125_000), (5, 62_500), (1, 12_500))
SIMILAR = ((10, 100_000), (9, 100_000), (8, 100_000))
DELAY_MS = 20
CONTROLLER = "cubic"
# The simulator has a bundle's packets, ACKs and window: IP, UDP, QUIC and the bundle need 60 of 1,500
# bytes, and the window is not tuned; Linux's grows as data arrives in order.
TRANSPORT = ('[transport]\nmss = "1440 B"\nheader = "60 B"\nacks = "quic"\n'
             'receive_window = "16 MiB"')
SCHEDULERS = ["minrtt", "sctc", "round-robin", "blest", "ecf", "just-in-time"]
# What the simulator's player leaves out is off; `default` is dash.js as it comes.
RULES_OFF = ["switchHistoryRule", "droppedFramesRule", "abandonRequestsRule"]
CLEAN = {"streaming": {"buffer": {"fastSwitchEnabled": False},
                       "abr": {"rules": {name: {"active": False} for name in RULES_OFF}}}}
SETTINGS = {"clean": CLEAN, "default": {}}


@dataclass(frozen=True)
class Cell:
    """One workload over some links with one scheduler."""

    kind: str
    name: str
    rates: tuple
    scheduler: str
    # The first scheduler again, which shows how much two equal cells differ.
    again: bool = False
    protocol: str = ""
    ladder: str = ""
    settings: str = ""
    size: int = 0
    # Duration of a video or of a series of joining links.
    seconds: float = 0
    # Time after which a page or a video is given up.
    limit: float = 60
    objects: int = 53

    @property
    def links(self):
        return len(self.rates)

    @property
    def label(self):
        return f"{self.scheduler} again" if self.again else self.scheduler

    @property
    def present(self):
        return 1 if self.kind == "joining" else self.links

    def links_toml(self):
        """Both directions of each link; downloads use `b`."""
        parts = [f'[link.{way}{number}]\nrate = "{rate} Mbit/s"\ndelay = "{DELAY_MS} ms"\n'
                 f'buffer = "{queue} B"\n'
                 for number, (rate, queue) in enumerate(self.rates) for way in "ab"]
        return "".join(parts)

    def workload(self):
        if self.kind == "page":
            http = "1.1" if self.protocol == "http/1.1" else "multiplexed"
            return f'{{ page = {{ http = "{http}" }} }}'
        if self.kind == "video":
            return f'{{ dash = {{ ladder = "{self.ladder}", media = "{self.seconds} s" }} }}'
        return f'{{ file = "{self.size} B" }}' if self.kind == "file" else '"bulk"'

    def scenario(self):
        """The same for the simulator: a multipath connection instead of a bundle."""
        duration = self.seconds if self.kind == "joining" else 4 * self.limit
        lines = [f'name = "{self.name}"', f'duration = "{duration:g} s"', self.links_toml(),
                 TRANSPORT]
        for number in range(self.links):
            lines += [f"[path.p{number}]", f'forward = ["b{number}"]', f'reverse = ["a{number}"]']
            if self.kind == "joining" and number:
                until = number * self.seconds / self.links
                lines.append(f'absent = [{{ from = "0 s", until = "{until:g} s" }}]')
        lines += ["[[flow]]", f'cc = "{CONTROLLER}"', f"workload = {self.workload()}"]
        if self.links > 1:
            paths = ", ".join(f'"p{number}"' for number in range(self.links))
            lines += [f"paths = [{paths}]", f'scheduler = "{self.scheduler}"']
        else:
            lines.append('path = "p0"')
        return "\n".join(lines) + "\n"


def interfaces(count):
    return f"{count} interface{'s' if count > 1 else ''}"


def variants(base, schedulers):
    """The cell with each scheduler, and with the first once more. With one link there is no choice,
    so only these two."""
    chosen = schedulers if base.links > 1 else schedulers[:1]
    cells = [replace(base, scheduler=scheduler) for scheduler in chosen]
    return [*cells, replace(cells[0], again=True)]


def pages(schedulers):
    for count in (1, 2, 3):
        for protocol, words in (("http/1.1", "HTTP/1.1"), ("h2", "HTTP/2")):
            name = f"page, {words}, {interfaces(count)}"
            yield variants(Cell("page", name, UNLIKE[:count], "", protocol=protocol), schedulers)


def files(schedulers, sizes):
    for count in (1, 2, 3):
        for size in sizes:
            name = f"file of {size / 1e6:g} MB, {interfaces(count)}"
            yield variants(Cell("file", name, UNLIKE[:count], "", size=size), schedulers)


def joins(schedulers, seconds, sets):
    for words, rates in sets:
        # More than the links can carry in the time.
        size = int(1.2 * sum(rate for rate, _ in rates) * 1e6 / 8 * seconds)
        name = f"interfaces join, {words}"
        cell = Cell("joining", name, rates, "", size=size, seconds=seconds)
        yield variants(cell, schedulers)


def videos(schedulers, seconds, ladders, settings):
    for ladder in ladders:
        for chosen in settings:
            name = f"video, ladder {ladder}, dash.js {chosen}"
            cell = Cell("video", name, UNLIKE, "", ladder=ladder, settings=chosen,
                        seconds=seconds, limit=3 * seconds)
            yield variants(cell, schedulers)


def quick():
    """Groups of cells to compare, each with its number of rounds."""
    schedulers = ["minrtt", "round-robin"]
    groups = [(group, 2) for group in pages(schedulers)]
    groups += [(group, 2) for group in files(schedulers, [1_000_000]) if group[0].links == 3]
    groups += [(group, 1) for group in joins(schedulers[:1], 12, [("similar", SIMILAR)])]
    groups += [(group, 1) for group in videos(schedulers, 24, ["beyond-one-link"], ["clean"])]
    return groups


def whole(schedulers):
    groups = [(group, 10) for group in pages(schedulers)]
    groups += [(group, 5) for group in
               files(schedulers, [64_000, 256_000, 1_000_000, 4_000_000])]
    groups += [(group, 3) for group in
               joins(schedulers, 30, [("similar", SIMILAR), ("unlike", UNLIKE)])]
    groups += [(group, 3) for group in
               videos(schedulers, 60, ["study", "beyond-one-link"], ["clean", "default"])]
    return groups
