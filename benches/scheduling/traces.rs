//! Pairs of recorded links, compared with the better of them alone.

use crate::perfect::Curves;
use crate::runs::{Contender, completion, run_with, side_by_side, value};
use crate::table::Column;
use knee_scenario::{Folder, Measure};

const DRAWS: u64 = 30;
const SIZES: [u64; 3] = [1_000_000, 5_000_000, 20_000_000];

/// Makes the scenario of a file over links that begin at random times of their recordings; each
/// direction takes 20 ms, the queue holds 100 packets.
fn scenario(files: [&str; 2], over: &[usize], bytes: u64, seed: u64, flow: &str) -> String {
    let head = format!("duration = \"3000 s\"\nseed = {seed}\nsample_interval = \"1 s\"\n");
    let paths: Vec<String> = over.iter().map(|path| format!("\"p{path}\"")).collect();
    let paths = match &paths[..] {
        [one] => format!("path = {one}"),
        several => format!("paths = [{}]", several.join(", ")),
    };
    head + &links(files)
        + &format!(
            "[[flow]]\nname = \"flow\"\n{paths}\n{flow}cc = \"cubic\"\n\
         workload = {{ file = \"{bytes} B\" }}\n"
        )
}

/// Makes the scenario of one of the links alone, with endless data, as a subflow.
fn always_fed(files: [&str; 2], path: usize, seconds: u64, seed: u64) -> String {
    let head = format!("duration = \"{seconds} s\"\nseed = {seed}\nsample_interval = \"5 ms\"\n");
    head + &links(files)
        + &format!(
            "[[flow]]\nname = \"flow\"\npaths = [\"p{path}\"]\nscheduler = \"minrtt\"\n\
         receive_window = \"unlimited\"\ncc = \"cubic\"\nworkload = \"bulk\"\n"
        )
}

fn links(files: [&str; 2]) -> String {
    let mut text = String::new();
    for (number, file) in files.iter().enumerate() {
        text += &format!(
            "[link.l{number}]\nrate = {{ trace = {file:?}, offset = \"random\" }}\n\
             delay = \"20 ms\"\nbuffer = \"100 packets\"\n\
             [path.p{number}]\nforward = [\"l{number}\"]\nreverse_delay = \"20 ms\"\n"
        );
    }
    text
}

/// Result of one draw: seconds over both links, over the better one alone, for a perfect scheduler
/// with the same controllers (T_cc), and the bound T*.
struct Draw {
    both: f64,
    better: f64,
    perfect: f64,
    bound: f64,
}

/// Delay of each direction of a link, ms.
const WAY_MS: f64 = 20.0;

fn draw(files: [&str; 2], bytes: u64, seed: u64, contender: &Contender) -> Draw {
    let folder = Folder(".".into());
    let run =
        |over: &[usize], flow: &str| run_with(&scenario(files, over, bytes, seed, flow), &folder);
    let alone = [0, 1].map(|path| completion(&run(&[path], "")));
    let Contender { scheduler, reinjection, .. } = contender;
    let records = run(&[0, 1], &format!("scheduler = {scheduler}\nreinjection = {reinjection}\n"));
    let both = completion(&records);
    let bound = both / value(&records, &Measure::CompletionOverBound);
    let better = alone[0].min(alone[1]);
    let curves = Curves::long_enough(bytes, better as u64 + 2, |path, seconds| {
        let join = if path == 0 { 0.0 } else { 2.0 * WAY_MS };
        let fed = || run_with(&always_fed(files, path, seconds, seed), &folder);
        (path < files.len()).then(|| (fed(), (WAY_MS + join) * 1e6))
    });
    Draw { both, better, perfect: curves.completion(bytes), bound }
}

/// Prints, for each pair of recordings and size, the time relative to the better link, and the gain
/// relative to the gain that the bound allows over that link.
pub fn compare(files: &[&str], contenders: &[Contender]) {
    let mut jobs = Vec::new();
    for (first, a) in files.iter().enumerate() {
        for b in &files[first + 1..] {
            for bytes in SIZES {
                jobs.extend((1..=DRAWS).map(|seed| ([*a, *b], bytes, seed)));
            }
        }
    }
    for contender in contenders {
        println!("{}\n", contender.label);
        println!(
            "| pair | MB | over the better link: median / mean / worst | gained of what T* allows, s \
             | part | part that T_cc gains |"
        );
        println!("| --- | --- | --- | --- | --- | --- |");
        let done =
            side_by_side(&jobs, |(files, bytes, seed)| draw(*files, *bytes, *seed, contender));
        let of_cells = jobs.chunks(DRAWS as usize).zip(done.chunks(DRAWS as usize));
        let mut of_pair: Vec<(f64, f64)> = Vec::new();
        for (cell, draws) in of_cells {
            let ([a, b], bytes, _) = cell[0];
            let over = Column::of(draws.iter().map(|draw| draw.both / draw.better).collect());
            let Gained { by_both, by_perfect, possible } = Gained::of(draws);
            let (share, ceiling) = (by_both / possible, by_perfect / possible);
            println!(
                "| {} + {} | {} | {:.3} / {:.3} / {:.2} | {by_both:.3} of {possible:.3} \
                 | {share:.2} | {ceiling:.2} |",
                name(a),
                name(b),
                bytes / 1_000_000,
                over.quantile(0.5),
                over.mean,
                over.quantile(1.0)
            );
            of_pair.push((share, ceiling));
            if of_pair.len() == SIZES.len() {
                let count = SIZES.len() as f64;
                let share = of_pair.iter().map(|(share, _)| share).sum::<f64>() / count;
                let ceiling = of_pair.iter().map(|(_, ceiling)| ceiling).sum::<f64>() / count;
                println!("| {} + {} | mean | | | {share:.2} | {ceiling:.2} |", name(a), name(b));
                of_pair.clear();
            }
        }
        println!();
    }
}

/// Seconds gained over the better link, mean over the draws.
struct Gained {
    by_both: f64,
    /// Gain of a perfect scheduler with the same controllers.
    by_perfect: f64,
    /// Gain that the bound allows.
    possible: f64,
}

impl Gained {
    /// Averages before dividing: if a link is nearly idle, the bound allows hardly any gain over
    /// the other, and the quotient of a single draw means nothing.
    fn of(draws: &[Draw]) -> Gained {
        let mean = |of: &dyn Fn(&Draw) -> f64| {
            draws.iter().map(|draw| draw.better - of(draw)).sum::<f64>() / draws.len() as f64
        };
        Gained {
            by_both: mean(&|draw| draw.both),
            by_perfect: mean(&|draw| draw.perfect),
            possible: mean(&|draw| draw.bound),
        }
    }
}

fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
