//! Traces as text: comma-separated lines after a line with the version.
//!
//! ```text
//! knee-decisions 2
//! asked,now_ns,mss,unsent,window_left,outstanding,oldest,can_repeat,decision,path...
//! changed,path...
//! ```
//!
//! Bytes and nanoseconds are integers, sets of paths the sum of 2^index.
//! `oldest` is `holder set` or `-`; a decision is `send 0 head`,
//! `send 1 ahead 2800`, `duplicate 3`, `repeat 1`, `repeat 1 penalise 0` or
//! `wait`; a path is `active ready srtt variation min_rtt window in_flight rate
//! sent capacity doubles`, with times in ns, rate and capacity in bit/s or `-`,
//! and `-` instead of `doubles` if the window does not double.

use super::{Row, RowKind, Shown, Trace};
use crate::sched::{Decision, Oldest, PATHS_MAX, Path, PathSet, Place, Status};
use knee_units::{Rate, Time};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;
use thiserror::Error;

const FIRST_LINE: &str = "knee-decisions 2";
const ASKED_FIELDS: &str =
    "asked,now_ns,mss,unsent,window_left,outstanding,oldest,can_repeat,decision,path...";

/// Why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}: {advice}")]
pub struct TraceError {
    /// Line number, counted from one.
    pub line: usize,
    /// The error.
    pub problem: String,
    /// How to fix it.
    pub advice: String,
}

impl Display for Trace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        for row in &self.rows {
            match &row.kind {
                RowKind::Asked { shown, decision } => write_asked(f, shown, *decision)?,
                RowKind::Changed => write!(f, "changed")?,
            }
            for path in &self.paths[row.paths.clone()] {
                write_path(f, path)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn write_asked(f: &mut Formatter<'_>, shown: &Shown, decision: Decision) -> fmt::Result {
    let Shown { now, mss, unsent, window_left, outstanding, oldest, can_repeat } = shown;
    write!(f, "asked,{},{mss},{unsent},{window_left},{outstanding},", now.as_nanos())?;
    match oldest {
        Some(oldest) => write!(f, "{} {}", oldest.holder, oldest.sent_on.0)?,
        None => write!(f, "-")?,
    }
    write!(f, ",{},", can_repeat.0)?;
    match decision {
        Decision::Send(path, Place::Head) => write!(f, "send {path} head"),
        Decision::Send(path, Place::Tail) => write!(f, "send {path} tail"),
        Decision::Send(path, Place::Ahead(bytes)) => write!(f, "send {path} ahead {bytes}"),
        Decision::Duplicate(paths) => write!(f, "duplicate {}", paths.0),
        Decision::Repeat(path) => write!(f, "repeat {path}"),
        Decision::RepeatAndPenalise { path, holder } => {
            write!(f, "repeat {path} penalise {holder}")
        }
        Decision::Wait => write!(f, "wait"),
    }
}

fn write_path(f: &mut Formatter<'_>, path: &Path) -> fmt::Result {
    let status = STATUSES.iter().find(|(_, status)| *status == path.status).map_or("", |s| s.0);
    let ready = if path.ready { "ready" } else { "busy" };
    let times = [path.srtt, path.rtt_variation, path.min_rtt].map(Time::as_nanos);
    let [srtt, variation, min_rtt] = times;
    let Path { window, in_flight, sent, .. } = path;
    write!(f, ",{status} {ready} {srtt} {variation} {min_rtt} {window} {in_flight} ")?;
    write_rate(f, path.rate)?;
    write!(f, " {sent} ")?;
    write_rate(f, path.capacity)?;
    write!(f, " {}", if path.doubles { DOUBLES } else { "-" })
}

fn write_rate(f: &mut Formatter<'_>, rate: Option<Rate>) -> fmt::Result {
    match rate {
        Some(rate) => write!(f, "{}", rate.as_bits_per_second()),
        None => write!(f, "-"),
    }
}

const DOUBLES: &str = "doubles";

const STATUSES: [(&str, Status); 4] = [
    ("active", Status::Active),
    ("backup", Status::Backup),
    ("suspect", Status::Suspect),
    ("down", Status::Down),
];

impl FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Trace, TraceError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        if lines.next().map(|(_, line)| line.trim_end()) != Some(FIRST_LINE) {
            return Err(TraceError {
                line: 1,
                problem: "not a decision record of a known version".to_owned(),
                advice: format!("begin with \"{FIRST_LINE}\""),
            });
        }
        let mut trace = Trace::default();
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            trace.read_row(line).map_err(|Fault { problem, advice }| TraceError {
                line: number,
                problem,
                advice: advice.to_owned(),
            })?;
        }
        Ok(trace)
    }
}

struct Fault {
    problem: String,
    advice: &'static str,
}

fn fault(found: &str, advice: &'static str) -> Fault {
    Fault { problem: format!("cannot read \"{found}\""), advice }
}

