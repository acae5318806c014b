//! Plans the runs of an evaluation.

use super::criteria::{Bounds, Case, Criteria, Extension, REQUESTS, Section, label, text};
use super::program::{ProgramCandidate, is_file};
use super::{EvaluateError, RunRows, evaluate_seeds};
use crate::command::quoted;
use crate::error::Error;
use crate::experiment::{repeat_seed, seed};
use crate::ground::{Ground, PROGRAMS, Pace};
use crate::lab::costliest_first;
use crate::load::Load;
use crate::origin::{Files, OriginSettings};
use crate::text::{ScenarioText, among_inputs};
use knee_record::{EvaluationLine, EvaluationPlan, EvaluationRow, NotTried, SectionAsks, Unit};
use knee_scenario::{Algorithms, ClassFile, Override, Scenario, class_file, load_file};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Reference controllers: RFC 5681, RFC 9438 and BBR.
pub(super) const STANDARDS: [&str; 3] = ["reno", "cubic", "bbr"];

/// Settings of an evaluation.
#[derive(Clone, Debug)]
pub struct EvaluateSettings<'g> {
    /// The controller, in the syntax of a ranking's `--cc`; on the ground `programs` a scenario file,
    /// one of whose flows is a program.
    pub candidate: String,
    /// Extra keys of the candidate's flows, not applied to the standards: `sampler`,
    /// `initial_window`.
    pub with: Vec<Override>,
    /// Section numbers; empty selects all. `5.2` includes its subsections.
    pub sections: Vec<String>,
    /// Seeds of each run, at least two.
    pub repeat: u64,
    /// Only the few cases that take minutes.
    pub quick: bool,
    /// The ground.
    pub on: &'g dyn Ground,
    /// All grounds of the same evaluation: a case that one of them does not support is omitted on
    /// all. Empty: only `on`, whose refusals count as the candidate's.
    pub beside: Vec<&'g dyn Ground>,
    /// Number of scenarios tried for the worst case of each metric; `None` disables the search.
    pub search: Option<usize>,
    /// Recorded links over which section 6.4 runs too: the names of files in Mahimahi's
    /// format, as typed, and their bytes.
    pub traces: Vec<(String, Vec<u8>)>,
    /// Algorithms that the candidate may name, if not Knee's own.
    pub algorithms: Option<Arc<Algorithms>>,
}

/// The plan of an evaluation.
#[derive(Debug)]
pub struct Evaluate<'g> {
    /// The plan as recorded.
    pub plan: EvaluationPlan,
    pub(super) lines: Vec<EvaluationLine>,
    pub(super) runs: Vec<Planned>,
    pub(super) on: &'g dyn Ground,
    pub(super) cases: Vec<Staged>,
    pub(super) bounds: Bounds,
    /// Index of the standard that equals the candidate; its runs are the candidate's.
    pub(super) is_standard: Option<usize>,
    /// Keys of the candidate's flows that were given.
    given: Vec<Override>,
    /// All keys of the candidate's flows.
    pub(super) with: Vec<Override>,
    /// The controller of the candidate's flows.
    cc: String,
    /// What an interrupted evaluation made before.
    pub(super) made: RunRows,
    algorithms: Option<Arc<Algorithms>>,
    /// Recorded links, by the names that scenarios have for them.
    pub(super) traces: Files,
    /// The file of a candidate written in Python, by its name as typed.
    pub(super) classes: Files,
    /// Name of the candidate in records.
    pub(super) candidate_name: String,
    /// The scenario files that were needed so far, each parsed once for all its runs.
    texts: Mutex<BTreeMap<String, ScenarioText>>,
    sections: Vec<String>,
    /// Names of the recorded links, as typed.
    trace_names: Vec<String>,
}

/// A case of a section, with the lines that use it.
#[derive(Debug)]
pub(super) struct Staged {
    case: Case,
    flows: Vec<String>,
    /// Index of the line, and of the case within the line.
    pub lines: Vec<(usize, usize)>,
    seed: u64,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub case: usize,
    /// 0 for the candidate, else one plus the index of the standard.
    pub controller: usize,
    pub repeat: u64,
    pub seed: u64,
    pub load: Load,
}

