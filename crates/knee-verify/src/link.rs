//! What one link did: counts, order, rate, earliness, queue.

use crate::parse::LinkHead;
use crate::report::{LinkCount, Rule};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Work is counted in bit/s x ns, so that every comparison is exact.
const WORK_PER_BYTE: u128 = 8 * 1_000_000_000;

/// What a rule found wrong; the line is that of the packet's entry when it
/// is known only later.
pub struct Finding {
    pub rule: Rule,
    pub text: String,
    /// Line and time of the row at fault; none: the row at hand.
    pub place: Option<(u64, u64)>,
}

impl Finding {
    pub fn new(rule: Rule, text: String) -> Finding {
        Finding { rule, text, place: None }
    }
}

/// A packet between its entry and the moment when all that entered before it
/// is settled.
struct Entry {
    line: u64,
    time: u64,
    bytes: u64,
    /// When it stopped waiting: its transmission began, or it was dropped.
    /// None: it is inside, and when it will depart is unknown.
    waited_until: Option<u64>,
}

/// The books of a link.
pub struct Link {
    head: LinkHead,
    entered: u64,
    left: u64,
    dropped: u64,
    /// In order of entry; the front one is not settled.
    entries: VecDeque<Entry>,
    /// Number of the front entry, counted from the start.
    first: u64,
    last_leave: Option<u64>,
    /// Work that left above what the rate allows, since any earlier packet.
    excess: u128,
    /// Bytes of the largest packet that left.
    largest: u64,
    /// When the link last dropped packets by going down.
    went_down_at: Option<u64>,
    /// End of waiting and bytes of the packets settled so far that wait at
    /// the entry looked at last.
    waiting: BinaryHeap<Reverse<(u64, u64)>>,
    waiting_bytes: u64,
}

impl Link {
    pub fn new(head: LinkHead) -> Link {
        Link {
            head,
            entered: 0,
            left: 0,
            dropped: 0,
            entries: VecDeque::new(),
            first: 0,
            last_leave: None,
            excess: 0,
            largest: 0,
            went_down_at: None,
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
        }
    }

    pub fn count(self) -> LinkCount {
        LinkCount {
            name: self.head.name,
            entered: self.entered,
            left: self.left,
            dropped: self.dropped,
            inside: self.entered - self.left - self.dropped,
        }
    }

    /// Takes a packet in; the answer names it at this link.
    pub fn enter(&mut self, line: u64, time: u64, bytes: u64) -> u64 {
        self.entered += 1;
        self.entries.push_back(Entry { line, time, bytes, waited_until: None });
        self.first + self.entries.len() as u64 - 1
    }

    /// A packet that is inside was dropped. When the link went down the
    /// oldest of those dropped may have been in transmission, which is not
    /// waiting: when that began nobody can tell.
    pub fn drop(&mut self, time: u64, name: u64, went_down: bool, findings: &mut Vec<Finding>) {
        self.dropped += 1;
        let transmitting = went_down && self.went_down_at.replace(time) != Some(time);
        let entry = self.entry(name);
        entry.waited_until = Some(if transmitting { entry.time } else { time });
        self.settle(findings);
    }

    /// A packet that is inside reached the far end.
    pub fn leave(&mut self, time: u64, name: u64, findings: &mut Vec<Finding>) {
        self.left += 1;
        let &mut Entry { time: entered, bytes, .. } = self.entry(name);
        self.check_early(time, entered, bytes, findings);
        self.check_rate(time, bytes, findings);
        if self.head.fifo && name != self.first {
            let text = format!(
                "left while {} entered earlier is still inside",
                self.entries
                    .front()
                    .map_or(String::new(), |e| format!("the packet of line {}", e.line))
            );
            findings.push(Finding::new(Rule::Fifo, text));
        }
        // A transmission begins at entry, or when the one before it ends.
        let idle_since = self.last_leave.map_or(0, |leave| leave.saturating_sub(self.head.delay));
        self.entry(name).waited_until = Some(entered.max(idle_since));
        self.last_leave = Some(time);
        self.settle(findings);
    }

    fn entry(&mut self, name: u64) -> &mut Entry {
        &mut self.entries[(name - self.first) as usize]
    }

    fn check_early(&self, time: u64, entered: u64, bytes: u64, findings: &mut Vec<Finding>) {
        let spent = time.checked_sub(entered).and_then(|spent| spent.checked_sub(self.head.delay));
        let enough = spent.is_some_and(|spent| {
            self.head.rate.is_none_or(|rate| {
                u128::from(spent) * u128::from(rate) >= u128::from(bytes) * WORK_PER_BYTE
            })
        });
        if !enough {
            let text = format!(
                "{bytes} bytes that entered at {entered} ns left after {} ns, less than their \
                 transmission and the delay of {} ns",
                time.saturating_sub(entered),
                self.head.delay
            );
            findings.push(Finding::new(Rule::Early, text));
        }
    }

    /// A leaky bucket: between any two packets that leave, the bytes of all
    /// but the first are at most the rate times the time. Departures are in
    /// whole nanoseconds, so less than one of them is given away; of a delay
    /// that varies, its range. Where packets overtake each other, the first
    /// to leave need not be the first that was sent: then the largest packet
    /// is given away too.
    fn check_rate(&mut self, time: u64, bytes: u64, findings: &mut Vec<Finding>) {
        self.largest = self.largest.max(bytes);
        let (Some(rate), Some(last)) = (self.head.rate, self.last_leave) else { return };
        let served = u128::from(rate) * u128::from(time.saturating_sub(last));
        self.excess = (self.excess + u128::from(bytes) * WORK_PER_BYTE).saturating_sub(served);
        let spread = self.head.delay_max - self.head.delay;
        let overtakes = !self.head.fifo && spread > 0;
        let overtaken = if overtakes { u128::from(self.largest) } else { 0 };
        let given = u128::from(rate) * (u128::from(spread) + 1) + overtaken * WORK_PER_BYTE;
        if self.excess >= given {
            let text = format!(
                "{} bytes more left than {rate} bit/s allow",
                self.excess.div_ceil(WORK_PER_BYTE)
            );
            findings.push(Finding::new(Rule::Rate, text));
            self.excess = 0;
        }
    }

    /// Lets go of the entries at the front whose waiting is known, and
    /// checks the buffer at the entry of each.
    fn settle(&mut self, findings: &mut Vec<Finding>) {
        while let Some(Entry { waited_until: Some(end), .. }) = self.entries.front() {
            let end = *end;
            let Some(entry) = self.entries.pop_front() else { return };
            self.first += 1;
            if let Some(buffer) = self.head.buffer {
                findings.extend(self.check_buffer(&entry, end, buffer));
            }
        }
    }

    fn check_buffer(&mut self, entry: &Entry, end: u64, buffer: u64) -> Option<Finding> {
        while let Some(&Reverse((until, bytes))) = self.waiting.peek() {
            if until > entry.time {
                break;
            }
            self.waiting.pop();
            self.waiting_bytes -= bytes;
        }
        if end <= entry.time {
            return None;
        }
        self.waiting.push(Reverse((end, entry.bytes)));
        self.waiting_bytes += entry.bytes;
        if self.waiting_bytes <= buffer {
            return None;
        }
        let text = format!("{} bytes wait in a buffer of {buffer}", self.waiting_bytes);
        Some(Finding { rule: Rule::Buffer, text, place: Some((entry.line, entry.time)) })
    }
}
