"""minRTT, BLEST and SCTC written from their sources: make the same decisions as the
built-in ones."""

import knee

WAIT = knee.Wait()
LAST = 1 << 64


def eligible(view):
    """Returns the active paths; if none, the backups; if none, the silent ones (RFC
    8684, section 3.3.8)."""
    for status in ("active", "backup", "suspect"):
        paths = [path for path in view.paths if path.status == status]
        if paths:
            return paths
    return []


def speed(path):
    """Returns the RTT; a path without a sample comes last."""
    return path.srtt_ns or LAST


def fastest(paths):
    return min(paths, key=speed, default=None)


def ready(view):
    return [path for path in eligible(view) if path.ready]


class MinRtt(knee.Scheduler):
    """Returns the path with room that has the lowest smoothed RTT."""

    def schedule(self, view):
        path = fastest(ready(view))
        if path is None or not view.has_new:
            return WAIT
        return knee.Send(path.index)


class Dice(knee.Scheduler):
    """Returns any path with room."""

    def schedule(self, view):
        paths = ready(view)
        if not paths or not view.has_new:
            return WAIT
        return knee.Send(self.random.choice(paths).index)


def wait_rather_than(view, path):
    """Waits only if something is in flight; otherwise nothing would trigger a new call."""
    if any(other.in_flight_bytes for other in eligible(view)):
        return WAIT
    return knee.Send(path.index)


class Blest(knee.Scheduler):
    """Ferlin et al., IFIP Networking 2016, section III."""

    def __init__(self, random):
        super().__init__(random)
        self.thousandths = 1200
        self.updated_ns = None
        self.retransmitted = False

    def schedule(self, view):
        chosen = fastest(ready(view))
        if chosen is None:
            return WAIT
        best = fastest(eligible(view))
        blocks = False
        if chosen.index != best.index:
            self.update(view.now_ns, chosen.srtt_ns)
            blocks = self.blocks(view, best, chosen)
        if view.has_new:
            return wait_rather_than(view, chosen) if blocks else knee.Send(chosen.index)
        if rescues(view, chosen):
            self.retransmitted = True
            return knee.Repeat(chosen.index)
        return WAIT

    def update(self, now_ns, round_ns):
        if self.updated_ns is None:
            self.updated_ns = now_ns
        if now_ns < self.updated_ns + round_ns or now_ns == self.updated_ns:
            return
        self.thousandths += 40 if self.retransmitted else -10
        self.thousandths = min(max(self.thousandths, 1000), 1300)
        self.retransmitted = False
        self.updated_ns = now_ns

    def blocks(self, view, fast, slow):
        rounds = max(slow.srtt_ns / 1e9 / max(fast.srtt_ns / 1e9, 1e-9), 1.0)
        window = fast.window_bytes / view.mss_bytes
        meanwhile = view.mss_bytes * (window + (rounds - 1.0) / 2.0) * rounds
        held = slow.in_flight_bytes + view.mss_bytes
        room = max(0, view.outstanding_bytes + view.window_left_bytes - held)
        return self.thousandths / 1000.0 * meanwhile > room


def rescues(view, path):
    """Opportunistic retransmission (Raiciu et al., NSDI 2012, section 4.2)."""
    if not view.is_blocked or view.oldest_holder is None:
        return False
    if path.index in view.oldest_sent_on or path.index not in view.can_repeat:
        return False
    holders = [view.paths[index] for index in view.oldest_sent_on]
    return all(
        holder.window_bytes <= 4 * view.mss_bytes or 4 * path.srtt_ns < holder.srtt_ns
        for holder in holders
    )


class Sctc(knee.Scheduler):
    """All paths finish their queued data at the same time; the greedy rules."""

    def schedule(self, view):
        if not view.has_new:
            return WAIT
        mss = view.mss_bytes
        unsent = -(-view.unsent_bytes // mss)
        free = sum(
            max(0, path.window_bytes - path.in_flight_bytes) // mss for path in eligible(view)
        )
        if unsent < free:
            path = min(ready(view), key=lambda path: first_done(path, mss), default=None)
        else:
            path = highest_rate(ready(view))
        return WAIT if path is None else knee.Send(path.index)


def first_done(path, mss):
    windows = path.in_flight_bytes // mss // max(path.window_bytes // mss, 1)
    return path.srtt_ns == 0, (windows + 1) * path.srtt_ns


def highest_rate(paths):
    best = None
    for path in paths:
        if best is None or faster(path, best):
            best = path
    return best


def faster(one, other):
    """Compares cwnd / rtt by cross-multiplication, which is exact."""
    if one.srtt_ns == 0 or other.srtt_ns == 0:
        if one.srtt_ns == other.srtt_ns:
            return one.window_bytes > other.window_bytes
        return other.srtt_ns == 0
    return one.window_bytes * other.srtt_ns > other.window_bytes * one.srtt_ns
