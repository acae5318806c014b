//! A path whose settings move, and the simulator runs as they do. Implements `knee play`.
//!
//! What runs is the text that the page hands over: a scenario with some of its values replaced, read
//! as any other.

mod serve;
mod setting;

pub use knee_page::{PageError, listen};
pub use serve::serve;
pub use setting::{Setting, Step};

use crate::error::Error;
use crate::ground::Simulator;
use crate::job::{Job, Run, execute};
use crate::text::ScenarioText;
use knee_link::Buffer;
use knee_record::Control;
use knee_report::{PlayFile, PlayPath, PlayRun, PlaySetting, play_body, play_page, play_says};
use knee_scenario::{Algorithms, Scenario};
use knee_units::Time;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::thread;
use toml_edit::DocumentMut;

/// The scenario without a file.
const PATH: &str = include_str!("path.toml");
/// The controller of B without a file: B begins as A does, but for this.
const OTHER_CONTROLLER: &str = "bbr";
/// Samples of a run: more than a chart has points.
const SAMPLES: u64 = 600;
/// Shortest interval between samples.
const INTERVAL_MIN: Time = Time::from_millis(1);
/// Names of the two settings.
pub(crate) const NAMES: [&str; 2] = ["A", "B"];

/// Why a scenario cannot be played with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// The first flow is not over one path.
    #[error("its first flow is not over one path")]
    NotOnePath,
}

/// A scenario, and what of it can be moved.
#[derive(Debug)]
pub struct Play {
    text: ScenarioText,
    document: DocumentMut,
    /// Whether its lines end as on Windows.
    crlf: bool,
    /// Title.
    name: String,
    settings: Vec<Setting>,
    /// Why others cannot be moved.
    fixed: Vec<String>,
    /// Files that it names.
    inputs: Vec<String>,
    /// Whether B is shown from the start.
    compares: bool,
}

/// A position of each setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice(Vec<usize>);

/// The results of one or two choices.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Drawn {
    /// Whether all of it was simulated.
    complete: bool,
    /// The results in a sentence each.
    says: String,
    /// Charts and table, HTML.
    body: String,
    /// The scenario of each choice.
    files: Vec<String>,
}

impl Play {
    /// Prepares a scenario; `None` takes a path of 100 Mbit/s and 40 ms with one bulk flow.
    ///
    /// # Errors
    /// All errors in it, [`PlayError`], or what the simulator cannot run.
    pub fn new(text: Option<ScenarioText>) -> Result<Play, Error> {
        let compares = text.is_none();
        let text = text.unwrap_or_else(|| ScenarioText::new("play.toml", PATH));
        let scenario = text.scenario(&[])?;
        knee_sim::check_scenario(&scenario).map_err(crate::ground::GroundError::from)?;
        let written = String::from_utf8_lossy(text.bytes()).into_owned();
        // Both read TOML; this one keeps what stands around the values.
        let document = written.parse::<DocumentMut>();
        let document = document.map_err(|error| Error::Defect(error.to_string()))?;
        let (settings, fixed) = setting::settings(&scenario, &document, Algorithms::built_in())?;
        let inputs: BTreeSet<String> =
            scenario.files.iter().map(|file| file.written.clone()).collect();
        Ok(Play {
            name: scenario.name,
            inputs: inputs.into_iter().collect(),
            text,
            crlf: written.contains("\r\n"),
            document,
            settings,
            fixed,
            compares,
        })
    }

    /// Returns the choice that the file is, for A, or that B begins with.
    pub fn start(&self, of: usize) -> Choice {
        let position = |setting: &Setting| {
            let other = setting.steps.iter().position(|step| step.text == OTHER_CONTROLLER);
            let differs = of == 1 && self.compares && setting.name == "cc";
            other.filter(|_| differs).unwrap_or(setting.start)
        };
        Choice(self.settings.iter().map(position).collect())
    }

    /// What can be moved.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Reads positions, separated by commas; `None` if they are not those of every setting.
    pub fn choice(&self, text: &str) -> Option<Choice> {
        let positions = text.split(',').map(str::parse::<usize>);
        let positions: Vec<usize> =
            positions.take(self.settings.len() + 1).collect::<Result<_, _>>().ok()?;
        let known = |(at, setting): (&usize, &Setting)| *at < setting.steps.len();
        let all = positions.len() == self.settings.len();
        (all && positions.iter().zip(&self.settings).all(known)).then_some(Choice(positions))
    }

