//! Creates the row of a connection that has ended or is cut off.

use crate::applications::Totals;
use crate::connections::{Connection, Ends};
use crate::log::PacketLog;
use crate::simulation::Simulation;
use knee_cc::Decision;
use knee_record::{ConnectionRecord, ControllerSource};
use knee_transport::Sender;
use knee_units::{Rate, Time};

impl<L: PacketLog> Simulation<'_, L> {
    /// Adds the row of a connection whose counters change no more.
    pub(crate) fn note_closed(&mut self, connection: usize) {
        let row = self.connection_record(connection);
        self.closed.push(row);
    }

    /// Adds the rows of connections cut off by the end of the run, and of those over several paths
    /// that have ended since: a path goes on with what it sent and another delivered.
    pub(crate) fn note_cut_off(&mut self) {
        for flow in 0..self.flows.len() {
            let live: Vec<u32> = self.flows[flow].live.values().copied().collect();
            for index in live {
                let Connection { completed, ends, .. } = &self.connections[index as usize];
                if completed.is_none() || matches!(ends, Ends::Multipath(_)) {
                    self.note_closed(index as usize);
                }
            }
        }
    }

    fn connection_record(&self, connection: usize) -> ConnectionRecord {
        let mut totals = Totals::default();
        totals.add(self, connection);
        let state = &self.connections[connection];
        let flow = &self.flows[state.flow as usize];
        let counters = &totals.counters;
        let acknowledged = self.acknowledged(connection);
        // What was stopped before its end has no completion time.
        let completed = state.completed.filter(|_| self.is_whole(connection));
        let row = ConnectionRecord {
            connection: state.number.into(),
            flow: Some(state.flow),
            workload: flow.workload.clone(),
            start_ns: Some(state.started.as_nanos()),
            end_ns: state.completed.unwrap_or(self.now).as_nanos(),
            completion_ns: completed.map(|at| (at - state.started).as_nanos()),
            size_bytes: Some(state.size).filter(|size| *size < u64::MAX),
            delivered_bytes: Some(totals.delivered_bytes),
            sent_bytes: Some(counters.sent_bytes),
            retransmitted_bytes: Some(counters.retransmitted_bytes),
            sent_packets: Some(counters.sent_segments),
            retransmitted_packets: Some(counters.retransmitted_segments),
            delivered_packets: Some(totals.acknowledged_segments),
            marked_packets: Some(totals.marked_segments),
            rtt_min_ns: totals.rtt.map(|(min, _)| min.as_nanos()),
            timeouts: Some(counters.timeouts),
            dsacks: Some(counters.duplicates),
            reorderings: Some(totals.reorderings),
            mss_bytes: Some(self.scenario.flows[state.flow as usize].transport.mss.into()),
            cc: flow.controller.clone(),
            cc_source: ControllerSource::Scenario,
            ..ConnectionRecord::default()
        };
        match &state.ends {
            Ends::Plain(ends) => self.with_state(row, &self.senders[*ends as usize]),
            Ends::Multipath(_) => ConnectionRecord { acked_bytes: Some(acknowledged), ..row },
        }
    }

    /// Fills in the fields that cannot be summed over subflows.
    fn with_state(&self, row: ConnectionRecord, sender: &Sender) -> ConnectionRecord {
        let measured = |time: Time| Some(time.as_nanos()).filter(|time| *time > 0);
        let rate = sender.delivery_rate();
        let window = Some(sender.window()).filter(|window| *window != Decision::NO_WINDOW);
        ConnectionRecord {
            acked_bytes: Some(sender.acknowledged()),
            srtt_ns: measured(sender.rtt().smoothed()),
            rttvar_ns: row.rtt_min_ns.map(|_| sender.rtt().deviation().as_nanos()),
            delivery_rate_bps: rate.map(Rate::as_bits_per_second),
            app_limited: rate.map(|_| sender.rate_was_app_limited()),
            window_bytes: window,
            slow_start_threshold_bytes: sender.controller().state().slow_start_threshold,
            pacing_rate_bps: sender.pacing_rate().map(Rate::as_bits_per_second),
            busy_ns: Some(sender.busy(self.now).as_nanos()),
            receive_limited_ns: Some(sender.receive_limited(self.now).as_nanos()),
            ..row
        }
    }
}
