//! Controllers written in Python, for the simulator.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use knee_cc::{Connection, Controller, Decision, Event, Needs, Sample, State, intern_phase};
use knee_units::{Rate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use crate::algorithms::Raised;
use crate::round::Round;
use crate::view;

/// Default burst, segments.
const QUANTUM: u64 = 2;

/// A controller written in Python.
pub struct PythonController {
    object: Py<PyAny>,
    on_ack: Py<PyAny>,
    /// If absent, events keep its decision.
    on_event: Option<Py<PyAny>>,
    ack: Py<view::Ack>,
    connection: Py<view::Connection>,
    /// The tuple `(ack,)`, reused.
    arguments: Py<PyTuple>,
    /// State of the current round, if it is called once per round trip.
    round: Option<Round>,
    needs: Needs,
    mss: u32,
    decision: Decision,
    /// Location of its source, for errors.
    place: String,
    raised: Arc<Raised>,
    /// The exception that it raised, with its type; it is not called again after that.
    failure: OnceCell<String>,
}

impl PythonController {
    /// Makes a controller by calling `make` with an `Init`.
    ///
    /// # Errors
    /// The exception of `make`, or that its result is not a controller.
    pub fn boxed(
        py: Python<'_>,
        make: &Py<PyAny>,
        place: &str,
        init: &knee_cc::Init,
        seed: u64,
        raised: &Arc<Raised>,
    ) -> PyResult<Box<dyn Controller>> {
        let object = make.bind(py).call1((view::Init::new(py, init, seed)?,))?;
        let Some(on_ack) = object.getattr_opt("on_ack")? else {
            let what = "a controller needs a method on_ack(self, ack) -> Decision";
            return Err(PyTypeError::new_err(format!("{place}: {what}")));
        };
        let switch = |name: &str, default: bool| -> PyResult<bool> {
            object.getattr_opt(name)?.map_or(Ok(default), |value| {
                let wrong = |_| PyTypeError::new_err(format!("{place}: {name} is True or False"));
                value.extract::<bool>().map_err(wrong)
            })
        };
        let needs = Needs {
            pacing: switch("pacing", false)?,
            proportional_rate_reduction: switch("proportional_rate_reduction", true)?,
            may_fail: raised.fails_run,
            ..Needs::default()
        };
        let ack = Bound::new(py, view::Ack::default())?;
        let mss = init.mss.max(1);
        let decision = Decision {
            window: init.initial_window.max(u64::from(mss)),
            send_quantum: QUANTUM * u64::from(mss),
            ..Decision::default()
        };
        Ok(Box::new(PythonController {
            round: switch("per_round", false)?.then(Round::default),
            needs,
            on_ack: on_ack.unbind(),
            on_event: object.getattr_opt("on_event")?.map(Bound::unbind),
            arguments: PyTuple::new(py, [&ack])?.unbind(),
            ack: ack.unbind(),
            connection: Py::new(py, view::Connection::default())?,
            object: object.unbind(),
            mss,
            decision,
            place: place.to_owned(),
            raised: raised.clone(),
            failure: OnceCell::new(),
        }))
    }

    /// Calls the controller and converts its answer; an exception ends the run.
    fn ask(
        &mut self,
        now: Time,
        method: &str,
        call: impl FnOnce(&PythonController, Python<'_>) -> PyResult<Option<Decision>>,
    ) -> Decision {
        if self.failure.get().is_some() {
            return self.decision;
        }
        match Python::attach(|py| {
            call(self, py).map_err(|error| self.noted(py, error, now, method))
        }) {
            Ok(Some(decision)) => self.decision = decision,
            Ok(None) => {}
            Err(error) => self.fail(error),
        }
        self.decision
    }

    fn fail(&self, error: PyErr) {
        self.failure.get_or_init(|| error.to_string());
        self.raised.keep(error);
    }

    fn noted(&self, py: Python<'_>, error: PyErr, now: Time, method: &str) -> PyErr {
        let note = format!("in {method} of {}, {now} into the run", self.place);
        // Notes exist since Python 3.11.
        let _ = error.value(py).call_method1("add_note", (note,));
        error
    }

    fn read(&self, answer: &Bound<'_, PyAny>, method: &str) -> PyResult<Decision> {
        let mss = u64::from(self.mss);
        let mut decision = Decision { send_quantum: QUANTUM * mss, ..Decision::default() };
        if let Ok(given) = answer.cast::<view::Decision>() {
            let given = given.get();
            let quantum = given.quantum.unwrap_or(decision.send_quantum);
            decision = Decision { send_quantum: quantum, ..given.inner };
        } else if let Ok(window) = answer.extract::<u64>()
            && !answer.is_instance_of::<PyBool>()
        {
            decision.window = window;
        } else {
            return Err(PyTypeError::new_err(format!(
                "{}: {method} returned {}: return a Decision, or a window in bytes",
                self.place,
                answer.repr()?
            )));
        }
        let too_small = |what: &str, value: u64| {
            PyValueError::new_err(format!(
                "{}: {method} returned {what} of {value} bytes: at least one segment, {mss} bytes",
                self.place
            ))
        };
        if decision.window < mss {
            return Err(too_small("a window", decision.window));
        }
        if decision.send_quantum < mss {
            return Err(too_small("a send quantum", decision.send_quantum));
        }
        if decision.pacing_rate.is_some_and(|rate| rate.as_bits_per_second() == 0) {
            let what = "returned a pacing rate of 0: None does not pace";
            return Err(PyValueError::new_err(format!("{}: {method} {what}", self.place)));
        }
        Ok(decision)
    }

    /// Returns its state, from optional attributes.
    fn shown(&self, py: Python<'_>) -> PyResult<State> {
        let object = self.object.bind(py);
        let number = |name: &str| -> PyResult<Option<u64>> {
            match object.getattr_opt(name)? {
                Some(value) if !value.is_none() => value.extract().map(Some),
                _ => Ok(None),
            }
        };
        let phase: Option<String> = match object.getattr_opt("phase")? {
            Some(phase) if !phase.is_none() => Some(phase.extract()?),
            _ => None,
        };
        let phase = phase.unwrap_or_default();
        let Some(phase) = intern_phase(&phase) else {
            let what = format!("{}: phase is too long, or there are too many", self.place);
            return Err(PyValueError::new_err(what));
        };
        Ok(State {
            phase,
            bandwidth: number("bandwidth_bps")?.map(Rate::from_bits_per_second),
            min_rtt: number("min_rtt_ns")?.map(Time::from_nanos),
            slow_start_threshold: number("slow_start_threshold_bytes")?,
            ..State::default()
        })
    }
}

impl Controller for PythonController {
    fn on_ack(&mut self, sample: &Sample, connection: &Connection) -> Decision {
        let sums;
        let sample = match &mut self.round {
            None => sample,
            Some(round) => {
                let Some(whole) = round.add(sample, connection) else { return self.decision };
                sums = whole;
                &sums
            }
        };
        self.mss = connection.mss.max(1);
        self.ask(connection.now, "on_ack", |this, py| {
            this.ack.bind(py).try_borrow_mut()?.fill(sample, connection);
            let answer = this.on_ack.bind(py).call1(this.arguments.bind(py))?;
            this.read(&answer, "on_ack").map(Some)
        })
    }

    fn on_event(&mut self, event: Event, connection: &Connection) -> Decision {
        self.mss = connection.mss.max(1);
        self.ask(connection.now, "on_event", |this, py| {
            let Some(on_event) = &this.on_event else { return Ok(None) };
            this.connection.bind(py).try_borrow_mut()?.fill(connection);
            let answer = on_event.bind(py).call1((view::event(event), &this.connection))?;
            // Most controllers ignore most events.
            if answer.is_none() {
                return Ok(None);
            }
            this.read(&answer, "on_event").map(Some)
        })
    }

    fn decision(&self) -> Decision {
        self.decision
    }

    fn state(&self) -> State {
        if self.failure.get().is_some() {
            return State::default();
        }
        Python::attach(|py| self.shown(py)).unwrap_or_else(|error| {
            self.fail(error);
            State::default()
        })
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().cloned()
    }

    fn needs(&self) -> Needs {
        self.needs
    }
}

/// A copy continues from the same state, copied by `copy.deepcopy`.
impl Clone for PythonController {
    fn clone(&self) -> PythonController {
        Python::attach(|py| {
            let copied = py.import("copy").and_then(|copy| {
                let object = copy.call_method1("deepcopy", (&self.object,))?;
                let on_ack = object.getattr("on_ack")?.unbind();
                let on_event = object.getattr_opt("on_event")?.map(Bound::unbind);
                Ok((object.unbind(), on_ack, on_event))
            });
            let (object, on_ack, on_event) = copied.unwrap_or_else(|error| {
                self.fail(error);
                let on_event = self.on_event.as_ref().map(|one| one.clone_ref(py));
                (self.object.clone_ref(py), self.on_ack.clone_ref(py), on_event)
            });
            PythonController {
                object,
                on_ack,
                on_event,
                ack: self.ack.clone_ref(py),
                connection: self.connection.clone_ref(py),
                arguments: self.arguments.clone_ref(py),
                round: self.round.clone(),
                needs: self.needs,
                mss: self.mss,
                decision: self.decision,
                place: self.place.clone(),
                raised: self.raised.clone(),
                failure: self.failure.clone(),
            }
        })
    }
}

impl fmt::Debug for PythonController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonController").field("place", &self.place).finish_non_exhaustive()
    }
}
