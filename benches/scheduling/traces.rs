//! Recorded links, two at once: against the better of them alone.

use crate::runs::{Contender, completion, run_with, side_by_side, value};
use crate::table::Column;
use knee_scenario::{Folder, Measure};

const DRAWS: u64 = 30;
const SIZES: [u64; 3] = [1_000_000, 5_000_000, 20_000_000];

/// A file over links that begin anywhere in their recordings, drawn from the
/// seed; way and way back take 20 ms, the queue holds 100 packets.
fn scenario(files: [&str; 2], over: &[usize], bytes: u64, seed: u64, flow: &str) -> String {
    let mut text = format!("duration = \"3000 s\"\nseed = {seed}\nsample_interval = \"1 s\"\n");
    for (number, file) in files.iter().enumerate() {
        text += &format!(
            "[link.l{number}]\nrate = {{ trace = {file:?}, offset = \"random\" }}\n\
             delay = \"20 ms\"\nbuffer = \"100 packets\"\n\
             [path.p{number}]\nforward = [\"l{number}\"]\nreverse_delay = \"20 ms\"\n"
        );
    }
    let paths: Vec<String> = over.iter().map(|path| format!("\"p{path}\"")).collect();
    let paths = match &paths[..] {
        [one] => format!("path = {one}"),
        several => format!("paths = [{}]", several.join(", ")),
    };
    text + &format!(
        "[[flow]]\nname = \"flow\"\n{paths}\n{flow}cc = \"cubic\"\n\
         workload = {{ file = \"{bytes} B\" }}\n"
    )
}

/// Of one draw: seconds over both links, over the better one alone, and the
/// bound T*.
struct Draw {
    both: f64,
    better: f64,
    bound: f64,
}

fn draw(files: [&str; 2], bytes: u64, seed: u64, contender: &Contender) -> Draw {
    let folder = Folder(".".into());
    let run =
        |over: &[usize], flow: &str| run_with(&scenario(files, over, bytes, seed, flow), &folder);
    let alone = [0, 1].map(|path| completion(&run(&[path], "")));
    let Contender { scheduler, reinjection, .. } = contender;
    let records = run(&[0, 1], &format!("scheduler = {scheduler}\nreinjection = {reinjection}\n"));
    let both = completion(&records);
    let bound = both / value(&records, &Measure::CompletionOverBound);
    Draw { both, better: alone[0].min(alone[1]), bound }
}

/// Prints, for each pair of recordings and size, the time over the better
/// link's, and what was gained of what the bound allows over that link.
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
        println!("| pair | MB | over the better link: median / mean / worst | gained of T* |");
        println!("| --- | --- | --- | --- |");
        let done =
            side_by_side(&jobs, |(files, bytes, seed)| draw(*files, *bytes, *seed, contender));
        let of_cells = jobs.chunks(DRAWS as usize).zip(done.chunks(DRAWS as usize));
        let mut of_pair: Vec<f64> = Vec::new();
        for (cell, draws) in of_cells {
            let ([a, b], bytes, _) = cell[0];
            let over = Column::of(draws.iter().map(|draw| draw.both / draw.better).collect());
            let share = share_gained(draws);
            println!(
                "| {} + {} | {} | {:.3} / {:.3} / {:.2} | {share:.2} |",
                name(a),
                name(b),
                bytes / 1_000_000,
                over.quantile(0.5),
                over.mean,
                over.quantile(1.0)
            );
            of_pair.push(share);
            if of_pair.len() == SIZES.len() {
                let mean = of_pair.iter().sum::<f64>() / of_pair.len() as f64;
                println!("| {} + {} | mean | | {mean:.2} |", name(a), name(b));
                of_pair.clear();
            }
        }
        println!();
    }
}

/// The time gained over the better link, of all that the bound allows. Summed over
/// the draws first: where a link is nearly idle the bound allows hardly anything
/// over the other, and the quotient of a single draw means nothing.
fn share_gained(draws: &[Draw]) -> f64 {
    let sum = |of: &dyn Fn(&Draw) -> f64| draws.iter().map(of).sum::<f64>();
    sum(&|draw| draw.better - draw.both) / sum(&|draw| draw.better - draw.bound)
}

fn name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}
