//! Entry, service and drops in the model of a link.

use super::aqm::{Found, Taken};
use super::books::Finding;
use super::gate::Fate;
use super::service::WORK_PER_BYTE;
use super::{Link, Service};
use crate::parse::{Buffer, Rate, Reason};
use crate::report::Rule;

impl Link {
    /// Processes a packet that enters: gate, discipline, buffer.
    pub(super) fn judge(&mut self, name: u64, findings: &mut Vec<Finding>) {
        if !self.pass_gate(name, findings) {
            return self.remove(name);
        }
        let offer = self.offers.get(name);
        let drop = offer.dropped.filter(|drop| drop.time == offer.time).map(|drop| drop.reason);
        if !self.is_opaque() {
            self.admit(name, drop, findings);
        } else if drop.is_some() {
            self.remove(name);
        }
    }

    /// Returns whether a packet reaches the queue.
    pub(super) fn pass_gate(&mut self, name: u64, findings: &mut Vec<Finding>) -> bool {
        let offer = self.offers.get(name);
        let (line, time) = (offer.line, offer.time);
        let drop = offer.dropped.filter(|drop| drop.time == time).map(|drop| drop.reason);
        let is_shut_out = offer.is_shut_out;
        let mut find = |text: String| findings.push(Finding::drop(&text).at(line, time));
        if is_shut_out {
            if drop == Some(Reason::Breaker) {
                return false;
            }
            find("was let in though the circuit breaker had tripped".to_string());
        }
        let offer = self.offers.get(name);
        match (self.gate.judge(offer, drop == Some(Reason::Loss)), drop) {
            (Fate::Goes(reason), actual) if actual == Some(reason) => false,
            (Fate::Goes(reason), _) => {
                find(format!("was not dropped, which {} calls for", word(reason)));
                true
            }
            (Fate::MayBeLost, _) => false,
            (Fate::Passes, Some(reason @ (Reason::Loss | Reason::Policer | Reason::Down)))
            | (Fate::Passes, Some(reason @ Reason::Breaker)) => {
                find(format!("was dropped by {} without a cause", word(reason)));
                false
            }
            (Fate::Passes, _) => true,
        }
    }

    fn admit(&mut self, name: u64, drop: Option<Reason>, findings: &mut Vec<Finding>) {
        let offer = self.offers.get(name);
        let (line, time, bytes) = (offer.line, offer.time, offer.bytes);
        let mut find = |rule, text: String| {
            findings.push(Finding::new(rule, text).at(line, time));
        };
        let idle = self.waiting_packets == 0
            && self.transmitting.is_none_or(|(_, departure)| departure <= time);
        let found = Found {
            time,
            ecn_capable: offer.ecn_capable,
            waiting: self.waiting_bytes,
            idle,
            missed: if idle { self.missed(time) } else { 0 },
        };
        let (service, promised) = (&self.service, self.promised);
        let delay = |at: u64| service.begins(at, promised).map_or(u64::MAX, |begin| begin - at);
        let verdict = self.watch.on_enter(&found, delay);
        let fits = idle || self.fits(bytes, 1);
        if drop == Some(Reason::Aqm) && !self.watch.decides_late() {
            if !verdict.may_drop {
                find(Rule::Drop, "was dropped by an AQM without a cause".to_string());
            }
            return self.remove(name);
        }
        if verdict.must_drop {
            find(Rule::Drop, "was not dropped by RED beyond its last threshold".to_string());
        }
        if drop == Some(Reason::Queue) && !self.chooses() {
            if fits {
                find(Rule::Drop, format!("was dropped by a queue with room: {}", self.queue()));
            }
            return self.remove(name);
        }
        if !fits && !self.chooses() {
            find(
                Rule::Buffer,
                format!("{bytes} bytes were let into a full queue: {}", self.queue()),
            );
        }
        let offer = self.offers.get_mut(name);
        (offer.may_mark, offer.must_mark) = (verdict.may_mark, verdict.must_mark);
        self.wait(name);
        self.note_length(time, findings);
        self.promised = self.promised.max(self.service.work(time)) + work(bytes);
        if self.chooses() {
            self.make_room(name, fits, findings);
        }
    }

