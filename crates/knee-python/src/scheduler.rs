//! Schedulers written in Python, for the simulator.

use std::sync::Arc;

use knee_multipath::sched::{Decision, PATHS_MAX, PathSet, Place, Scheduler, Status};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};

use crate::algorithms::Raised;

/// A path of a connection.
#[pyclass(get_all, module = "knee")]
#[derive(Default)]
pub struct Path {
    /// Index of the path.
    index: usize,
    /// `active`, `backup`, `suspect` (silent for too long), `down`.
    status: &'static str,
    /// Whether it may take a packet now.
    ready: bool,
    /// Smoothed RTT, nanoseconds; 0 before the first sample.
    srtt_ns: u64,
    /// RTT variation (RFC 6298), nanoseconds.
    rtt_variation_ns: u64,
    /// Minimum RTT, nanoseconds.
    min_rtt_ns: u64,
    /// Congestion window, bytes.
    window_bytes: u64,
    /// Bytes in flight.
    in_flight_bytes: u64,
    /// Measured delivery rate, bits per second; `None` before the first sample.
    rate_bps: Option<u64>,
    /// Bytes ever given to the path, including duplicates.
    sent_bytes: u64,
}

impl Path {
    fn fill(&mut self, index: usize, path: &knee_multipath::sched::Path) {
        *self = Path {
            index,
            status: match path.status {
                Status::Active => "active",
                Status::Backup => "backup",
                Status::Suspect => "suspect",
                Status::Down => "down",
            },
            ready: path.ready,
            srtt_ns: path.srtt.as_nanos(),
            rtt_variation_ns: path.rtt_variation.as_nanos(),
            min_rtt_ns: path.min_rtt.as_nanos(),
            window_bytes: path.window,
            in_flight_bytes: path.in_flight,
            rate_bps: path.rate.map(|rate| rate.as_bits_per_second()),
            sent_bytes: path.sent,
        };
    }
}

/// State of a connection when it asks its scheduler. The same object is refilled for each call.
#[pyclass(get_all, module = "knee")]
pub struct View {
    /// Time since the start of the run, nanoseconds.
    now_ns: u64,
    /// Payload bytes of a full packet.
    mss_bytes: u64,
    /// Bytes written and not yet given to any path.
    unsent_bytes: u64,
    /// Unsent bytes that the shared window allows.
    window_left_bytes: u64,
    /// Bytes from the oldest unacknowledged to the highest sent.
    outstanding_bytes: u64,
    /// Whether new data may be sent: there is some, and the shared window has room.
    has_new: bool,
    /// Whether new data waits because the shared window is full.
    is_blocked: bool,
    /// Path that was last given the oldest unacknowledged packet; `None` if nothing is outstanding.
    oldest_holder: Option<usize>,
    /// Indexes of all paths that were given that packet.
    oldest_sent_on: Vec<usize>,
    /// Indexes of paths that have a packet to repeat. Set only while no new data may be sent.
    can_repeat: Vec<usize>,
    /// The paths, by index.
    paths: Py<PyList>,
}

impl View {
    fn new(py: Python<'_>) -> View {
        View {
            now_ns: 0,
            mss_bytes: 0,
            unsent_bytes: 0,
            window_left_bytes: 0,
            outstanding_bytes: 0,
            has_new: false,
            is_blocked: false,
            oldest_holder: None,
            oldest_sent_on: Vec::new(),
            can_repeat: Vec::new(),
            paths: PyList::empty(py).unbind(),
        }
    }

    fn fill(&mut self, view: &knee_multipath::sched::View<'_>) {
        self.now_ns = view.now.as_nanos();
        self.mss_bytes = view.mss;
        self.unsent_bytes = view.unsent;
        self.window_left_bytes = view.window_left;
        self.outstanding_bytes = view.outstanding;
        self.has_new = view.has_new();
        self.is_blocked = view.is_blocked();
        self.oldest_holder = view.oldest.map(|oldest| oldest.holder);
        self.oldest_sent_on.clear();
        let sent_on = view.oldest.map(|oldest| oldest.sent_on).unwrap_or_default();
        self.oldest_sent_on.extend(sent_on.iter());
        self.can_repeat.clear();
        self.can_repeat.extend(view.can_repeat.iter());
    }
}

/// Give the next new packet to a path that is ready.
#[pyclass(frozen, get_all, module = "knee")]
pub struct Send {
    /// Index of the path.
    path: usize,
}

/// Give the next new packet to each of these paths, which must be ready.
#[pyclass(frozen, get_all, module = "knee")]
pub struct Duplicate {
    /// Indexes of the paths.
    paths: Vec<usize>,
}

/// Give the oldest outstanding packet that a ready path was never given to that path.
#[pyclass(frozen, get_all, module = "knee")]
pub struct Repeat {
    /// Index of the path.
    path: usize,
}

/// Send nothing until something changes.
#[pyclass(frozen, module = "knee")]
pub struct Wait;

#[pymethods]
impl Send {
    #[new]
    fn new(path: usize) -> Send {
        Send { path }
    }
}

#[pymethods]
impl Duplicate {
    #[new]
    fn new(paths: Vec<usize>) -> Duplicate {
        Duplicate { paths }
    }
}

