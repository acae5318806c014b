//! The sending end over TCP subflows.

use super::sending::{Assignment, DataAck, MultipathCounters, Sending};
use super::window::SharedWindow;
use crate::config::{Config, ReceiveWindow};
use crate::sender::{Room, Sender, Transmit};
use crate::wire::{Ack, AckDetails, Segment};
use knee_cc::{Controller, Peer};
use knee_sched::{PATHS_MAX, Path, PathSet, Scheduler, Status};
use knee_units::{Rate, Time};
use std::collections::VecDeque;

/// Answer to [`MultipathSender::poll_transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipathTransmit {
    /// Send this on this path; then ask again.
    Segment(usize, Segment),
    /// Nothing before this time, unless an ACK comes.
    At(Time),
    /// Nothing until an ACK, a timer or the application.
    Nothing,
}

/// A packet of the connection as a subflow carries it.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    chunk: u64,
    offset: u64,
    len: u16,
}

/// One path's TCP.
struct Subflow {
    sender: Sender,
    backup: bool,
    /// The mapping of each segment from the first unacknowledged on.
    mappings: VecDeque<Mapping>,
    /// Segment of the first mapping.
    first: u32,
    /// Delivery rate after the last ACK.
    rate: Option<Rate>,
    /// Pacing holds the next segment until then.
    paced_until: Time,
}

/// The sending end of a connection over several TCP subflows.
pub struct MultipathSender {
    sending: Sending,
    subflows: Vec<Option<Subflow>>,
    /// What the scheduler sees of them.
    paths: Vec<Path>,
    /// Something happened on these paths since `paths` was brought up to
    /// date.
    stale: PathSet,
    /// Paths on which something was sent or heard since their timers were
    /// asked for.
    touched: PathSet,
    /// When `paths` was brought up to date last.
    viewed_at: Time,
    /// The status of a path changed since the scheduler was told.
    changed: bool,
    config: Config,
    coupled: bool,
    established: bool,
}

impl MultipathSender {
    /// A sender over so many paths, none of which is up yet.
    pub fn new(
        config: &Config,
        paths: usize,
        reinjection: bool,
        scheduler: Box<dyn Scheduler>,
    ) -> MultipathSender {
        debug_assert!(paths <= PATHS_MAX);
        let window = SharedWindow::new(config.receive_window).bytes();
        MultipathSender {
            sending: Sending::new(config.mss, window, reinjection, scheduler),
            subflows: (0..paths).map(|_| None).collect(),
            paths: vec![Path { status: Status::Down, ..Path::default() }; paths],
            stale: PathSet::default(),
            touched: PathSet::default(),
            viewed_at: Time::ZERO,
            changed: true,
            config: Config { receive_window: ReceiveWindow::Unlimited, ..*config },
            coupled: false,
            established: false,
        }
    }

    /// A subflow begins on a path.
    pub fn on_path_up(&mut self, path: usize, backup: bool, controller: Box<dyn Controller>) {
        let sender = Sender::new(&self.config, controller);
        self.coupled |= sender.is_coupled();
        self.subflows[path] = Some(Subflow {
            sender,
            backup,
            mappings: VecDeque::new(),
            first: 0,
            rate: None,
            paced_until: Time::MAX,
        });
        self.sending.on_path_up(path);
        self.note_change();
    }

    /// The subflow on a path is gone, with all that it held.
    pub fn on_path_down(&mut self, path: usize) {
        self.subflows[path] = None;
        self.sending.on_path_down(path);
        self.note_change();
    }

    /// The application gives so many bytes more to send; it never ends with
    /// `u64::MAX`.
    pub fn write(&mut self, bytes: u64) {
        self.sending.write(bytes);
    }

    /// The application sends nothing after what was already cut.
    pub fn stop(&mut self) {
        self.sending.stop();
    }

    /// All that was written has arrived.
    pub fn is_complete(&self) -> bool {
        self.established && self.sending.is_complete()
    }

