//! The rows of a run while it lasts: each goes to a sink at once, and a bounded number of them stays
//! in memory. Threads that must not wait for a disk send their rows to the one that has the sink.

use crate::{
    ClassSample, ConnectionRecord, Connections, Error, FlowSample, LinkSample, Records, SampleSink,
    Series,
};
use std::sync::mpsc::{self, Receiver, Sender};

/// Passes every row on to a sink, and keeps as many as measures and plots need.
pub struct BoundedRows<'s> {
    sink: &'s mut dyn SampleSink,
    flows: Series<FlowSample>,
    paths: Series<FlowSample>,
    links: Series<LinkSample>,
    classes: Series<ClassSample>,
    connections: Connections,
}

impl<'s> BoundedRows<'s> {
    /// Begins a run whose rows go to `sink`.
    pub fn new(sink: &'s mut dyn SampleSink) -> BoundedRows<'s> {
        BoundedRows {
            sink,
            flows: Series::default(),
            paths: Series::default(),
            links: Series::default(),
            classes: Series::default(),
            connections: Connections::default(),
        }
    }

    /// Returns the records of the run: the rows that were kept, and everything else from `others`.
    pub fn into_records(self, others: Records) -> Records {
        Records {
            samples: self.flows.into_rows(),
            path_samples: self.paths.into_rows(),
            links: self.links.into_rows(),
            classes: self.classes.into_rows(),
            connections: self.connections.rows,
            transfers: self.connections.transfers,
            ..others
        }
    }
}

impl SampleSink for BoundedRows<'_> {
    #[inline]
    fn flow(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.sink.flow(row)?;
        self.flows.push(row);
        Ok(())
    }

    #[inline]
    fn path(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.sink.path(row)?;
        self.paths.push(row);
        Ok(())
    }

    #[inline]
    fn link(&mut self, row: &LinkSample) -> Result<(), Error> {
        self.sink.link(row)?;
        self.links.push(row);
        Ok(())
    }

    #[inline]
    fn class(&mut self, row: &ClassSample) -> Result<(), Error> {
        self.sink.class(row)?;
        self.classes.push(row);
        Ok(())
    }

    #[inline]
    fn connection(&mut self, row: &ConnectionRecord) -> Result<(), Error> {
        self.sink.connection(row)?;
        self.connections.push(row);
        Ok(())
    }
}

/// A row on its way to the thread that has the sink.
#[derive(Clone, Debug)]
pub enum Row {
    /// Of a flow.
    Flow(FlowSample),
    /// Of a path of a flow over several.
    Path(FlowSample),
    /// Of a link.
    Link(LinkSample),
    /// Of a traffic class of a link.
    Class(ClassSample),
    /// Of a connection that has ended or was cut off.
    Connection(Box<ConnectionRecord>),
}

/// Creates a queue for rows. It has no limit, since a run in real time must not wait for a disk; it
/// is short as long as its receiver passes rows on.
pub fn row_queue() -> (RowSender, RowReceiver) {
    let (sender, receiver) = mpsc::channel();
    (RowSender(sender), RowReceiver(receiver))
}

/// The end of a [`row_queue`] that a thread of a run has.
#[derive(Clone, Debug)]
pub struct RowSender(Sender<Row>);

impl RowSender {
    /// Sends a row, without waiting. Nobody misses it if the receiver is gone: the run has failed.
    pub fn send(&self, row: Row) {
        let _ = self.0.send(row);
    }
}

impl SampleSink for RowSender {
    fn flow(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.send(Row::Flow(*row));
        Ok(())
    }

    fn path(&mut self, row: &FlowSample) -> Result<(), Error> {
        self.send(Row::Path(*row));
        Ok(())
    }

    fn link(&mut self, row: &LinkSample) -> Result<(), Error> {
        self.send(Row::Link(*row));
        Ok(())
    }

    fn class(&mut self, row: &ClassSample) -> Result<(), Error> {
        self.send(Row::Class(*row));
        Ok(())
    }

    fn connection(&mut self, row: &ConnectionRecord) -> Result<(), Error> {
        self.send(Row::Connection(Box::new(row.clone())));
        Ok(())
    }
}

/// The end of a [`row_queue`] that the thread with the sink has.
#[derive(Debug)]
pub struct RowReceiver(Receiver<Row>);