#[pymethods]
impl Repeat {
    #[new]
    fn new(path: usize) -> Repeat {
        Repeat { path }
    }
}

#[pymethods]
impl Wait {
    #[new]
    fn new() -> Wait {
        Wait
    }
}

/// A scheduler written in Python.
pub struct PythonScheduler {
    schedule: Py<PyAny>,
    view: Py<View>,
    paths: Vec<Py<Path>>,
    /// The tuple `(view,)`, reused.
    arguments: Py<PyTuple>,
    place: String,
    raised: Arc<Raised>,
    has_raised: bool,
}

impl PythonScheduler {
    /// Makes a scheduler by calling `make`, with a `random.Random` if it takes one.
    ///
    /// # Errors
    /// The exception of `make`, or that its result is not a scheduler.
    pub fn boxed(
        py: Python<'_>,
        make: &Py<PyAny>,
        place: &str,
        seed: &str,
        raised: &Arc<Raised>,
    ) -> PyResult<Box<dyn Scheduler>> {
        let random = py.import("random")?.call_method1("Random", (seed,))?;
        let object = make.bind(py).call1((random,))?;
        let Some(schedule) = object.getattr_opt("schedule")? else {
            let what = "a scheduler needs a method schedule(self, view) -> Send | Wait | Duplicate";
            return Err(PyTypeError::new_err(format!("{place}: {what}")));
        };
        let view = Bound::new(py, View::new(py))?;
        Ok(Box::new(PythonScheduler {
            schedule: schedule.unbind(),
            arguments: PyTuple::new(py, [&view])?.unbind(),
            view: view.unbind(),
            paths: Vec::new(),
            place: place.to_owned(),
            raised: raised.clone(),
            has_raised: false,
        }))
    }

    fn ask(
        &mut self,
        py: Python<'_>,
        view: &knee_multipath::sched::View<'_>,
    ) -> PyResult<Decision> {
        let shown = self.view.bind(py);
        shown.try_borrow_mut()?.fill(view);
        while self.paths.len() < view.paths.len() {
            let path = Py::new(py, Path::default())?;
            shown.borrow().paths.bind(py).append(&path)?;
            self.paths.push(path);
        }
        for (index, (own, path)) in self.paths.iter().zip(view.paths).enumerate() {
            own.bind(py).try_borrow_mut()?.fill(index, path);
        }
        let answer = self.schedule.bind(py).call1(self.arguments.bind(py))?;
        self.read(&answer, view)
    }

    fn read(
        &self,
        answer: &Bound<'_, PyAny>,
        view: &knee_multipath::sched::View<'_>,
    ) -> PyResult<Decision> {
        let ready = |path: usize| {
            let is_ready = view.paths.get(path).is_some_and(|path| path.ready);
            let what = format!("{}: schedule chose path {path}, which is not ready", self.place);
            if is_ready { Ok(path) } else { Err(PyValueError::new_err(what)) }
        };
        let new = || {
            let what = "schedule sends, but no new data may be sent (view.has_new is False)";
            let refused = || PyValueError::new_err(format!("{}: {what}", self.place));
            if view.has_new() { Ok(()) } else { Err(refused()) }
        };
        if answer.cast::<Wait>().is_ok() {
            Ok(Decision::Wait)
        } else if let Ok(send) = answer.cast::<Send>() {
            new()?;
            Ok(Decision::Send(ready(send.get().path)?, Place::Head))
        } else if let Ok(number) = answer.cast::<PyInt>() {
            new()?;
            Ok(Decision::Send(ready(number.extract()?)?, Place::Head))
        } else if let Ok(duplicate) = answer.cast::<Duplicate>() {
            new()?;
            let mut paths = PathSet::default();
            for path in &duplicate.get().paths {
                paths.insert(ready(*path)?.min(PATHS_MAX - 1));
            }
            if paths.is_empty() {
                let what = format!("{}: schedule duplicates on no path", self.place);
                return Err(PyValueError::new_err(what));
            }
            Ok(Decision::Duplicate(paths))
        } else if let Ok(repeat) = answer.cast::<Repeat>() {
            let path = ready(repeat.get().path)?;
            if !view.can_repeat.contains(path) {
                let what = format!("{}: path {path} has no packet to repeat", self.place);
                return Err(PyValueError::new_err(what));
            }
            Ok(Decision::Repeat(path))
        } else {
            Err(PyTypeError::new_err(format!(
                "{}: schedule returned {}: return Send(path), Duplicate(paths), Repeat(path) or \
                 Wait()",
                self.place,
                answer.repr()?
            )))
        }
    }
}

impl Scheduler for PythonScheduler {
    fn schedule(&mut self, view: &knee_multipath::sched::View<'_>) -> Decision {
        if self.has_raised {
            return Decision::Wait;
        }
        let asked = Python::attach(|py| {
            self.ask(py, view).inspect_err(|error| {
                let note = format!("in schedule of {}, {} into the run", self.place, view.now);
                // Notes exist since Python 3.11.
                let _ = error.value(py).call_method1("add_note", (note,));
            })
        });
        asked.unwrap_or_else(|error| {
            self.has_raised = true;
            self.raised.keep(error);
            Decision::Wait
        })
    }
}
