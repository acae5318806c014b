//! Rows reach the sink while the run lasts.

use crate::host::scenario;
use crate::{TEN_MEGABIT, text};
use knee_kernel::{Control, KernelError, run_to};
use knee_record::{
    ClassSample, ConnectionRecord, Error, FlowSample, LinkSample, SampleSink, write_text,
};
use knee_testbed::TestbedError;
use knee_trials::{Pauses, Skipped, turn};
use std::path::Path;
use std::sync::atomic::Ordering;

/// Notes when the first row of each kind comes, in the time of the run, and how many come. From one
/// row of a flow on, nothing can be stored.
struct Noting<'c> {
    control: &'c Control,
    first_ns: [Option<u64>; 2],
    rows: [usize; 2],
    connections: usize,
    full_after: usize,
}

impl Noting<'_> {
    fn note(&mut self, kind: usize) -> Result<(), Error> {
        self.first_ns[kind].get_or_insert(self.control.now_ns.load(Ordering::Relaxed));
        self.rows[kind] += 1;
        if self.rows[0] > self.full_after {
            return write_text(Path::new("/proc/nowhere/row"), "");
        }
        Ok(())
    }
}

impl SampleSink for Noting<'_> {
    fn flow(&mut self, _: &FlowSample) -> Result<(), Error> {
        self.note(0)
    }

    fn path(&mut self, _: &FlowSample) -> Result<(), Error> {
        Ok(())
    }

    fn link(&mut self, _: &LinkSample) -> Result<(), Error> {
        self.note(1)
    }

    fn class(&mut self, _: &ClassSample) -> Result<(), Error> {
        Ok(())
    }

    fn connection(&mut self, _: &ConnectionRecord) -> Result<(), Error> {
        self.connections += 1;
        Ok(())
    }
}

fn noting(control: &Control, full_after: usize) -> Noting<'_> {
    Noting { control, first_ns: [None; 2], rows: [0; 2], connections: 0, full_after }
}

fn a_millisecond_apart(duration: &str) -> String {
    let text = text(duration, TEN_MEGABIT, "cc = \"cubic\"");
    format!("sample_interval = \"1 ms\"\n{text}")
}

/// They come during the run, all of them, and the records have the same while they are few.
pub fn rows_reach_the_sink_during_the_run() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(200))?;
    let (scenario, control) = (scenario(&a_millisecond_apart("2 s")), Control::default());
    let mut sink = noting(&control, usize::MAX);
    let records = run_to(&scenario, &control, &mut sink, None).unwrap().records;
    for first_ns in sink.first_ns {
        assert!(first_ns.unwrap() < scenario.duration.as_nanos(), "{first_ns:?}");
    }
    assert_eq!(sink.rows, [records.samples.len(), records.links.len()]);
    assert!(sink.rows.iter().all(|rows| *rows > 100), "{:?}", sink.rows);
    assert_eq!((sink.connections, records.connections.len()), (1, 1));
    Ok(())
}

/// A run whose rows cannot be stored ends at once, and says why.
pub fn a_full_disk_ends_the_run() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(200))?;
    let (scenario, control) = (scenario(&a_millisecond_apart("60 s")), Control::default());
    let ended = run_to(&scenario, &control, &mut noting(&control, 100), None);
    let error = ended.unwrap_err();
    assert!(matches!(error, KernelError::Testbed(TestbedError::Samples(_))), "{error}");
    assert!(error.to_string().contains("/proc/nowhere"), "{error}");
    assert!(control.now_ns.load(Ordering::Relaxed) < scenario.duration.as_nanos());
    Ok(())
}