impl<'g> Evaluate<'g> {
    /// Plans an evaluation.
    ///
    /// # Errors
    /// An [`EvaluateError`]; a defect in Knee's own scenarios.
    pub fn new(settings: &EvaluateSettings<'g>) -> Result<Evaluate<'g>, Error> {
        Evaluate::with_files(settings, None)
    }

    /// Plans an evaluation whose candidate, if it is a class in a file, is in one of these files.
    pub(crate) fn with_files(
        settings: &EvaluateSettings<'g>,
        kept: Option<&Files>,
    ) -> Result<Evaluate<'g>, Error> {
        if settings.repeat < 2 && settings.beside.is_empty() {
            return Err(EvaluateError::OneSeed.into());
        }
        let program = program(settings, kept)?;
        let criteria = Criteria::built_in()?;
        for wanted in &settings.sections {
            let tried = criteria.sections.iter().any(|section| is_in(&section.number, wanted));
            let missing = criteria.not_tried.iter().any(|one| is_in(&one.section, wanted));
            if !tried && !missing {
                return Err(EvaluateError::NoSection(wanted.clone()).into());
            }
        }
        let chosen = |number: &str| {
            let sections = &settings.sections;
            sections.is_empty() || sections.iter().any(|wanted| is_in(number, wanted))
        };
        let not_tried = criteria.not_tried.iter().filter(|one| {
            let given = match one.unless {
                Some(Extension::Search) => settings.search.is_some(),
                Some(Extension::Trace) => !settings.traces.is_empty(),
                None => false,
            };
            chosen(&one.section) && !given
        });
        let sections = criteria.sections.iter().filter(|section| chosen(&section.number));
        let for_it = |section: &&Section| section.cases.iter().any(|case| is_for(case, settings));
        let (sections, others): (Vec<&Section>, Vec<&Section>) = sections.partition(for_it);
        let without_cases = others.iter().map(|section| NotTried {
            section: section.number.clone(),
            what: section.title.clone(),
            why: "no case of it is short and small enough for programs".to_string(),
        });
        let asks = |section: &&Section| SectionAsks {
            section: section.number.clone(),
            title: section.title.clone(),
            asks: section.asks.clone(),
        };
        let plan = EvaluationPlan {
            command: command(settings),
            candidate: settings.candidate.clone(),
            brought: None,
            ground: settings.on.name().to_string(),
            standards: STANDARDS.map(str::to_string).to_vec(),
            repeats: settings.repeat,
            quick: settings.quick,
            search: settings.search,
            asks: sections.iter().map(asks).collect(),
            not_tried: not_tried
                .map(|one| NotTried {
                    section: one.section.clone(),
                    what: one.what.clone(),
                    why: one.why.clone(),
                })
                .chain(without_cases)
                .collect(),
            runs_planned: 0,
        };
        let (lines, runs, cases) = (Vec::new(), Vec::new(), Vec::new());
        let (on, algorithms) = (settings.on, settings.algorithms.clone());
        let bounds = criteria.search.clone();
        let standard = STANDARDS.iter().position(|name| *name == settings.candidate);
        let is_standard = standard.filter(|_| settings.with.is_empty());
        let mut with = settings.with.clone();
        with.extend(program.iter().map(|one| one.program.clone()));
        let traces = files(&settings.traces)?;
        let (mut candidate_name, mut classes) = class(settings, kept)?;
        let mut cc = settings.candidate.clone();
        if let Some(program) = program {
            candidate_name = program.name;
            cc = program.cc;
            classes.insert(settings.candidate.clone(), program.bytes);
        }
        let mut evaluate = Evaluate {
            plan,
            lines,
            runs,
            on,
            cases,
            bounds,
            is_standard,
            given: settings.with.clone(),
            with,
            cc,
            made: RunRows::new(),
            algorithms,
            traces,
            classes,
            candidate_name,
            texts: Mutex::default(),
            sections: settings.sections.clone(),
            trace_names: settings.traces.iter().map(|(name, _)| name.clone()).collect(),
        };
        for section in sections {
            evaluate.add(section, settings)?;
        }
        evaluate.plan.runs_planned = evaluate.runs.len();
        evaluate.check_candidate()?;
        Ok(evaluate)
    }

