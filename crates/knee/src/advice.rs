//! Advice on errors of the laboratory, in terms of the command line.

use crate::failure::Failure;
use knee_lab::{
    AdviseError, CompareError, CurveError, Error, EvaluateError, ExperimentError, FitError,
    GridError, GroundError, QlogError, RankError, Refusal, RehearseError, RerunError, STUDY,
    StudyError, SweepError, TrainError, built_in_studies,
};
use knee_record::Error as RecordError;
use knee_units::registry::nearest;
use std::io::{self, ErrorKind};
use std::path::Path;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let what = error.to_string();
        let usage = |advice: &str| Failure::Usage(what.clone(), advice.to_string());
        match error {
            Error::Files(files) => Failure::Files(files),
            Error::UnknownGround(unknown) => {
                let what = format!("there is no ground \"{}\"", unknown.name);
                Failure::Usage(what, unknown.advice)
            }
            Error::Ground(error) => of_ground(error, what),
            Error::Record(error) => error.into(),
            Error::Write { path, source } => cannot_write(&path, &source),
            Error::Read { source, .. } => unreadable(what, &source),
            Error::NotEmpty(_) => {
                usage("add --force to replace what is there, or write elsewhere with --out DIR")
            }
            Error::Source(_) => usage("write elsewhere with --out DIR"),
            Error::Link(_) => usage("remove it, or add --force"),
            Error::Threads { .. } => Failure::Host(what, "use --jobs 1".to_string()),
            Error::Experiment(ExperimentError::RepeatsOnSeveralGrounds) => Failure::Usage(
                "--repeat gives intervals on one ground".to_string(),
                "write --on sim or --on kernel".to_string(),
            ),
            Error::Experiment(ExperimentError::NoPacketLog) => {
                usage("add --on sim, or remove --packet-log")
            }
            Error::Experiment(ExperimentError::NoCapture) => {
                usage("add --on kernel, or remove --capture")
            }
            Error::Grid(error) => of_grid(error),
            Error::Curve(error) => usage(of_curve(&error)),
            Error::Compare(CompareError::Kinds) => usage("name two of a kind"),
            Error::Compare(CompareError::NoEvidence(..)) => usage("run it again"),
            Error::Compare(CompareError::TooFewLeft(_)) => usage("run them again"),
            Error::Compare(CompareError::TooFew) => usage("name two or more"),
            Error::Compare(CompareError::NoPoint { ref sweep, ref known, .. }) => {
                let all = known.iter().map(|key| format!("{sweep}@{key}"));
                let advice = format!("write {}", all.collect::<Vec<_>>().join(" or "));
                Failure::Usage(what, advice)
            }
            Error::Compare(CompareError::NoCommonSeeds) => {
                usage("run both with the same --seed and --repeat")
            }
            Error::Study(error) => Failure::Usage(what, of_study(&error)),
            Error::Rank(error) => Failure::Usage(what, of_rank(&error).to_string()),
            Error::Evaluate(EvaluateError::NoSection(_)) => {
                usage("write a section of RFC 9743, such as 5.1.2, or 5.2 for all below it")
            }
            Error::Evaluate(EvaluateError::Candidate { ref advice, .. }) => usage(advice),
            Error::Evaluate(EvaluateError::OneSeed) => usage("write --repeat 2 or more"),
            Error::Evaluate(EvaluateError::TwoTraces(_)) => usage("copy one to another name"),
            Error::Sweep(error) => of_sweep(error),
            Error::Qlog(error) => Failure::Usage(what, of_qlog(&error)),
            Error::PacketLog(_) => usage("run it again with --packet-log"),
            Error::NoLinks(_) => usage("knee report shows what its flows retransmitted"),
            Error::NoDrops { .. } => {
                usage("run one of its scenarios with knee run, and name that folder")
            }
            Error::Train(TrainError::NoFlow(_)) => {
                usage("write cc = \"remycc\" in the flows to be trained")
            }
            Error::Advise(AdviseError::NoFiles(ref path)) => usage(&of_no_files(path)),
            Error::Advise(AdviseError::NoConnections) => {
                usage("observe for longer, where data is sent: knee observe --help")
            }
            Error::Fit(FitError::NotOneFlow(_)) => {
                usage("fit a run with one bulk flow or file; knee advise takes many connections")
            }
            Error::Fit(FitError::NotOneLink(_)) => {
                usage("write one link in forward, and reverse_delay; on hosts nothing else changes")
            }
            Error::Fit(FitError::TooShort(_)) => {
                usage("run it for longer, or with a smaller sample_interval")
            }
            Error::Fit(FitError::File(_, _, ref advice)) => usage(advice),
            #[cfg(feature = "live")]
            Error::Play(_) => usage("write path = \"NAME\" in the first flow"),
            Error::Rehearse(RehearseError::NoPair(_)) => {
                usage("begin with knee init --template mix")
            }
            Error::Rehearse(RehearseError::TooFew) => usage("write a longer duration"),
            Error::Rehearse(RehearseError::Busy) => {
                Failure::Host(what, "run it on a host with less to do".to_string())
            }
            Error::Rerun(error) => usage(of_rerun(&error)),
            Error::Point { label, source } => at_point(Failure::from(*source), &label),
            Error::Stopped => Failure::Interrupted,
            Error::Report(_) | Error::Defect(_) => Failure::Internal(what),
        }
    }
}

