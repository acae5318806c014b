//! `knee plot`: writes a figure of a run, a ranking or a comparison to a file, for papers.

use crate::failure::{Ending, Failure};
use crate::out_file::OutFile;
use crate::picture::Picture;
use crate::screen;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, ValueHint};
use knee_lab::directory::{COMPARISON, RANK, SWEEP};
use knee_lab::{Saved, saved, with_rates};
use knee_present::words::listed_or;
use knee_record::{read_rank, read_run, read_sweep};
use knee_report::{
    ComparedFigure, Figure, Mark, MarkError, Plot, PlotError, compared_svg, plot_svg,
    rank_plane_svg, sweep_svg,
};
use std::path::{Path, PathBuf};

pub const EXAMPLES: &str = "\
Examples:
  knee plot knee-out/first --what throughput
  knee plot knee-out/first --what bandwidth --flow 'bbr[1]' --out figure-3.svg
  knee plot knee-out/first --what queue --link bottleneck --format png --width 2400
  knee plot knee-out/first --what delay --mark 'target=80 ms' --mark 'second flow@20 s'
  knee plot knee-out/rank-coexist --what delay-throughput
  knee plot knee-out/compared --what against
  knee plot knee-out/sweep-first --what values --measure goodput_bps

The drawing is the same as on the page, in colours for print.";

/// `knee plot`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Directory of a run, of a ranking, of a comparison or of a sweep
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,
    /// What to draw. Without it, lists what the directory has
    #[arg(long, value_name = "WHAT")]
    what: Option<What>,
    /// Flow whose controller is drawn, as the legend names it; of a sweep the group of
    /// flows. Default: the first; of a sweep all flows
    #[arg(long, value_name = "FLOW")]
    flow: Option<String>,
    /// Link to draw. Default: the one with the longest queue
    #[arg(long, value_name = "LINK")]
    link: Option<String>,
    /// Measure of a sweep, as sweep.parquet names it. Default: the page's first
    #[arg(long, value_name = "MEASURE")]
    measure: Option<String>,
    /// Draw a line at a value from elsewhere: a figure of a publication, a target; or at an
    /// instant of a figure over time. Repeatable
    #[arg(long, value_name = "NAME=VALUE|NAME@TIME")]
    mark: Vec<String>,
    /// Format of the file. Default: from the extension of --out; without --out, svg
    #[arg(long, value_name = "FORMAT")]
    format: Option<Picture>,
    /// Width in pixels; the height follows
    #[arg(long, value_name = "PIXELS", default_value_t = 720,
        value_parser = clap::value_parser!(u16).range(100..=20_000))]
    width: u16,
    /// Where to write. Default: WHAT.svg, or the ending of --format
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Replace the file
    #[arg(long)]
    force: bool,
}

/// Selects a figure by name.
#[derive(Clone, Copy, Debug)]
enum What {
    /// A figure of a run.
    Run(Figure),
    /// Delay against throughput, for a ranking or a comparison.
    DelayThroughput,
    /// Sides against each other, for a comparison.
    Against,
    /// Of a sweep.
    Values,
}

/// Names of the figures of rankings, comparisons and sweeps.
const PLANE: &str = "delay-throughput";
const AGAINST: &str = "against";
const VALUES: &str = "values";

impl What {
    fn name(self) -> &'static str {
        match self {
            What::Run(figure) => figure.name(),
            What::DelayThroughput => PLANE,
            What::Against => AGAINST,
            What::Values => VALUES,
        }
    }
}