    /// Checks that at least one case accepts the candidate.
    fn check_candidate(&self) -> Result<(), Error> {
        let mut wrong = None;
        for Staged { case, flows, .. } in &self.cases {
            match self.set_up(&case.file, &case.set, flows, 0, None) {
                Ok(_) => return Ok(()),
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        match wrong {
            Some(Error::Files(files)) => {
                let first = files.into_iter().flat_map(|file| file.problems).next();
                let (problem, advice) =
                    first.map(|first| (first.message, first.help)).unwrap_or_default();
                Err(EvaluateError::Candidate { problem, advice }.into())
            }
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn add(&mut self, section: &Section, settings: &EvaluateSettings<'_>) -> Result<(), Error> {
        let recorded = section.recorded.iter().flat_map(|case| {
            let of = |trace: &String| Case { set: over(&case.set, trace), ..case.clone() };
            self.traces.keys().map(of).collect::<Vec<_>>()
        });
        let all = section.cases.iter().cloned().chain(recorded);
        let scenarios = all.filter(|case| is_for(case, settings)).map(|case| {
            let scenario = self.text(&case.file)?.scenario(&sets(&case.set))?;
            Ok((case, scenario))
        });
        let mut scenarios: Vec<(Case, Scenario)> = scenarios.collect::<Result<_, Error>>()?;
        scenarios.retain(|(case, scenario)| self.can_be_carried(section, case, scenario, settings));
        let first_line = self.lines.len();
        self.lines.extend(section.lines.iter().filter_map(|line| {
            let claims = scenarios.iter().flat_map(|(_, scenario)| &scenario.claims);
            let mut own = claims.filter(|claim| claim.id == line.claim);
            Some(EvaluationLine {
                section: section.number.clone(),
                section_title: section.title.clone(),
                claim: line.claim.clone(),
                title: line.title.clone(),
                unit: Unit::of(&own.next()?.measure),
                better: line.better,
                alike: line.alike,
                floor: line.floor,
                within: line.within.clone(),
                cases: Vec::new(),
            })
        }));
        for (case, scenario) in &scenarios {
            let has = |group: &&String| scenario.flows.iter().any(|flow| flow.name == **group);
            let flows = section.flows.iter().filter(has).cloned().collect();
            let mut lines = Vec::new();
            for (number, line) in self.lines.iter_mut().enumerate().skip(first_line) {
                if scenario.claims.iter().any(|claim| claim.id == line.claim) {
                    lines.push((number, line.cases.len()));
                    line.cases.push(label(&scenario.name, &case.set));
                }
            }
            let load = Load::of(scenario, self.on);
            let at = self.cases.len();
            let first = usize::from(self.is_standard.is_some());
            for controller in first..=STANDARDS.len() {
                self.runs.extend((0..settings.repeat).map(|number| {
                    let seed = repeat_seed(scenario.seed, number);
                    Planned { case: at, controller, repeat: number + 1, seed, load }
                }));
            }
            let (case, seed) = (case.clone(), scenario.seed);
            self.cases.push(Staged { case, flows, lines, seed });
        }
        Ok(())
    }

    /// Whether every ground in `beside` supports a case; if not, records the reason.
    fn can_be_carried(
        &mut self,
        section: &Section,
        case: &Case,
        scenario: &Scenario,
        settings: &EvaluateSettings<'_>,
    ) -> bool {
        let refusals =
            settings.beside.iter().filter_map(|on| Some((on, on.check(scenario).err()?)));
        let refusal =
            refusals.map(|(on, error)| format!("{}: {}", on.name(), error.reason())).next();
        let is_carried = refusal.is_none();
        self.plan.not_tried.extend(refusal.map(|why| NotTried {
            section: section.number.clone(),
            what: label(&scenario.name, &case.set),
            why,
        }));
        is_carried
    }

    /// One of the criteria's scenario files.
    fn text(&self, file: &str) -> Result<ScenarioText, Error> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = texts.get(file) {
            return Ok(known.clone());
        }
        let made = ScenarioText::new(file, &text(file)?).with_files(self.files()?);
        let made = match &self.algorithms {
            Some(algorithms) => made.with_algorithms(algorithms.clone()),
            None => made,
        };
        texts.insert(file.to_string(), made.clone());
        Ok(made)
    }

    /// The files that scenarios may name.
    pub(super) fn files(&self) -> Result<Files, Error> {
        let mut files = self.traces.clone();
        files.extend(self.classes.clone());
        files.insert(REQUESTS.to_string(), text(REQUESTS)?.into_bytes().into());
        Ok(files)
    }

    /// Total real time of the runs that are to be made, seconds; 0 where time is virtual.
    pub fn real_time_s(&self) -> f64 {
        let real = self.runs.iter().filter(|run| run.load.pace == Pace::Real && !self.is_made(run));
        real.map(|run| run.load.duration_ns as f64 / 1e9 + run.load.setup_s).sum()
    }

    /// The numbers of all runs that are to be made, in the order in which they should begin: by
    /// repeat, so that a stopped evaluation has all cases, and the costliest first.
    pub fn order(&self) -> Vec<usize> {
        let loads: Vec<Load> = self.runs.iter().map(|run| run.load).collect();
        let mut order = costliest_first(&loads);
        order.retain(|number| !self.is_made(&self.runs[*number]));
        order.sort_by_key(|number| self.runs[*number].repeat);
        order
    }

    /// Further runs of the lines that would be named: with few seeds one is named by chance now and
    /// then. As many seeds again, at most those of a full evaluation in all; none in real time.
    pub(super) fn further(&self, named: impl Fn(usize) -> bool) -> Vec<Planned> {
        let repeats = self.plan.repeats;
        let more = repeats.min(evaluate_seeds(false).saturating_sub(repeats));
        let of_named = |run: &&Planned| {
            let mut lines = self.cases[run.case].lines.iter();
            run.repeat <= more && run.load.pace == Pace::Virtual && lines.any(|at| named(at.0))
        };
        let again = self.runs.iter().filter(of_named).map(|run| {
            let repeat = run.repeat + repeats;
            let seed = repeat_seed(self.cases[run.case].seed, repeat - 1);
            Planned { repeat, seed, ..*run }
        });
        let mut again: Vec<Planned> = again.collect();
        again.sort_by(|a, b| b.load.weight.total_cmp(&a.load.weight));
        again
    }

    /// Adds the candidate's rows where it is a standard itself.
    pub(super) fn add_candidate(&self, rows: &mut Vec<EvaluationRow>) {
        let Some(standard) = self.is_standard else { return };
        let own = rows.iter().filter(|row| row.controller == 1 + standard);
        let own: Vec<_> = own.map(|row| EvaluationRow { controller: 0, ..row.clone() }).collect();
        rows.extend(own);
    }

    /// The number of these runs that have values.
    pub(super) fn finished(&self, runs: &[Planned], rows: &[EvaluationRow]) -> usize {
        let key = |row: &EvaluationRow| ((row.line, row.case), row.controller, row.repeat);
        let made: BTreeSet<_> = rows.iter().map(key).collect();
        let is_made = |run: &&Planned| {
            let lines = &self.cases[run.case].lines;
            lines.iter().any(|line| made.contains(&(*line, run.controller, run.repeat)))
        };
        runs.iter().filter(is_made).count()
    }

    /// What the evaluation is made from, to make it again.
    pub(super) fn origin(&self) -> OriginSettings {
        OriginSettings::Evaluate {
            candidate: self.plan.candidate.clone(),
            with: self.given.iter().map(|own| own.text().to_string()).collect(),
            section: self.sections.clone(),
            repeat: self.plan.repeats,
            quick: self.plan.quick,
            search: self.plan.search,
            trace: self.trace_names.clone(),
        }
    }

    /// The scenario of a run.
    pub(super) fn scenario(&self, run: &Planned) -> Result<Scenario, Error> {
        let Staged { case, flows, .. } = &self.cases[run.case];
        self.set_up(&case.file, &case.set, flows, run.controller, Some(run.seed))
    }

    /// Builds a scenario with a controller in place of these flow groups; without a seed, the
    /// file's seed applies.
    pub(super) fn set_up(
        &self,
        file: &str,
        set: &[String],
        flows: &[String],
        controller: usize,
        of_seed: Option<u64>,
    ) -> Result<Scenario, Error> {
        let with = if controller == 0 { self.with.as_slice() } else { &[] };
        let controller = match controller {
            0 => self.cc.as_str(),
            standard => STANDARDS[standard - 1],
        };
        let mut given = sets(set);
        given.extend(of_seed.map(seed));
        let key = |flow: &String| Override::new(&format!("flow.{flow}.cc"), controller);
        given.extend(flows.iter().map(key));
        given.extend(flows.iter().flat_map(|flow| with.iter().map(move |own| of_flow(flow, own))));
        Ok(self.text(file)?.scenario(&given)?)
    }

    /// The candidate's scenario in a case of a line, as a runnable file; `None` if there is none.
    pub(super) fn scenario_file(&self, line: usize, number: usize) -> Option<String> {
        let case = self.cases.iter().position(|case| case.lines.contains(&(line, number)))?;
        let load = self.runs.iter().find(|run| run.case == case)?.load;
        let seed = self.cases[case].seed;
        let run = Planned { case, controller: 0, repeat: 1, seed, load };
        let text = self.scenario(&run).ok()?.resolved;
        Some(among_inputs(text, self.files().ok()?.keys()))
    }
}

/// Reads a candidate that is a program, which only its ground has.
fn program(
    settings: &EvaluateSettings<'_>,
    kept: Option<&Files>,
) -> Result<Option<ProgramCandidate>, EvaluateError> {
    let typed = &settings.candidate;
    let wrong = |problem: String, advice: String| EvaluateError::Candidate { problem, advice };
    match (settings.on.name() == PROGRAMS, is_file(typed)) {
        (true, true) => {
            let kept = kept.and_then(|files| files.get(typed.as_str()).cloned());
            ProgramCandidate::read(typed, kept).map(Some)
        }
        (false, true) => Err(wrong(
            format!("{typed} is a program, and the ground {} has none", settings.on.name()),
            format!("write --on {PROGRAMS}"),
        )),
        (true, false) => Err(wrong(
            format!("the ground {PROGRAMS} evaluates programs, and {typed} is none"),
            "write the scenario file of one, such as programs/curl.toml".to_string(),
        )),
        (false, false) => Ok(None),
    }
}

/// Whether an evaluation includes a case.
fn is_for(case: &Case, settings: &EvaluateSettings<'_>) -> bool {
    match settings.on.name() == PROGRAMS {
        true => case.programs,
        false => !case.programs && (case.quick || !settings.quick),
    }
}

/// Imports a candidate that is a class in a file. Returns the candidate's name in records, and the
/// file by its name as typed.
fn class(
    settings: &EvaluateSettings<'_>,
    kept: Option<&Files>,
) -> Result<(String, Files), EvaluateError> {
    let named = format!("cc = {}", settings.candidate).parse::<toml::Table>().ok();
    let named = named.and_then(|named| Some(named["cc"].get("name")?.as_str()?.to_string()));
    let name = named.unwrap_or_else(|| settings.candidate.clone());
    let Some((file, class)) = class_file(&name) else { return Ok((name, Files::new())) };
    let wrong = |problem, advice| EvaluateError::Candidate { problem, advice };
    let (bytes, place): (Arc<[u8]>, _) = match kept {
        Some(files) => (files.get(file).cloned().unwrap_or_default(), None),
        None => {
            let bytes = load_file(Path::new(file)).map_err(|reason| {
                let advice = "write FILE.py:CLASS".to_string();
                wrong(format!("cannot read the controller in {file}: {reason}"), advice)
            })?;
            (bytes.into(), Some(file.into()))
        }
    };
    let own = ClassFile::new(file, class, bytes.clone(), place);
    let record_name = own.name.clone();
    let algorithms = settings.algorithms.as_deref().unwrap_or(Algorithms::built_in());
    algorithms.import(own).map_err(|error| wrong(error.problem, error.advice))?;
    Ok((record_name, Files::from([(file.to_string(), bytes)])))
}

/// Recorded links by their names.
fn files(traces: &[(String, Vec<u8>)]) -> Result<Files, EvaluateError> {
    let mut files = Files::new();
    for (typed, bytes) in traces {
        let name = typed.rsplit('/').next().unwrap_or(typed);
        if files.insert(name.to_string(), bytes.as_slice().into()).is_some() {
            return Err(EvaluateError::TwoTraces(name.to_string()));
        }
    }
    Ok(files)
}

/// What is set in a case over a recorded link.
fn over(set: &[String], trace: &str) -> Vec<String> {
    let quoted = format!("{trace:?}");
    set.iter().map(|set| set.replace("{trace}", &quoted)).collect()
}

fn sets(set: &[String]) -> Vec<Override> {
    let pairs = set.iter().filter_map(|set| set.split_once('='));
    pairs.map(|(key, value)| Override::new(key, value)).collect()
}

/// Turns a key of a flow into a key of the scenario.
fn of_flow(flow: &str, own: &Override) -> Override {
    let (key, value) = own.text().split_once('=').unwrap_or((own.text(), ""));
    Override::new(&format!("flow.{flow}.{key}"), value)
}

/// Whether a section is the wanted one or a subsection of it.
fn is_in(section: &str, wanted: &str) -> bool {
    let rest = section.strip_prefix(wanted.trim_end_matches('.'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The command that repeats the evaluation.
fn command(settings: &EvaluateSettings<'_>) -> String {
    let mut words = vec!["knee evaluate".to_string(), quoted(&settings.candidate)];
    words.extend(settings.with.iter().map(|own| format!("--with {}", quoted(own.text()))));
    words.extend(settings.sections.iter().map(|section| format!("--section {}", quoted(section))));
    words.push(match settings.on.name() == PROGRAMS {
        true => format!("--repeat-real {}", settings.repeat),
        false => format!("--repeat {}", settings.repeat),
    });
    let mut grounds: Vec<&str> = settings.beside.iter().map(|on| on.name()).collect();
    grounds.extend((settings.on.name() == PROGRAMS).then_some(PROGRAMS));
    words.extend((!grounds.is_empty()).then(|| format!("--on {}", grounds.join(","))));
    words.extend(settings.quick.then(|| "--quick".to_string()));
    words.extend(settings.search.map(|scenarios| format!("--search {scenarios}")));
    words.extend(settings.traces.iter().map(|(name, _)| format!("--trace {}", quoted(name))));
    words.join(" ")
}