fn of_ground(error: GroundError, what: String) -> Failure {
    match error {
        GroundError::Scenario(Refusal { what, advice, .. }) => Failure::Usage(what, advice),
        GroundError::Host(Refusal { what, advice, .. }) => Failure::Host(what, advice),
        GroundError::Samples(error) => error.into(),
        GroundError::PacketLog(source) | GroundError::Capture(source) => {
            Failure::Host(what, elsewhere(&source))
        }
        GroundError::Defect(what) => Failure::Internal(what),
    }
}

fn of_grid(error: GridError) -> Failure {
    let what = error.to_string();
    match error {
        GridError::NoCell { example } => Failure::Usage(
            "no cell's name contains the text of --cells".to_string(),
            format!("write a part of a name, such as {example}"),
        ),
        GridError::NotATrace { .. } => {
            Failure::Usage(what, "name a recorded link in Mahimahi's format".to_string())
        }
        GridError::OfAnother(_) => {
            Failure::Usage(what, "write elsewhere with --out DIR".to_string())
        }
    }
}

/// Records of repeats are in the folders of the single runs.
fn of_no_files(path: &Path) -> String {
    let first = path.join("repeat-1");
    match first.is_dir() {
        true => format!("name one of its runs, such as {}", first.display()),
        false => {
            "name a folder of knee observe or of a run, or a file connections*.parquet".to_string()
        }
    }
}

fn of_curve(error: &CurveError) -> &'static str {
    match error {
        CurveError::SeveralFlows => "keep one, with cc = { name = \"fixed\" }",
        CurveError::NotFixed => "write cc = { name = \"fixed\" }",
        CurveError::SeveralPaths => "give it one",
        CurveError::NoConstantRate => "add rate = \"10 Mbit/s\"",
        CurveError::WithoutSimulator => "write --on sim,kernel",
        CurveError::Nothing { .. } => "write a longer duration",
    }
}

fn of_study(error: &StudyError) -> String {
    match error {
        StudyError::Unknown(name) => match nearest(name, built_in_studies()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => {
                let known = built_in_studies().join(", ");
                format!("write one of {known}, or a folder with a {STUDY}")
            }
        },
        StudyError::SameName(_) => "name one of them".to_string(),
        StudyError::WithoutSimulator => "write --on sim,kernel".to_string(),
        StudyError::NotAFile(name) => {
            format!("name its folder: knee reproduce studies/{name} --record")
        }
    }
}

