//! The sending end over TCP subflows.

use super::{DataAck, shared_window};
use crate::config::{Config, ReceiveWindow};
use crate::sender::{Burst, Room, Sender, Transmit};
use crate::wire::{Ack, AckDetails, Segment};
use knee_cc::{Controller, Peer};
use knee_multipath::{
    Assignment, ByteCount, CapacityMeter, MultipathCounters, Release, Ring, Sending, Settings,
    SilenceRule,
};
use knee_sched::{PATHS_MAX, Path, PathSet, Scheduler, Status};
use knee_units::{Rate, Time};

/// Answer to [`MultipathSender::poll_transmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultipathTransmit {
    /// Send this segment on this path, then poll again.
    Segment(usize, Segment),
    /// Send nothing before this time, unless an ACK arrives.
    At(Time),
    /// Send nothing until an ACK, a timer or the application.
    Nothing,
}

/// The mapping of a subflow segment to the connection's data.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    chunk: u64,
    offset: u64,
    len: u16,
}

/// TCP state of one path.
struct Subflow {
    sender: Sender,
    backup: bool,
    /// The mapping of each segment, from the first unacknowledged, by its
    /// number, which wraps in the subflow.
    mappings: Ring<Mapping>,
    /// Delivery rate after the last ACK.
    rate: Option<Rate>,
    capacity: CapacityMeter,
    /// Time until which pacing delays the next segment.
    paced_until: Time,
    /// End of the shared window in the last ACK.
    window_end: u64,
}

impl Subflow {
    /// Whether the ACK only moves the shared window: for the subflow it is not
    /// a duplicate (RFC 5681, section 2, e).
    #[inline]
    fn is_window_update(&self, ack: &Ack, details: Option<&AckDetails>, data: DataAck) -> bool {
        let repeated = ack.number == self.sender.first() && !ack.syn && !ack.congestion_echo;
        repeated && details.is_none() && data.window_end > self.window_end
    }
}

/// The sending end of a connection over several TCP subflows.
pub struct MultipathSender {
    sending: Sending<ByteCount>,
    subflows: Vec<Option<Subflow>>,
    /// The paths as the scheduler sees them.
    paths: Vec<Path>,
    /// Paths with an event since their entry in `paths` was updated.
    stale: PathSet,
    /// Paths that sent or received something since their timers were last read.
    touched: PathSet,
    /// When `paths` was last updated.
    viewed_at: Time,
    /// Whether the status of a path changed since the scheduler was informed.
    changed: bool,
    /// The path that was last given data, if nothing has happened since.
    undisturbed: Option<usize>,
    config: Config,
    coupled: bool,
    established: bool,
    /// Whether the scheduler needs the paths' capacity.
    looks_ahead: bool,
}

impl MultipathSender {
    /// Creates a sender for `paths` paths, none of which is up yet.
    pub fn new(
        config: &Config,
        paths: usize,
        reinjection: bool,
        scheduler: Box<dyn Scheduler>,
    ) -> MultipathSender {
        debug_assert!(paths <= PATHS_MAX);
        let looks_ahead = scheduler.looks_ahead();
        let settings = Settings {
            mss: config.mss.min(u32::from(u16::MAX)) as u16,
            window: shared_window(config.receive_window).bytes(),
            reinjection,
            release: Release::Cumulative,
            silence: SilenceRule::TCP,
        };
        MultipathSender {
            sending: Sending::new(settings, ByteCount::default(), scheduler),
            subflows: (0..paths).map(|_| None).collect(),
            paths: vec![Path { status: Status::Down, ..Path::default() }; paths],
            stale: PathSet::default(),
            touched: PathSet::default(),
            viewed_at: Time::ZERO,
            changed: true,
            undisturbed: None,
            config: Config { receive_window: ReceiveWindow::Unlimited, ..*config },
            coupled: false,
            established: false,
            looks_ahead,
        }
    }

