//! The sending end over TCP subflows.

use super::mapping::{Mapping, Mappings};
use super::views::Views;
use super::{DataAck, shared_window};
use crate::config::{Config, ReceiveWindow};
use crate::sender::Sender;
use crate::wire::{Ack, AckDetails};
use knee_cc::{Controller, Peer};
use knee_multipath::sched::{PATHS_MAX, PathSet, Scheduler};
use knee_multipath::{
    ByteCount, CapacityMeter, MultipathCounters, Release, Sending, Settings, SilenceRule,
};
use knee_units::Time;

/// TCP state of one path.
pub(super) struct Subflow {
    pub sender: Sender,
    pub backup: bool,
    pub mappings: Mappings,
    pub capacity: CapacityMeter,
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

/// Deadlines of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTimers {
    /// When [`MultipathSender::on_subflow_timer`] is due; [`Time::MAX`] for never.
    pub subflow: Time,
    /// When [`MultipathSender::on_timer`] is due because of the path; [`Time::MAX`] for never.
    pub silence: Time,
}

/// The sending end of a connection over several TCP subflows.
pub struct MultipathSender {
    pub(super) sending: Sending<ByteCount>,
    pub(super) subflows: [Option<Box<Subflow>>; PATHS_MAX],
    pub(super) views: Views,
    /// Paths that sent or received something since their timers were last read.
    pub(super) touched: PathSet,
    /// Paths on which bursts were sent since then, while an answer was expected.
    pub(super) sent: PathSet,
    config: Config,
    coupled: bool,
    /// What coupled controllers see of the paths.
    peers: Vec<Peer>,
    established: bool,
    /// Whether the scheduler needs the paths' capacity.
    pub(super) looks_ahead: bool,
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
            silence: SilenceRule {
                ack_delay: SilenceRule::TCP.ack_delay.max(config.ack_delay),
                ..SilenceRule::TCP
            },
        };
        MultipathSender {
            sending: Sending::new(settings, ByteCount::default(), scheduler),
            subflows: [const { None }; PATHS_MAX],
            views: Views::new(paths),
            touched: PathSet::default(),
            sent: PathSet::default(),
            config: Config { receive_window: ReceiveWindow::Unlimited, ..*config },
            coupled: false,
            peers: vec![Peer::default(); paths],
            established: false,
            looks_ahead,
        }
    }

    /// Starts a subflow on a path.
    pub fn on_path_up(&mut self, path: usize, backup: bool, controller: Box<dyn Controller>) {
        self.settle();
        let sender = Sender::new(&self.config, controller);
        self.coupled |= sender.is_coupled();
        self.subflows[path] = Some(Box::new(Subflow {
            sender,
            backup,
            mappings: Mappings::default(),
            capacity: CapacityMeter::default(),
            window_end: 0,
        }));
        self.sending.on_path_up(path);
        self.note_change();
    }

    /// Removes the subflow on a path, with all its data.
    pub fn on_path_down(&mut self, path: usize) {
        self.settle();
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

    /// Processes an ACK that arrived on a path. If there is certainly nothing to send,
    /// nothing changed but the timers of this path: they are returned, and it does not
    /// count as [touched](Self::take_touched).
    #[inline(always)]
    pub fn on_ack(
        &mut self,
        now: Time,
        path: usize,
        ack: &Ack,
        details: Option<&AckDetails>,
        data: DataAck,
    ) -> Option<PathTimers> {
        if self.coupled {
            self.show_peers(path);
        }
        let Some(subflow) = &mut self.subflows[path] else { return None };
        let is_update = subflow.is_window_update(ack, details, data);
        subflow.window_end = subflow.window_end.max(data.window_end);
        if !is_update {
            subflow.sender.on_ack(now, ack, details);
        }
        if !self.established && subflow.sender.is_established() {
            self.established = true;
            self.views.doubt_all();
        }
        if self.looks_ahead {
            let Subflow { sender, capacity, .. } = &mut **subflow;
            let (srtt, mss) = (sender.rtt().smoothed(), u64::from(self.config.mss));
            capacity.on_ack(now, sender.delivered(), sender.last_acked_sent_at(), srtt, mss);
        }
        self.sending.on_credit(data.window_end);
        self.sending.on_data_ack(data.next);
        self.sending.on_heard(now, path, subflow.sender.is_waiting());
        if self.views.still_wait(now, path, subflow) && self.sending.waits_for_room() {
            return Some(timers(&self.sending, path, &subflow.sender));
        }
        self.touched.insert(path);
        None
    }

    /// Tells the connection which packets its paths have delivered. It needs that only
    /// before decisions; what the peer has acknowledged by then costs nothing.
    #[inline]
    pub(super) fn settle(&mut self) {
        let count = self.path_count();
        for subflow in self.subflows[..count].iter_mut().flatten() {
            subflow.mappings.acknowledge(subflow.sender.first(), |chunks, end| {
                self.sending.on_delivered_run(chunks, end);
            });
        }
    }

    /// Records a possible event on every path.
    fn note_change(&mut self) {
        self.views.doubt_all();
        self.touched = self.views.stale;
    }

    fn show_peers(&mut self, path: usize) {
        for (peer, subflow) in self.peers.iter_mut().zip(&self.subflows) {
            *peer = subflow.as_ref().map_or(Peer::default(), |subflow| subflow.sender.peer());
        }
        if let Some(subflow) = &mut self.subflows[path] {
            subflow.sender.on_peers(&self.peers, path);
        }
    }

    /// Returns the timers of a path.
    #[inline]
    pub fn timers(&self, path: usize) -> PathTimers {
        match &self.subflows[path] {
            Some(subflow) => timers(&self.sending, path, &subflow.sender),
            None => PathTimers { subflow: Time::MAX, silence: Time::MAX },
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
        self.views.doubt_paced(now);
    }

    /// Returns the paths whose timers may have changed since the last call; in addition
    /// those of which only the subflow's timer may have.
    #[inline]
    pub fn take_touched(&mut self) -> (PathSet, PathSet) {
        (std::mem::take(&mut self.touched), std::mem::take(&mut self.sent))
    }

    /// Returns when [`on_timer`](Self::on_timer) is due because of any path.
    pub fn timer_of_all(&self) -> Time {
        (0..self.path_count()).map(|path| self.timers(path).silence).min().unwrap_or(Time::MAX)
    }

    /// Processes the expiry of the connection's own timer: a path may have fallen silent.
    pub fn on_timer(&mut self, now: Time) {
        (0..self.path_count()).for_each(|path| self.refresh_path(now, path));
        self.settle();
        self.sending.on_timer(now, &self.views.paths);
        self.note_change();
    }

    /// Returns the mapping of an unacknowledged segment of a subflow.
    #[inline]
    pub fn mapping(&self, path: usize, segment: u32) -> Option<&Mapping> {
        self.subflows[path].as_ref()?.mappings.find(segment)
    }

    /// Returns the sender of a path, if the path is up.
    #[inline]
    pub fn subflow(&self, path: usize) -> Option<&Sender> {
        self.subflows[path].as_ref().map(|subflow| &subflow.sender)
    }

    /// Returns the number of paths, up or not.
    #[inline]
    pub fn path_count(&self) -> usize {
        self.views.paths.len()
    }

    /// Returns the largest smoothed RTT of the paths that are up.
    pub fn slowest_rtt(&self) -> Time {
        let subflows = self.subflows[..self.path_count()].iter().flatten();
        let all = subflows.map(|subflow| subflow.sender.rtt().smoothed());
        all.max().unwrap_or(Time::ZERO)
    }

    /// Returns the counters since the start.
    pub fn counters(&self) -> &MultipathCounters {
        self.sending.counters()
    }
}

#[inline(always)]
fn timers(sending: &Sending<ByteCount>, path: usize, sender: &Sender) -> PathTimers {
    let (rtt, in_flight) = (sender.rtt(), sender.in_flight());
    let (srtt, rtt_variation) = (rtt.smoothed(), rtt.deviation());
    let silence = sending.timer_of(path, srtt, rtt_variation, in_flight);
    PathTimers { subflow: sender.timer(), silence }
}