    /// Checks drops at entry on a link that chooses: it accepts every packet and drops others until
    /// all fit.
    fn make_room(&mut self, name: u64, fits: bool, findings: &mut Vec<Finding>) {
        let (line, time) = (self.offers.get(name).line, self.offers.get(name).time);
        let next_line =
            if name + 1 < self.offers.end() { self.offers.get(name + 1).line } else { u64::MAX };
        let mut dropped = 0;
        while let Some(victim) = self.first_late_drop() {
            let offer = self.offers.get(victim);
            let ours = offer.was_dropped(time, Reason::Queue)
                && offer.dropped.is_some_and(|drop| drop.line < next_line);
            if !ours {
                break;
            }
            self.late_drops.pop_front();
            self.stop_waiting(victim);
            self.remove(victim);
            dropped += 1;
        }
        if fits && dropped > 0 {
            let text = format!("{dropped} packets were dropped by a queue with room");
            findings.push(Finding::new(Rule::Drop, text).at(line, time));
        }
        if !fits && !self.fits(0, 0) {
            let text = format!("a full queue dropped too few packets: {}", self.queue());
            findings.push(Finding::new(Rule::Buffer, text).at(line, time));
        }
    }

    /// Returns whether this much more would fit into the buffer.
    fn fits(&self, bytes: u64, packets: u64) -> bool {
        match self.head.buffer {
            _ if matches!(self.head.rate, Rate::Unlimited) => true,
            Buffer::Unlimited => true,
            Buffer::Bytes(limit) => self.waiting_bytes + bytes <= limit,
            Buffer::Packets(limit) => self.waiting_packets + packets <= limit,
        }
    }

    fn queue(&self) -> String {
        let (packets, bytes) = (self.waiting_packets, self.waiting_bytes);
        format!("{packets} packets with {bytes} bytes wait, it holds {:?}", self.head.buffer)
    }

    /// Returns the number of packets of 1500 bytes that could have been sent since the link became
    /// idle.
    fn missed(&self, time: u64) -> u64 {
        let since = self.idle_since.min(time);
        let work = self.service.work(time) - self.service.work(since);
        u64::try_from(work / work_of_typical()).unwrap_or(u64::MAX)
    }

    /// Serves the next packet from `begin` on. Returns false if it is not known yet which one.
    pub(super) fn serve(&mut self, begin: u64, findings: &mut Vec<Finding>) -> bool {
        if self.take_drops(begin, findings) {
            return true;
        }
        let name = if self.chooses() {
            match self.next_in_order(begin, findings) {
                Ok(name) => name,
                Err(goes_on) => return goes_on,
            }
        } else {
            self.head_name
        };
        let offer = self.offers.get(name);
        if !offer.waits() {
            return true;
        }
        let (entered, bytes) = (offer.time, offer.bytes);
        self.stop_waiting(name);
        self.judge_taken(name, begin);
        let departure = self.occupy(entered, bytes, begin);
        if self.head.reorder {
            let plain = departure.saturating_add(self.delay_at(departure));
            let before = if self.head.delay_reorder { 0 } else { self.earliest };
            self.earliest = before.max(plain);
        }
        self.offers.get_mut(name).serve(departure, self.earliest);
        self.transmitting = Some((name, departure));
        self.idle_since = departure;
        self.note_length(begin, findings);
        true
    }

    /// Gives rate and device to a packet whose service begins. Returns its departure.
    fn occupy(&mut self, entered: u64, bytes: u64, begin: u64) -> u64 {
        let ready = entered.max(self.pauses.resumed(begin));
        self.done = self.done.max(self.service.work(ready)) + work(bytes);
        let departure = match &self.service {
            Service::Unlimited => begin,
            service => service.when(self.done).unwrap_or(u64::MAX),
        };
        if self.head.device.is_some() {
            self.device.push_back((departure, bytes));
        }
        departure
    }