impl Trace {
    fn read_row(&mut self, line: &str) -> Result<(), Fault> {
        let mut fields = line.split(',').map(str::trim);
        let event = fields.next().unwrap_or_default();
        let kind = match event {
            "asked" => read_asked(&mut fields)?,
            "changed" => RowKind::Changed,
            other => return Err(fault(other, "begin the line with asked or changed")),
        };
        let start = self.paths.len();
        for field in fields {
            self.paths.push(read_path(field)?);
        }
        let paths = start..self.paths.len();
        if paths.is_empty() || paths.len() > PATHS_MAX {
            let problem = format!("{} paths", paths.len());
            return Err(Fault { problem, advice: "end the line with from 1 to 32 paths" });
        }
        if let RowKind::Asked { shown, decision } = &kind {
            check_indices(shown, *decision, paths.len())?;
        }
        self.rows.push(Row { paths, kind });
        Ok(())
    }
}

fn read_asked<'l>(fields: &mut impl Iterator<Item = &'l str>) -> Result<RowKind, Fault> {
    let mut field = || {
        let advice = ASKED_FIELDS;
        fields.next().ok_or(Fault { problem: "fields are missing".to_owned(), advice })
    };
    let shown = Shown {
        now: Time::from_nanos(number(field()?)?),
        mss: number(field()?)?,
        unsent: number(field()?)?,
        window_left: number(field()?)?,
        outstanding: number(field()?)?,
        oldest: read_oldest(field()?)?,
        can_repeat: PathSet(number(field()?)?),
    };
    if shown.mss == 0 {
        return Err(fault("0", "write the payload of a full packet, in bytes"));
    }
    Ok(RowKind::Asked { shown, decision: read_decision(field()?)? })
}

fn number<N: FromStr>(text: &str) -> Result<N, Fault> {
    text.parse().map_err(|_| fault(text, "write a whole number in range"))
}

fn read_oldest(field: &str) -> Result<Option<Oldest>, Fault> {
    match field.split_once(' ') {
        None if field == "-" => Ok(None),
        None => Err(fault(field, "write the holder and the set of paths, or -")),
        Some((holder, set)) => {
            Ok(Some(Oldest { holder: number(holder)?, sent_on: PathSet(number(set)?) }))
        }
    }
}

fn read_decision(field: &str) -> Result<Decision, Fault> {
    let words: Vec<&str> = field.split_whitespace().collect();
    Ok(match words[..] {
        ["send", path, "head"] => Decision::Send(number(path)?, Place::Head),
        ["send", path, "tail"] => Decision::Send(number(path)?, Place::Tail),
        ["send", path, "ahead", bytes] => {
            Decision::Send(number(path)?, Place::Ahead(number(bytes)?))
        }
        ["duplicate", set] => Decision::Duplicate(PathSet(number(set)?)),
        ["repeat", path] => Decision::Repeat(number(path)?),
        ["repeat", path, "penalise", holder] => {
            Decision::RepeatAndPenalise { path: number(path)?, holder: number(holder)? }
        }
        ["wait"] => Decision::Wait,
        _ => return Err(fault(field, "write a decision, such as \"send 0 head\" or \"wait\"")),
    })
}

fn read_path(field: &str) -> Result<Path, Fault> {
    let advice = "write status, ready or busy, srtt, variation, min_rtt, window, in_flight, rate, \
                  sent, capacity, doubles or -, with spaces between them";
    let words: Vec<&str> = field.split_whitespace().collect();
    let [status, ready, srtt, variation, min_rtt, window, in_flight, rate, sent, capacity, doubles] =
        words[..]
    else {
        return Err(fault(field, advice));
    };
    let time = |text: &str| number(text).map(Time::from_nanos);
    let status = STATUSES.iter().find(|(name, _)| *name == status);
    let rate_of = |text: &str| match text {
        "-" => Ok(None),
        text => number(text).map(|bps| Some(Rate::from_bits_per_second(bps))),
    };
    Ok(Path {
        status: status.ok_or_else(|| fault(field, advice))?.1,
        ready: match ready {
            "ready" => true,
            "busy" => false,
            _ => return Err(fault(field, advice)),
        },
        srtt: time(srtt)?,
        rtt_variation: time(variation)?,
        min_rtt: time(min_rtt)?,
        window: number(window)?,
        in_flight: number(in_flight)?,
        rate: rate_of(rate)?,
        sent: number(sent)?,
        capacity: rate_of(capacity)?,
        doubles: match doubles {
            DOUBLES => true,
            "-" => false,
            _ => return Err(fault(field, advice)),
        },
    })
}

/// Checks that a row names only paths that it contains: otherwise replaying it would panic.
fn check_indices(shown: &Shown, decision: Decision, paths: usize) -> Result<(), Fault> {
    let set = |set: PathSet| set.iter().max().unwrap_or(0);
    let oldest = shown.oldest.map_or(0, |oldest| oldest.holder.max(set(oldest.sent_on)));
    let decided = match decision {
        Decision::Send(path, _) | Decision::Repeat(path) => path,
        Decision::Duplicate(paths) => set(paths),
        Decision::RepeatAndPenalise { path, holder } => path.max(holder),
        Decision::Wait => 0,
    };
    let highest = oldest.max(decided).max(set(shown.can_repeat));
    if highest < paths {
        return Ok(());
    }
    let problem = format!("path {highest} is named, but the line shows {paths}");
    Err(Fault { problem, advice: "count paths from 0" })
}