impl RowReceiver {
    /// Passes on all rows that have come, without waiting for more.
    ///
    /// # Errors
    /// If a row cannot be stored.
    pub fn pass_on(&self, sink: &mut dyn SampleSink) -> Result<(), Error> {
        self.0.try_iter().try_for_each(|row| match row {
            Row::Flow(row) => sink.flow(&row),
            Row::Path(row) => sink.path(&row),
            Row::Link(row) => sink.link(&row),
            Row::Class(row) => sink.class(&row),
            Row::Connection(row) => sink.connection(&row),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::ROWS_MAX;

    /// Counts rows, and fails at one of them.
    #[derive(Default)]
    struct Counting {
        flows: usize,
        links: usize,
        connections: usize,
        fails_at: Option<usize>,
    }

    impl SampleSink for Counting {
        fn flow(&mut self, _: &FlowSample) -> Result<(), Error> {
            self.flows += 1;
            match self.fails_at == Some(self.flows) {
                true => Err(Error::io(
                    "write",
                    std::path::Path::new("x"),
                    std::io::ErrorKind::StorageFull.into(),
                )),
                false => Ok(()),
            }
        }

        fn path(&mut self, _: &FlowSample) -> Result<(), Error> {
            Ok(())
        }

        fn link(&mut self, _: &LinkSample) -> Result<(), Error> {
            self.links += 1;
            Ok(())
        }

        fn class(&mut self, _: &ClassSample) -> Result<(), Error> {
            Ok(())
        }

        fn connection(&mut self, _: &ConnectionRecord) -> Result<(), Error> {
            self.connections += 1;
            Ok(())
        }
    }

    /// A run of 20 minutes with a sample per millisecond, whose rows come from two threads: all reach
    /// the sink, and what stays is bounded whatever the run's length.
    #[test]
    fn all_rows_reach_the_sink_and_a_bounded_number_stays() {
        const INSTANTS: u64 = 20 * 60 * 1000;
        let mut sink = Counting::default();
        let mut rows = BoundedRows::new(&mut sink);
        let (sender, receiver) = row_queue();
        std::thread::scope(|scope| {
            let of_links = sender.clone();
            scope.spawn(move || {
                for ms in 0..INSTANTS {
                    let row = LinkSample { time_ns: ms * 1_000_000, ..LinkSample::default() };
                    of_links.send(Row::Link(row));
                }
            });
            let applications = scope.spawn(move || {
                for ms in 0..INSTANTS {
                    let row = FlowSample { time_ns: ms * 1_000_000, ..FlowSample::default() };
                    sender.send(Row::Flow(row));
                }
                sender.send(Row::Connection(Box::default()));
            });
            while !applications.is_finished() {
                receiver.pass_on(&mut rows).unwrap();
            }
        });
        receiver.pass_on(&mut rows).unwrap();
        let records = rows.into_records(Records { end_ns: 7, ..Records::default() });
        assert_eq!((sink.flows, sink.links), (INSTANTS as usize, INSTANTS as usize));
        assert_eq!((sink.connections, records.connections.len(), records.end_ns), (1, 1, 7));
        for kept in [records.samples.len(), records.links.len()] {
            assert!((ROWS_MAX / 4..=ROWS_MAX).contains(&kept), "{kept}");
        }
        assert_eq!(records.samples.iter().last().unwrap().time_ns, (INSTANTS - 1) * 1_000_000);
    }

    /// A row that cannot be stored ends the run with its reason.
    #[test]
    fn a_full_disk_is_reported() {
        let mut sink = Counting { fails_at: Some(3), ..Counting::default() };
        let mut rows = BoundedRows::new(&mut sink);
        let (sender, receiver) = row_queue();
        (0..5).for_each(|_| sender.send(Row::Flow(FlowSample::default())));
        assert!(receiver.pass_on(&mut rows).is_err());
        assert_eq!(sink.flows, 3);
    }

    /// A thread that sends after the run has failed does not fail itself.
    #[test]
    fn rows_without_a_receiver_are_discarded() {
        let (sender, receiver) = row_queue();
        drop(receiver);
        sender.send(Row::Flow(FlowSample::default()));
    }
}