    /// Returns when the device below the AQM has room, or `None` for never. The device takes
    /// packets in order, so once there is room it remains until a packet is taken.
    pub(super) fn device_room(&mut self) -> Option<u64> {
        let full = |bytes: u64, packets: usize| match self.head.device {
            Some(Buffer::Bytes(limit)) => bytes >= limit,
            Some(Buffer::Packets(limit)) => packets as u64 >= limit,
            _ => false,
        };
        let mut bytes = self.device.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let mut room = 0;
        let mut gone = 0;
        while full(bytes, self.device.len() - gone) {
            let (departure, of) = self.device[gone];
            (room, bytes, gone) = (departure, bytes - of, gone + 1);
        }
        // Those that departed earlier are not needed again.
        self.device.drain(..gone.saturating_sub(1));
        (room < u64::MAX).then_some(room)
    }

    /// Returns the packet that leaves next by the link's own choice, or else whether the model can
    /// continue without it.
    fn next_in_order(&mut self, begin: u64, findings: &mut Vec<Finding>) -> Result<u64, bool> {
        let Some(&name) = self.order.front() else { return Err(false) };
        if name < self.next {
            self.order.pop_front();
            return Ok(name);
        }
        let entered = self.offers.get(name).time;
        if self.gate.outage(self.outages) <= entered {
            return Err(false);
        }
        let text = format!("idled from {begin} ns until {entered} ns while packets waited");
        findings.push(Finding::new(Rule::Late, text));
        self.not_before = entered;
        Err(true)
    }

    /// Processes a packet that is taken from the queue. Returns whether it may be dropped.
    fn judge_taken(&mut self, name: u64, time: u64) -> bool {
        if !self.watch.decides_late() {
            return false;
        }
        let offer = self.offers.get(name);
        let taken = Taken {
            time,
            sojourn: time.saturating_sub(offer.time),
            bytes: offer.bytes,
            left: self.waiting_bytes,
            ecn_capable: offer.ecn_capable,
            owner: offer.owner,
        };
        let verdict = self.watch.on_taken(&taken);
        self.offers.get_mut(name).may_mark = verdict.may_mark;
        verdict.may_drop
    }

    /// Removes the packets that the discipline dropped when it served at `begin`. Returns whether
    /// there were any.
    fn take_drops(&mut self, begin: u64, findings: &mut Vec<Finding>) -> bool {
        let mut any = false;
        while let Some((place, name)) = self.first_drop_of_those_judged() {
            let offer = self.offers.get(name);
            if !offer.was_dropped(begin, Reason::Aqm) || !offer.waits() {
                break;
            }
            let line = offer.dropped.map_or(0, |drop| drop.line);
            // At one opportunity several packets may be served before it.
            if !self.chooses() && self.next_begin().is_some() && self.head_name != name {
                break;
            }
            self.late_drops.remove(place);
            self.stop_waiting(name);
            if !self.judge_taken(name, begin) {
                let text = "was dropped by an AQM without a cause".to_string();
                findings.push(Finding::new(Rule::Drop, text).at(line, begin));
            }
            self.remove(name);
            any = true;
        }
        any
    }

    /// Returns the first late drop of a packet that the model has admitted, and its place. The drop
    /// of a packet that a full queue refused at the same time may come before it in the log.
    fn first_drop_of_those_judged(&mut self) -> Option<(usize, u64)> {
        self.first_late_drop();
        let judged = self.late_drops.iter().position(|name| *name < self.next)?;
        Some((judged, self.late_drops[judged]))
    }

    /// Returns the first packet dropped after entry that is not forgotten.
    fn first_late_drop(&mut self) -> Option<u64> {
        let first = self.offers.first();
        while self.late_drops.front().is_some_and(|name| *name < first) {
            self.late_drops.pop_front();
        }
        self.late_drops.front().copied()
    }