impl ValueEnum for What {
    fn value_variants<'a>() -> &'a [What] {
        const ALL: [What; Figure::ALL.len() + 3] = {
            let mut all = [What::DelayThroughput; Figure::ALL.len() + 3];
            all[Figure::ALL.len() + 1] = What::Against;
            all[Figure::ALL.len() + 2] = What::Values;
            let mut at = 0;
            while at < Figure::ALL.len() {
                all[at] = What::Run(Figure::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let about = match self {
            What::Run(figure) => figure.about(),
            What::DelayThroughput => {
                "Throughput against delay: of each controller alone for a ranking, of each side \
                 for a comparison"
            }
            What::Against => "For a comparison: each side against the first, measure by measure",
            What::Values => "For a sweep: a measure over one setting, or as a map over two",
        };
        Some(PossibleValue::new(self.name()).help(about))
    }
}

/// Draws one figure of a run, a ranking or a comparison into a file.
pub fn plot(arguments: &Arguments) -> Result<Ending, Failure> {
    let Some(what) = arguments.what else { return Err(unnamed(&arguments.directory)?) };
    let format = match (arguments.format, &arguments.out) {
        (Some(format), _) => format,
        (None, Some(out)) => Picture::of_file(out)?,
        (None, None) => Picture::Svg,
    };
    let by_what = || PathBuf::from(format!("{}.{}", what.name(), format.ending()));
    let out = arguments.out.clone().unwrap_or_else(by_what);
    if arguments.measure.is_some() && !matches!(what, What::Values) {
        let what = format!("{} has no measure to choose", what.name());
        return Err(Failure::Usage(what, format!("leave out --measure, or write --what {VALUES}")));
    }
    if !arguments.mark.is_empty() && !matches!(what, What::Run(_)) {
        let what = format!("{} takes no marks", what.name());
        return Err(Failure::Usage(
            what,
            "leave out --mark: it is for figures of runs".to_string(),
        ));
    }
    let file = OutFile::new(&out, arguments.force)?;
    let holds = |name: &str| arguments.directory.join(name).is_file();
    let svg = match what {
        What::Run(figure) => of_run(arguments, figure)?,
        What::DelayThroughput if holds(COMPARISON) => of_comparison(arguments, what)?,
        What::DelayThroughput => of_ranking(arguments)?,
        What::Against => of_comparison(arguments, what)?,
        What::Values => of_sweep(arguments)?,
    };
    file.write_bytes(&format.encode(svg)?)?;
    screen::print(&format!("picture  {}\n", out.display()))?;
    Ok(Ending::Done)
}

/// Says which figures the contents of a folder have.
fn unnamed(directory: &Path) -> Result<Failure, Failure> {
    let holds = |name: &str| directory.join(name).is_file();
    let names = if holds(COMPARISON) {
        vec![PLANE, AGAINST]
    } else if holds(RANK) {
        vec![PLANE]
    } else if holds(SWEEP) {
        vec![VALUES]
    } else {
        let run = read_run(directory).map_err(knee_lab::Error::from)?;
        let records = with_rates(directory, run.records);
        let plot = |figure| Plot { figure, flow: None, link: None, width: 720.0, marks: &[] };
        let drawn = Figure::ALL.into_iter();
        let drawn = drawn.filter(|figure| plot_svg(&records, &plot(*figure)).is_ok());
        drawn.map(Figure::name).collect()
    };
    let what = format!("no figure of {} is named", directory.display());
    Ok(Failure::Usage(what, format!("write --what {}", listed_or(&names))))
}

fn of_run(arguments: &Arguments, figure: Figure) -> Result<String, Failure> {
    if arguments.directory.join(RANK).is_file() {
        return Err(not_of(&arguments.directory, "a ranking", figure.name(), PLANE));
    }
    if arguments.directory.join(SWEEP).is_file() {
        return Err(not_of(&arguments.directory, "a sweep", figure.name(), VALUES));
    }
    let marks: Result<Vec<Mark>, MarkError> =
        arguments.mark.iter().map(|text| Mark::parse(text, figure)).collect();
    let marks = marks.map_err(|error| {
        let advice = "write NAME=VALUE, or NAME@TIME for an instant of a figure over time";
        Failure::Usage(error.to_string(), advice.to_string())
    })?;
    let run = read_run(&arguments.directory).map_err(knee_lab::Error::from)?;
    let records = with_rates(&arguments.directory, run.records);
    let plot = Plot {
        figure,
        flow: arguments.flow.as_deref(),
        link: arguments.link.as_deref(),
        width: f64::from(arguments.width),
        marks: &marks,
    };
    plot_svg(&records, &plot).map_err(|error| {
        let advice = match error {
            PlotError::Outside(..) => "write a place on it",
            _ => "name one of these",
        };
        Failure::Usage(error.to_string(), advice.to_string())
    })
}

fn of_comparison(arguments: &Arguments, what: What) -> Result<String, Failure> {
    let Arguments { directory, width, .. } = arguments;
    if !directory.join(COMPARISON).is_file() {
        let instead = "throughput, or knee compare --out first";
        return Err(not_of(directory, "no comparison", what.name(), instead));
    }
    all_of_them(arguments, what)?;
    let figure = match what {
        What::Against => ComparedFigure::Against,
        _ => ComparedFigure::DelayThroughput,
    };
    let Saved::Comparison(compared) = saved(directory)? else {
        return Err(not_of(directory, "no comparison", what.name(), "throughput"));
    };
    let svg = compared_svg(&compared.names, &compared.measures, figure, f64::from(*width));
    svg.ok_or_else(|| {
        let what = format!("nothing in {} has both values", directory.display());
        Failure::Usage(what, "compare runs that have flows".to_string())
    })
}

/// Rejects `--flow` and `--link` for a figure of all flows.
fn all_of_them(arguments: &Arguments, what: What) -> Result<(), Failure> {
    if arguments.flow.is_none() && arguments.link.is_none() {
        return Ok(());
    }
    let name = what.name();
    let what = format!("{name} shows all candidates, not one flow or link");
    Err(Failure::Usage(what, "remove --flow and --link".to_string()))
}

fn of_ranking(arguments: &Arguments) -> Result<String, Failure> {
    let Arguments { directory, width, .. } = arguments;
    if !directory.join(RANK).is_file() {
        return Err(not_of(directory, "no ranking", PLANE, "throughput, or knee rank first"));
    }
    all_of_them(arguments, What::DelayThroughput)?;
    let summary = read_rank(&directory.join(RANK)).map_err(knee_lab::Error::from)?;
    rank_plane_svg(&summary, f64::from(*width)).ok_or_else(|| {
        let what = format!("no candidate of {} was measured", directory.display());
        Failure::Usage(what, "run the ranking to its end".to_string())
    })
}

fn of_sweep(arguments: &Arguments) -> Result<String, Failure> {
    let Arguments { directory, width, flow, link, measure, .. } = arguments;
    if !directory.join(SWEEP).is_file() {
        return Err(not_of(directory, "no sweep", VALUES, "throughput, or knee sweep first"));
    }
    if link.is_some() {
        let what = format!("{VALUES} is of flows, not of one link");
        return Err(Failure::Usage(what, "leave out --link".to_string()));
    }
    let summary = read_sweep(&directory.join(SWEEP)).map_err(knee_lab::Error::from)?;
    sweep_svg(&summary, (measure.as_deref(), flow.as_deref()), f64::from(*width))
        .map_err(|what| Failure::Usage(what, "name one of these".to_string()))
}

/// Reports that a folder does not have this figure.
fn not_of(directory: &Path, holds: &str, wanted: &str, instead: &str) -> Failure {
    let what = format!("{} contains {holds}: there is no {wanted} to draw", directory.display());
    Failure::Usage(what, format!("write --what {instead}"))
}