    /// Bytes of the connection that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sending.acknowledged()
    }

    /// A path is open: data may flow.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// What to send now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> MultipathTransmit {
        if self.viewed_at != now {
            self.viewed_at = now;
            self.doubt_ready_paths();
        }
        while let Some(path) = self.stale.iter().next() {
            if let Some(segment) = self.poll_urgent(now, path) {
                return MultipathTransmit::Segment(path, segment);
            }
            self.refresh_path(now, path);
            self.stale.0 &= !(1 << path);
        }
        if std::mem::take(&mut self.changed) {
            self.sending.on_paths_changed(&self.paths);
        }
        if let Some(assignment) = self.sending.assign(now, &self.paths) {
            let segment = self.carry_out(now, &assignment);
            return MultipathTransmit::Segment(assignment.path, segment);
        }
        self.note_idle();
        let held = self.subflows.iter().flatten().map(|subflow| subflow.paced_until);
        match held.min() {
            None | Some(Time::MAX) => MultipathTransmit::Nothing,
            Some(at) => MultipathTransmit::At(at),
        }
    }

    /// Time has passed: paths that could send are asked again, since their
    /// burst is over and pacing may hold the next one. This is the only place
    /// that minds the time: what is `ready` was asked for now.
    #[inline]
    fn doubt_ready_paths(&mut self) {
        for (index, view) in self.paths.iter().enumerate() {
            if view.ready {
                self.stale.insert(index);
            }
        }
    }

    /// Something happened on one path.
    #[inline]
    fn note_event(&mut self, path: usize) {
        self.stale.insert(path);
        self.touched.insert(path);
    }

    /// Something may have happened on every path.
    fn note_change(&mut self) {
        (0..self.paths.len()).for_each(|path| self.stale.insert(path));
        self.touched = self.stale;
    }

    /// The handshake, a probe or a retransmission of a subflow.
    #[inline]
    fn poll_urgent(&mut self, now: Time, path: usize) -> Option<Segment> {
        let waits = !self.established && !self.may_begin(path);
        let subflow = self.subflows[path].as_mut()?;
        subflow.paced_until = Time::MAX;
        if waits {
            return None;
        }
        match subflow.sender.poll_urgent(now) {
            Transmit::Segment(segment) => {
                self.touched.insert(path);
                return Some(segment);
            }
            Transmit::At(at) => subflow.paced_until = at,
            Transmit::Nothing => {}
        }
        None
    }

    /// The first subflow opens the connection; the others join it when it is
    /// open, or when the first is late.
    fn may_begin(&self, path: usize) -> bool {
        let first = self.subflows.iter().position(Option::is_some);
        first == Some(path) || self.first_is_late()
    }

    /// The first path does not answer the handshake: others try as well.
    fn first_is_late(&self) -> bool {
        let first = self.subflows.iter().flatten().next();
        first.is_some_and(|subflow| subflow.sender.timeouts_in_a_row() > 0)
    }

    /// Brings the scheduler's view of a path up to date.
    #[inline]
    fn refresh_path(&mut self, now: Time, path: usize) {
        let suspect = self.sending.is_suspect(path);
        let view = &mut self.paths[path];
        let Some(Subflow { sender, backup, rate, paced_until, .. }) = &mut self.subflows[path]
        else {
            self.changed |= view.status != Status::Down;
            *view = Path { status: Status::Down, ..Path::default() };
            return;
        };
        let before = view.status;
        view.status = match (sender.is_established(), suspect, *backup) {
            (false, ..) => Status::Down,
            (_, true, _) => Status::Suspect,
            (_, _, true) => Status::Backup,
            _ => Status::Active,
        };
        self.changed |= view.status != before;
        let rtt = sender.rtt();
        view.srtt = rtt.smoothed();
        view.rtt_variation = rtt.deviation();
        view.min_rtt = rtt.minimum();
        view.rate = *rate;
        show_room(now, sender, paced_until, view);
    }

    #[inline]
    fn carry_out(&mut self, now: Time, assignment: &Assignment) -> Segment {
        let path = assignment.path;
        let subflow = self.subflows[path].as_mut();
        let subflow = subflow.expect("a path that is ready has a subflow");
        let segment = subflow.sender.send(now, assignment.len);
        subflow.paced_until = Time::MAX;
        self.touched.insert(path);
        let Assignment { chunk, offset, len, .. } = *assignment;
        subflow.mappings.push_back(Mapping { chunk, offset, len });
        // Sending changes nothing else of the view.
        let Subflow { sender, paced_until, .. } = subflow;
        show_room(now, sender, paced_until, &mut self.paths[path]);
        if let Some(holder) = self.sending.take_penalty()
            && let Some(subflow) = &mut self.subflows[holder]
        {
            subflow.sender.penalise(now);
            self.refresh_path(now, holder);
        }
        segment
    }

    fn note_idle(&mut self) {
        for (subflow, path) in self.subflows.iter_mut().zip(&self.paths) {
            if let Some(subflow) = subflow
                && path.ready
            {
                subflow.sender.note_idle();
            }
        }
    }

    /// Processes an ACK that came on a path.
    #[inline]
    pub fn on_ack(
        &mut self,
        now: Time,
        path: usize,
        ack: &Ack,
        details: Option<&AckDetails>,
        data: DataAck,
    ) {
        if self.coupled {
            self.show_peers(path);
        }
        let Some(subflow) = &mut self.subflows[path] else { return };
        subflow.sender.on_ack(now, ack, details);
        if !self.established && subflow.sender.is_established() {
            self.established = true;
            self.stale = PathSet(u8::MAX >> (PATHS_MAX - self.paths.len()));
        }
        subflow.rate = subflow.sender.delivery_rate();
        let first = subflow.sender.first();
        while subflow.first != first {
            subflow.first = subflow.first.wrapping_add(1);
            if let Some(mapping) = subflow.mappings.pop_front() {
                self.sending.on_delivered(mapping.chunk);
            }
        }
        self.sending.on_heard(now, path, subflow.sender.is_waiting());
        self.sending.on_data_ack(data);
        self.note_event(path);
    }

    fn show_peers(&mut self, path: usize) {
        let mut peers = [Peer::default(); PATHS_MAX];
        for (peer, subflow) in peers.iter_mut().zip(&self.subflows) {
            if let Some(subflow) = subflow {
                *peer = subflow.sender.peer();
            }
        }
        let count = self.subflows.len();
        if let Some(subflow) = &mut self.subflows[path] {
            subflow.sender.on_peers(&peers[..count], path);
        }
    }

    /// When a subflow's timer is due; [`Time::MAX`]: never.
    #[inline]
    pub fn subflow_timer(&self, path: usize) -> Time {
        self.subflows[path].as_ref().map_or(Time::MAX, |subflow| subflow.sender.timer())
    }

    /// A subflow's timer is due.
    pub fn on_subflow_timer(&mut self, now: Time, path: usize) {
        if let Some(subflow) = &mut self.subflows[path] {
            subflow.sender.on_timer(now);
        }
        self.note_change();
    }

    /// Time has passed until pacing may let a path send.
    #[inline]
    pub fn on_pacing_timer(&mut self, now: Time) {
        for (path, subflow) in self.subflows.iter().enumerate() {
            if subflow.as_ref().is_some_and(|subflow| subflow.paced_until <= now) {
                self.stale.insert(path);
            }
        }
    }

    /// Paths whose timers may have changed since the last call.
    #[inline]
    pub fn take_touched(&mut self) -> PathSet {
        std::mem::take(&mut self.touched)
    }

    /// When [`on_timer`](Self::on_timer) is due because of these paths;
    /// [`Time::MAX`]: never.
    #[inline]
    pub fn timer(&self, among: PathSet) -> Time {
        self.sending.timer(&self.paths, among)
    }

    /// The same because of any path.
    pub fn timer_of_all(&self) -> Time {
        self.timer(PathSet(u8::MAX))
    }

    /// The connection's own timer is due: a path may have fallen silent.
    pub fn on_timer(&mut self, now: Time) {
        (0..self.paths.len()).for_each(|path| self.refresh_path(now, path));
        self.sending.on_timer(now, &self.paths);
        self.note_change();
    }

    /// First byte within the connection and length of a subflow's segment
    /// that is not acknowledged.
    #[inline]
    pub fn mapping(&self, path: usize, number: u32) -> Option<(u64, u16)> {
        let subflow = self.subflows[path].as_ref()?;
        let mapping = subflow.mappings.get(number.wrapping_sub(subflow.first) as usize)?;
        Some((mapping.offset, mapping.len))
    }

    /// A path's sender, if the path is up.
    #[inline]
    pub fn subflow(&self, path: usize) -> Option<&Sender> {
        self.subflows[path].as_ref().map(|subflow| &subflow.sender)
    }

    /// How many paths there can be.
    pub fn path_count(&self) -> usize {
        self.subflows.len()
    }

    /// The largest smoothed RTT of the paths that are up.
    pub fn slowest_rtt(&self) -> Time {
        let all = self.subflows.iter().flatten().map(|subflow| subflow.sender.rtt().smoothed());
        all.max().unwrap_or(Time::ZERO)
    }

    /// Counters since the start.
    pub fn counters(&self) -> &MultipathCounters {
        self.sending.counters()
    }
}

/// Brings up to date what sending changes of a path: also the window, which
/// begins anew after an idle time (RFC 2861).
#[inline]
fn show_room(now: Time, sender: &mut Sender, paced_until: &mut Time, view: &mut Path) {
    let room = sender.room(now);
    view.ready = room == Room::Now;
    if let Room::At(at) = room {
        *paced_until = at;
    }
    // Schedulers reckon with it: none is as much as a receiver can offer.
    view.window = sender.window().min(ReceiveWindow::LARGEST_BYTES);
    view.in_flight = sender.in_flight();
    view.sent = sender.counters().sent_bytes;
}