    /// Starts a subflow on a path.
    pub fn on_path_up(&mut self, path: usize, backup: bool, controller: Box<dyn Controller>) {
        let sender = Sender::new(&self.config, controller);
        self.coupled |= sender.is_coupled();
        self.subflows[path] = Some(Subflow {
            sender,
            backup,
            mappings: Ring::default(),
            rate: None,
            capacity: CapacityMeter::default(),
            paced_until: Time::MAX,
            window_end: 0,
        });
        self.sending.on_path_up(path);
        self.note_change();
    }

    /// Removes the subflow on a path, with all its data.
    pub fn on_path_down(&mut self, path: usize) {
        self.subflows[path] = None;
        self.sending.on_path_down(path);
        self.note_change();
    }

    /// Adds `bytes` bytes from the application to send; `u64::MAX` for an endless stream.
    pub fn write(&mut self, bytes: u64) {
        self.sending.source_mut().write(bytes);
    }

    /// Stops the application: nothing is sent beyond the segments already cut.
    pub fn stop(&mut self) {
        self.sending.source_mut().stop();
    }

    /// Whether everything written has arrived.
    pub fn is_complete(&self) -> bool {
        self.established && self.sending.is_complete()
    }

    /// Returns the bytes of the connection that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sending.acknowledged()
    }

    /// Whether a path is open, so that data may flow.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Returns what to send now.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Time) -> MultipathTransmit {
        if self.viewed_at != now {
            self.viewed_at = now;
            self.doubt_ready_paths();
        }
        if !self.stale.is_empty() {
            self.undisturbed = None;
            if let Some((path, segment)) = self.refresh_stale(now) {
                return MultipathTransmit::Segment(path, segment);
            }
        }
        if self.changed {
            (self.changed, self.undisturbed) = (false, None);
            self.sending.on_paths_changed(&self.paths);
        }
        let same = match self.undisturbed {
            Some(path) if self.paths[path].ready => self.sending.assign_same(now),
            _ => None,
        };
        let assignment = match same {
            None => self.sending.assign(now, &self.paths),
            same => same,
        };
        let Some(assignment) = assignment else { return self.note_idle() };
        self.undisturbed = Some(assignment.path);
        let segment = self.carry_out(now, &assignment);
        MultipathTransmit::Segment(assignment.path, segment)
    }

    /// Returns what successive calls of [`poll_transmit`](Self::poll_transmit)
    /// would send on the path that it last returned: as many segments of the
    /// burst as are certain.
    #[inline]
    pub fn poll_rest(&mut self, now: Time) -> Option<Burst> {
        let path = self.undisturbed.filter(|path| self.paths[*path].ready)?;
        let waiting = self.sending.same_path_bytes(path);
        let Subflow { sender, mappings, paced_until, .. } = self.subflows[path].as_mut()?;
        let count = sender.certain_rest(now, waiting);
        if count == 0 {
            return None;
        }
        for _ in 0..count {
            let Assignment { chunk, offset, len, .. } = self.sending.assign_same(now)?;
            mappings.push(Mapping { chunk, offset, len });
        }
        let is_last = self.sending.unsent() == 0;
        let burst = sender.send_mapped_rest(now, count, is_last);
        show_room(now, sender, paced_until, &mut self.paths[path]);
        Some(burst)
    }

    /// Updates the scheduler's view of the paths with events, unless one of
    /// them has to send something before new data.
    #[inline(never)]
    fn refresh_stale(&mut self, now: Time) -> Option<(usize, Segment)> {
        while let Some(path) = self.stale.iter().next() {
            if let Some(segment) = self.poll_urgent(now, path) {
                return Some((path, segment));
            }
            self.refresh_path(now, path);
            self.stale.0 &= !(1 << path);
        }
        None
    }

    /// Marks paths that could send as stale after time has passed, since their
    /// burst is over and pacing may delay the next one. Only this function
    /// considers the time: a path that is `ready` was checked at the current time.
    #[inline]
    fn doubt_ready_paths(&mut self) {
        for (index, view) in self.paths.iter().enumerate() {
            if view.ready {
                self.stale.insert(index);
            }
        }
    }

    /// Records an event on one path.
    #[inline]
    fn note_event(&mut self, path: usize) {
        self.stale.insert(path);
        self.touched.insert(path);
    }

    /// Records a possible event on every path.
    fn note_change(&mut self) {
        (0..self.paths.len()).for_each(|path| self.stale.insert(path));
        self.touched = self.stale;
    }

    /// Returns a handshake, probe or retransmission segment of a subflow.
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

    /// Whether a subflow may begin its handshake. The first subflow opens the
    /// connection; the others join once it is open, or when the first is late.
    fn may_begin(&self, path: usize) -> bool {
        let first = self.subflows.iter().position(Option::is_some);
        first == Some(path) || self.first_is_late()
    }

    /// Whether the first path does not answer the handshake, so that others try as well.
    fn first_is_late(&self) -> bool {
        let first = self.subflows.iter().flatten().next();
        first.is_some_and(|subflow| subflow.sender.timeouts_in_a_row() > 0)
    }

    /// Updates the scheduler's view of a path.
    #[inline]
    fn refresh_path(&mut self, now: Time, path: usize) {
        let suspect = self.sending.is_suspect(path);
        let view = &mut self.paths[path];
        let Some(Subflow { sender, backup, rate, capacity, paced_until, .. }) =
            &mut self.subflows[path]
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
        if self.looks_ahead {
            view.capacity = capacity.capacity();
            view.doubles = sender.doubles();
        }
        show_room(now, sender, paced_until, view);
    }

    #[inline(always)]
    fn carry_out(&mut self, now: Time, assignment: &Assignment<()>) -> Segment {
        let path = assignment.path;
        let subflow = self.subflows[path].as_mut();
        let subflow = subflow.expect("a path that is ready has a subflow");
        let is_last = self.sending.unsent() == 0;
        let segment = subflow.sender.send(now, assignment.len, is_last);
        subflow.paced_until = Time::MAX;
        self.touched.insert(path);
        let Assignment { chunk, offset, len, .. } = *assignment;
        subflow.mappings.push(Mapping { chunk, offset, len });
        // Sending changes nothing else in the view.
        let Subflow { sender, paced_until, .. } = subflow;
        show_room(now, sender, paced_until, &mut self.paths[path]);
        if let Some(holder) = self.sending.take_penalty() {
            self.penalise(now, holder);
        }
        segment
    }

    #[cold]
    fn penalise(&mut self, now: Time, holder: usize) {
        self.undisturbed = None;
        if let Some(subflow) = &mut self.subflows[holder] {
            subflow.sender.penalise(now);
            self.refresh_path(now, holder);
        }
    }

    /// Called when there is nothing to send now; returns until when,
    /// considering pacing and overdue data.
    #[inline(never)]
    fn note_idle(&mut self) -> MultipathTransmit {
        let blocked = self.sending.is_blocked();
        let mut held = self.sending.overdue_at();
        for (index, subflow) in self.subflows.iter_mut().enumerate() {
            let Some(subflow) = subflow else { continue };
            if self.paths[index].ready {
                subflow.sender.note_idle(blocked);
            }
            held = held.min(subflow.paced_until);
        }
        if held == Time::MAX { MultipathTransmit::Nothing } else { MultipathTransmit::At(held) }
    }

    /// Processes an ACK that arrived on a path.
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
        let is_update = subflow.is_window_update(ack, details, data);
        subflow.window_end = subflow.window_end.max(data.window_end);
        if !is_update {
            subflow.sender.on_ack(now, ack, details);
        }
        if !self.established && subflow.sender.is_established() {
            self.established = true;
            self.stale = PathSet(u8::MAX >> (PATHS_MAX - self.paths.len()));
        }
        subflow.rate = subflow.sender.delivery_rate();
        if self.looks_ahead {
            let Subflow { sender, capacity, .. } = subflow;
            let (srtt, mss) = (sender.rtt().smoothed(), u64::from(self.config.mss));
            capacity.on_ack(now, sender.delivered(), sender.last_acked_sent_at(), srtt, mss);
        }
        self.sending.on_credit(data.window_end);
        // First, because data that it releases is then not processed packet by packet.
        self.sending.on_data_ack(data.next);
        let first = subflow.sender.first();
        while subflow.mappings.first() as u32 != first {
            let Some(mapping) = subflow.mappings.pop() else { break };
            self.sending.on_delivered(mapping.chunk);
        }
        self.sending.on_heard(now, path, subflow.sender.is_waiting());
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

    /// Returns when a subflow's timer is due; [`Time::MAX`] for never.
    #[inline]
    pub fn subflow_timer(&self, path: usize) -> Time {
        self.subflows[path].as_ref().map_or(Time::MAX, |subflow| subflow.sender.timer())
    }

    /// Processes the expiry of a subflow's timer.
    pub fn on_subflow_timer(&mut self, now: Time, path: usize) {
        if let Some(subflow) = &mut self.subflows[path] {
            subflow.sender.on_timer(now);
        }
        self.note_change();
    }

    /// Called at a time when pacing may let a path send.
    #[inline]
    pub fn on_pacing_timer(&mut self, now: Time) {
        for (path, subflow) in self.subflows.iter().enumerate() {
            if subflow.as_ref().is_some_and(|subflow| subflow.paced_until <= now) {
                self.stale.insert(path);
            }
        }
    }

    /// Returns the paths whose timers may have changed since the last call.
    #[inline]
    pub fn take_touched(&mut self) -> PathSet {
        std::mem::take(&mut self.touched)
    }

    /// Returns when [`on_timer`](Self::on_timer) is due because of this path;
    /// [`Time::MAX`] for never.
    #[inline]
    pub fn silence_timer(&self, path: usize) -> Time {
        self.sending.timer_of(path, &self.paths)
    }

    /// Returns when [`on_timer`](Self::on_timer) is due because of any path.
    pub fn timer_of_all(&self) -> Time {
        self.sending.timer(&self.paths)
    }

    /// Processes the expiry of the connection's own timer: a path may have fallen silent.
    pub fn on_timer(&mut self, now: Time) {
        (0..self.paths.len()).for_each(|path| self.refresh_path(now, path));
        self.sending.on_timer(now, &self.paths);
        self.note_change();
    }

    /// Returns the first byte within the connection and the length of an
    /// unacknowledged segment of a subflow.
    #[inline]
    pub fn mapping(&self, path: usize, number: u32) -> Option<(u64, u16)> {
        let subflow = self.subflows[path].as_ref()?;
        let first = subflow.mappings.first();
        let behind_first = number.wrapping_sub(first as u32);
        let mapping = subflow.mappings.get(first + u64::from(behind_first))?;
        Some((mapping.offset, mapping.len))
    }

    /// Returns the sender of a path, if the path is up.
    #[inline]
    pub fn subflow(&self, path: usize) -> Option<&Sender> {
        self.subflows[path].as_ref().map(|subflow| &subflow.sender)
    }

    /// Returns the number of paths, up or not.
    pub fn path_count(&self) -> usize {
        self.subflows.len()
    }

    /// Returns the largest smoothed RTT of the paths that are up.
    pub fn slowest_rtt(&self) -> Time {
        let all = self.subflows.iter().flatten().map(|subflow| subflow.sender.rtt().smoothed());
        all.max().unwrap_or(Time::ZERO)
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> &MultipathCounters {
        self.sending.counters()
    }
}

/// Updates what sending changes in the view of a path, including the window,
/// which restarts after an idle time (RFC 2861).
#[inline]
fn show_room(now: Time, sender: &mut Sender, paced_until: &mut Time, view: &mut Path) {
    let room = sender.room(now);
    view.ready = room == Room::Now;
    if let Room::At(at) = room {
        *paced_until = at;
    }
    // Schedulers use it in calculations: no window counts as the largest receive window.
    view.window = sender.window().min(ReceiveWindow::LARGEST_BYTES);
    view.in_flight = sender.in_flight();
    view.sent = sender.counters().sent_bytes;
}