    /// Reports drops from before `time` that no packet's service explains.
    pub(super) fn check_late_drops(&mut self, time: u64, findings: &mut Vec<Finding>) {
        while let Some(&name) = self.late_drops.front() {
            let is_known = name < self.next && name >= self.offers.first();
            let offer =
                if name >= self.offers.first() { Some(self.offers.get(name)) } else { None };
            let Some((offer, drop)) = offer.and_then(|offer| Some((offer, offer.dropped?))) else {
                self.late_drops.pop_front();
                continue;
            };
            if !is_known || drop.time >= time {
                break;
            }
            if offer.waits() || offer.served().is_some() {
                let text = format!("was dropped by {} without a cause", word(drop.reason));
                findings.push(Finding::new(Rule::Drop, text).at(drop.line, drop.time));
                if offer.waits() {
                    self.stop_waiting(name);
                }
                self.remove(name);
            }
            self.late_drops.pop_front();
        }
    }

    /// Processes an outage: everything that has not departed is dropped.
    pub(super) fn go_down(&mut self, from: u64, findings: &mut Vec<Finding>) {
        self.outages += 1;
        let mut cut_off = Vec::new();
        for offer in self.offers.iter_mut() {
            let stays = match offer.served() {
                Some((departure, _)) => departure <= from,
                None if offer.waits() => {
                    cut_off.push((offer.time, offer.bytes));
                    false
                }
                None => continue,
            };
            let dropped = offer.was_dropped(from, Reason::Down);
            if stays == dropped {
                let text = if stays {
                    "was dropped by an outage after it had departed"
                } else {
                    "was not dropped by an outage that cut it off"
                };
                findings.push(Finding::drop(text).at(offer.line, offer.time));
            }
            if !stays || dropped {
                offer.go();
            }
        }
        if self.any_waited(&cut_off, from) {
            self.watch.on_waiting_lost();
        }
        (self.waiting_bytes, self.waiting_packets) = (0, 0);
        self.note_length(from, findings);
        let offers = &self.offers;
        self.order.retain(|name| offers.get(*name).time >= from);
        self.done = self.done.min(self.service.work(from));
        self.promised = self.done;
        self.transmitting = None;
        self.device.clear();
        self.earliest = 0;
        self.idle_since = self.idle_since.min(from);
    }

    /// Returns whether any of these packets, by entry and bytes, had to wait before `until`. Which
    /// of them were in service is unknown where the link chooses, but until one has to wait there
    /// is nothing to choose.
    fn any_waited(&mut self, packets: &[(u64, u64)], until: u64) -> bool {
        packets.iter().take_while(|(entered, _)| *entered < until).any(|&(entered, bytes)| {
            let begin = self.begins(entered).unwrap_or(u64::MAX);
            self.occupy(entered, bytes, begin);
            begin > entered
        })
    }

    pub(super) fn wait(&mut self, name: u64) {
        let offer = self.offers.get_mut(name);
        offer.wait();
        self.waiting_packets += 1;
        self.waiting_bytes += offer.bytes;
    }

    pub(super) fn stop_waiting(&mut self, name: u64) {
        self.waiting_packets -= 1;
        self.waiting_bytes -= self.offers.get(name).bytes;
        // The packet stays in all lists; its stage marks it as gone.
        self.offers.get_mut(name).go();
    }

    fn remove(&mut self, name: u64) {
        self.offers.get_mut(name).go();
    }
}

fn work(bytes: u64) -> u128 {
    u128::from(bytes) * WORK_PER_BYTE
}

fn work_of_typical() -> u128 {
    work(1500)
}

pub(super) fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Loss => "loss",
        Reason::Down => "an outage",
        Reason::Policer => "the policer",
        Reason::Queue => "a full queue",
        Reason::Aqm => "an AQM",
        Reason::Breaker => "a circuit breaker",
    }
}