fn of_sweep(error: SweepError) -> Failure {
    let what = error.to_string();
    match error {
        SweepError::TooMany { runs_max, .. } => {
            Failure::Usage(what, format!("reduce it to at most {runs_max} runs"))
        }
        SweepError::VariedTwice(key) => Failure::Usage(
            format!("--vary {key} is given twice"),
            "write all values in one, a,b,c".to_string(),
        ),
        SweepError::NotVaried { key, known } => Failure::Usage(
            format!("--for {key}: {what}"),
            format!("name one of {}", known.join(", ")),
        ),
        SweepError::SetAndVaried(_) => Failure::Usage(what, "remove --set or --vary".to_string()),
        SweepError::Another(_) => {
            let advice = "write elsewhere with --out DIR, or add --force to replace it";
            Failure::Usage(what, advice.to_string())
        }
        SweepError::Changed(_) => Failure::Usage(what, "run the sweep again".to_string()),
    }
}

fn of_qlog(error: &QlogError) -> String {
    let again = "run it again with --packet-log";
    match error {
        QlogError::NoFlow { flow, known } => {
            match nearest(flow, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("write one of {}", known.join(", ")),
            }
        }
        _ => again.to_string(),
    }
}

fn of_rerun(error: &RerunError) -> &'static str {
    match error {
        RerunError::Nothing(_) => "name a directory that knee run, sweep, rank or evaluate wrote",
        RerunError::RealTime(_) => "run it again, and compare the two with knee compare",
        RerunError::Own { .. } => "run that program again, or name the class as FILE.py:CLASS",
        RerunError::NotKept(_) => "repeat it with the line at the end of its report.html",
    }
}

fn of_rank(error: &RankError) -> &'static str {
    match error {
        RankError::TooMany(_) => "name fewer controllers or scenarios, or a smaller --repeat",
        RankError::SeveralPaths { .. } => {
            "choose one over a single path with --flow, or compare with knee sweep"
        }
        RankError::Waits { .. } => "choose one that does not with --flow, or remove after",
        RankError::NoRate { .. } => "add rate = \"10 Mbit/s\" to its bottleneck",
        RankError::NoFlow { .. } => "write the name of one of its flows",
        RankError::NoScenarios(_) => "name scenario files, or the folder that contains them",
    }
}

fn at_point(failure: Failure, label: &str) -> Failure {
    match failure {
        Failure::Usage(what, advice) => Failure::Usage(format!("at {label}: {what}"), advice),
        Failure::Internal(what) => Failure::Internal(format!("at {label}: {what}")),
        other => other,
    }
}

/// Reports a file that cannot be read: the folder is not as Knee wrote it, or the host refuses.
fn unreadable(what: String, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::FileTooLarge => {
            Failure::Usage(what, "use a folder as Knee wrote it".to_string())
        }
        _ => Failure::Host(what, "make it readable".to_string()),
    }
}

/// Reports that `path` cannot be written in an output directory.
pub fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::Host(format!("cannot write {}: {error}", path.display()), elsewhere(error))
}

/// Advice for a file that cannot be written.
fn elsewhere(error: &io::Error) -> String {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    let free = if full.contains(&error.kind()) { "free some space, or " } else { "" };
    format!("{free}write elsewhere with --out DIR")
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Failure {
        let what = error.to_string();
        match error {
            RecordError::Io { action: "read", source, .. } => unreadable(what, &source),
            RecordError::Io { source, .. } => Failure::Host(what, elsewhere(&source)),
            RecordError::NotARun { .. } => {
                Failure::Usage(what, "name a directory that knee run wrote".to_string())
            }
            RecordError::Unfinished { .. }
            | RecordError::Missing { .. }
            | RecordError::Schema { .. }
            | RecordError::Malformed { .. } => {
                Failure::Usage(what, "run its scenario again".to_string())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::INTERRUPTED;

    /// Such as `knee evaluate --on sim,kernel`, which then has nothing to compare.
    #[test]
    fn a_stop_without_a_result_is_an_interruption() {
        assert_eq!(Failure::from(Error::Stopped).code(), INTERRUPTED);
        let source = Box::new(Error::Stopped);
        let at_point = Error::Point { label: "flow.a.cc=bbr".to_string(), source };
        assert_eq!(Failure::from(at_point).code(), INTERRUPTED);
    }
}
