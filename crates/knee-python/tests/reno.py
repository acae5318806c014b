"""Reno by RFC 5681 with Linux's arithmetic: makes exactly the same decisions as the
built-in one."""

import knee

UNLIMITED = 0x7FFF_FFFF
"""Threshold before the first loss, segments (Linux: TCP_INFINITE_SSTHRESH)."""
LARGEST_BURST_BYTES = 65_536
RESTART_AFTER_NS = 200_000_000


class Reno(knee.Controller):
    """The window grows by one segment per round trip and halves on loss."""

    def __init__(self, init):
        super().__init__(init)
        self.mss = init.mss_bytes
        self.initial = max(1, init.initial_window_bytes // self.mss)
        self.segments = self.initial
        self.threshold = UNLIMITED
        self.credit = 0
        self.before = (self.segments, self.threshold)
        self.state = "open"
        self.partial_bytes = 0
        self.acknowledged_bytes = 0
        self.last_sent_ns = 0

    def on_ack(self, ack):
        if ack.mss_bytes != self.mss:
            window_bytes = self.segments * self.mss
            self.mss = ack.mss_bytes
            self.set(window_bytes // self.mss)
        # Appropriate byte counting (RFC 3465): fractions of a segment accumulate.
        self.partial_bytes += ack.newly_acked_bytes
        acked, self.partial_bytes = divmod(self.partial_bytes, self.mss)
        if ack.rtt_ns is not None:
            self.last_sent_ns = max(0, ack.now_ns - ack.rtt_ns)
        forward = ack.acknowledged_bytes > self.acknowledged_bytes
        self.acknowledged_bytes = ack.acknowledged_bytes
        shrinking = self.state == "reduced" or ack.recovery in ("recovery", "window_reduced")
        if forward and not shrinking and ack.window_limited and acked:
            self.grow(acked)
        return self.decide(ack)

    def on_event(self, event, connection):
        if event == "sent_after_idle":
            self.restart(connection)
        elif event in ("recovery_start", "congestion_echo"):
            if self.state == "open":
                self.reduce()
                self.set(self.threshold)
            self.state = "reduced"
        elif event == "recovery_end":
            self.state = "open"
        elif event == "timeout":
            if connection.recovery != "loss":
                self.reduce()
            self.state = "timed_out"
            self.set(connection.in_flight_bytes // self.mss + 1)
        elif event == "spurious_recovery":
            segments, threshold = self.before
            self.segments = max(self.segments, segments)
            self.threshold = max(self.threshold, threshold)
            self.state = "open"
        elif event == "penalised":
            if self.threshold != UNLIMITED:
                self.threshold = max(self.threshold // 2, 2)
            self.set(self.segments // 2)
        return self.decide(connection)

    def grow(self, acked):
        if self.segments < self.threshold:
            grown = min(self.segments + acked, self.threshold)
            acked -= grown - self.segments
            self.segments = grown
        if acked == 0:
            return
        window = self.segments
        if self.credit >= window:
            self.credit = 0
            self.segments += 1
        self.credit += acked
        if self.credit >= window:
            steps, self.credit = divmod(self.credit, window)
            self.segments += steps

    def reduce(self):
        """RFC 5681, equation 4."""
        self.before = (self.segments, self.threshold)
        self.threshold = max(self.segments // 2, 2)

    def restart(self, connection):
        """RFC 5681, section 4.1: halves the window for each timeout of idleness."""
        if self.last_sent_ns == 0:
            return
        timeout_ns = connection.srtt_ns + RESTART_AFTER_NS
        idle_ns = max(0, connection.now_ns - self.last_sent_ns)
        if idle_ns <= timeout_ns:
            return
        floor = min(self.initial, self.segments)
        self.threshold = max(self.threshold, self.segments // 2 + self.segments // 4)
        while idle_ns > timeout_ns and self.segments > floor:
            idle_ns -= timeout_ns
            self.segments //= 2
        self.set(max(self.segments, floor))

    def set(self, segments):
        self.segments, self.credit = max(1, segments), 0

    def decide(self, connection):
        outstanding = connection.sent_bytes - connection.acknowledged_bytes
        segments = max(self.segments, outstanding // self.mss)
        percent = 200 if self.segments < self.threshold // 2 else 120
        srtt_us = connection.srtt_ns // 1000
        rate_bps = self.mss * 8 * segments * percent * 10_000 // srtt_us if srtt_us else None
        # Linux's tcp_tso_autosize: a millisecond's worth, more on short paths.
        burst = (rate_bps or 0) // 8 >> 10
        if connection.min_rtt_ns:
            burst += LARGEST_BURST_BYTES >> min(63, connection.min_rtt_ns // 1000 >> 9)
        quantum = max(2, min(burst, LARGEST_BURST_BYTES) // self.mss)
        return knee.Decision(self.segments * self.mss, rate_bps, quantum * self.mss)

    @property
    def phase(self):
        if self.state == "reduced":
            return "recovery"
        return "slow_start" if self.segments < self.threshold else "congestion_avoidance"

    @property
    def slow_start_threshold_bytes(self):
        return self.threshold * self.mss if self.threshold < UNLIMITED else None
