//! A constant congestion window: not congestion control but an instrument that
//! draws a path's curve of RTT and delivery rate against bytes in flight
//! (Kleinrock, "Power and deterministic rules of thumb for probabilistic
//! problems in computer communications", ICC 1979).
//!
//! ```text
//!   window = a constant number of packets
//! ```
//! Nothing is paced: sending is clocked by acknowledgements, so that one window
//! is in flight as long as nothing is lost. Loss has no effect either: lost
//! data is sent again in the room that marking it lost frees.
//!
//! Not for shared networks: it ignores congestion.

use crate::pacing::{FASTER, SendQuantum, rate_of_window};
use crate::registry::{Build, Entry};
use crate::{Connection, Controller, Decision, Event, Init, Needs, Sample, State};
use knee_units::registry::{Kind, Parameter, Settings};

pub(crate) const ENTRY: Entry = Entry {
    name: "fixed",
    summary: "a constant window, to measure a path with: it does not react to congestion",
    source: "Kleinrock, ICC 1979 (what it draws)",
    parameters: &[Parameter {
        name: "window",
        kind: Kind::Window,
        default: "10 packets",
        summary: "bytes in flight, in full segments; a BDP is that of the flow's path, its \
                  smallest rate by its RTT over empty queues, as of buffers",
    }],
    presets: &[],
    build: Build::BuiltIn(build),
};

/// Smallest burst, in segments (Linux's `tcp_min_tso_segs`).
const SMALLEST_BURST: u32 = 2;

#[derive(Clone, Debug)]
struct Fixed {
    packets: u64,
    mss: u32,
    quantum: SendQuantum,
    decision: Decision,
}

fn build(settings: &Settings, init: Init) -> Box<dyn Controller> {
    let packets = settings.packets("window").expect("the registry refuses windows in BDP");
    let (quantum, decision) = (SendQuantum::default(), Decision::default());
    let mut fixed = Fixed { packets, mss: init.mss.max(1), quantum, decision };
    fixed.decide(&Connection::default());
    Box::new(fixed)
}

impl Fixed {
    /// Computes the window, and the rate from which segmentation offload sizes bursts.
    #[inline]
    fn decide(&mut self, connection: &Connection) -> Decision {
        let mss = u64::from(self.mss);
        let rate = rate_of_window(self.packets, FASTER, self.mss, connection.srtt);
        let bytes_per_second = rate.map_or(0, |rate| rate.as_bytes_per_second());
        let quantum =
            self.quantum.segments(bytes_per_second, connection.min_rtt, self.mss, SMALLEST_BURST);
        self.decision.window = self.packets * mss;
        self.decision.pacing_rate = rate;
        self.decision.send_quantum = u64::from(quantum) * mss;
        self.decision
    }
}

impl Controller for Fixed {
    fn on_ack(&mut self, _sample: &Sample, connection: &Connection) -> Decision {
        self.mss = connection.mss.max(1);
        self.decide(connection)
    }

    fn on_event(&mut self, _event: Event, connection: &Connection) -> Decision {
        self.decide(connection)
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        State { phase: "fixed", ..State::default() }
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }
}