    /// Returns the scenario's file with a choice; the file as it is if it is the file's own.
    pub fn file(&self, choice: &Choice) -> String {
        let mut document = self.document.clone();
        let steps = self.settings.iter().zip(&choice.0).map(|(setting, at)| &setting.steps[*at]);
        steps.for_each(|step| step.apply(&mut document));
        let text = document.to_string();
        // The editor of TOML ends all lines in the same way.
        if self.crlf { text.replace('\n', "\r\n") } else { text }
    }

    /// Reads the file of a choice, with as many samples as the charts need.
    fn scenario(&self, choice: &Choice) -> Result<Scenario, Error> {
        let mut scenario = self.text.replaced(&self.file(choice)).scenario(&[])?;
        let interval = scenario.duration.as_nanos() / SAMPLES;
        scenario.sample_interval = Time::from_nanos(interval).max(INTERVAL_MIN);
        Ok(scenario)
    }

    /// Runs one or two choices, side by side, to their end or until `control` stops them, and draws
    /// what there is.
    ///
    /// # Errors
    /// All errors of a choice's file, or the failure of a run.
    pub fn draw(&self, choices: &[Choice], control: &Control) -> Result<Drawn, Error> {
        let scenarios = choices.iter().map(|choice| self.scenario(choice));
        let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
        let runs = thread::scope(|scope| {
            let started: Vec<_> = scenarios
                .iter()
                .map(|scenario| scope.spawn(move || run(scenario, control)))
                .collect();
            let ended = started.into_iter().map(|thread| thread.join());
            let panicked = |_| Error::Defect("a simulation panicked".to_string());
            ended.map(|run| run.map_err(panicked)?).collect::<Result<Vec<Run>, Error>>()
        })?;
        let complete = !control.stop.load(Ordering::SeqCst);
        let drawn: Vec<PlayRun<'_>> = NAMES
            .into_iter()
            .zip(scenarios.iter().zip(&runs))
            .map(|(name, (scenario, run))| PlayRun {
                name,
                records: &run.records,
                summary: &run.summary,
                path: path(scenario),
            })
            .collect();
        Ok(Drawn {
            complete,
            says: play_says(&drawn),
            body: play_body(&drawn)?,
            files: choices.iter().map(|choice| self.file(choice)).collect(),
        })
    }

    /// Returns the page, with what A and B begin with.
    ///
    /// # Errors
    /// A defect in its template.
    pub fn page(&self) -> Result<String, Error> {
        let starts = [0, 1].map(|of| self.start(of).0);
        let setting = |(number, setting): (usize, &Setting)| PlaySetting {
            name: setting.name,
            label: setting.label,
            is_list: setting.is_list,
            steps: setting.steps.iter().map(|step| step.text.clone()).collect(),
            starts: starts.each_ref().map(|start| start[number]),
        };
        let settings: Vec<PlaySetting> = self.settings.iter().enumerate().map(setting).collect();
        let files = [0, 1].map(|of| PlayFile { name: NAMES[of], file: self.file_name(of) });
        Ok(play_page(&self.name, &settings, &self.fixed, &files, &self.inputs, self.compares)?)
    }

    /// Returns the name of the file that is handed over.
    fn file_name(&self, of: usize) -> String {
        let stem = self.text.stem();
        let plain = |letter: char| match letter {
            letter if letter.is_ascii_alphanumeric() || "-_.".contains(letter) => letter,
            _ => '-',
        };
        let stem: String = stem.chars().map(plain).collect();
        format!("{stem}-{}.toml", NAMES[of].to_ascii_lowercase())
    }
}

fn run(scenario: &Scenario, control: &Control) -> Result<Run, Error> {
    execute(&Job::new(scenario, &Simulator::default()), &control.aside())
}

/// Returns what the picture of the knee needs to know of the first flow's path.
fn path(scenario: &Scenario) -> PlayPath {
    let flow = &scenario.flows[0];
    let link = setting::bottleneck(scenario, flow.paths[0]);
    let segment = u64::from(flow.transport.mss + flow.transport.header);
    let buffer_bytes = match link.config.buffer {
        Buffer::Unlimited => None,
        Buffer::Bytes(bytes) => Some(bytes),
        Buffer::Packets(packets) => Some(packets.saturating_mul(segment)),
    };
    PlayPath { link: link.name.clone(), buffer_bytes, duration_ns: scenario.duration.as_nanos() }
}
