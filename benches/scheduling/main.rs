//! Compares each scheduler with what is possible: `cargo bench --workspace --bench scheduling`,
//! with `-- MODE` for a part.
//!
//! - `grid` (the default): files over 432 cells; relative to T*, to the best single path, and to a
//!   perfect scheduler with the same controllers.
//! - `random SEED`: as many cells, drawn at random.
//! - `pages`: ten web pages over six networks, relative to minRTT; `pages --bound`: the same for an
//!   ideal transport.
//! - `traces FILE FILE…`: files over two recorded links at once, each pair of these (Mahimahi's
//!   format), relative to the better link alone, and the gain of a perfect scheduler.
//! - `cost`: the cost of a packet, relative to minRTT.
//!
//! Names of schedulers after the mode replace the default ones: `minrtt-` is minrtt without
//! reinjection, `'just-in-time growth = true'` has a parameter.

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

mod cells;
mod cost;
mod grid;
mod ideal;
mod pages;
mod perfect;
mod runs;
mod table;
mod traces;

use runs::Contender;

/// Default schedulers of the tables.
const CONTENDERS: [&str; 14] = [
    "just-in-time",
    "capacity",
    "minrtt-penalising",
    "sctc",
    "opportunistic-redundant",
    "round-robin",
    "minrtt",
    "ecf",
    "daps",
    "blest",
    "redundant",
    "dems",
    "ecf-",
    "minrtt-",
];

fn main() {
    // Cargo adds an argument of its own.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let contenders = |names: &[&str]| -> Vec<Contender> {
        let names = if names.is_empty() { &CONTENDERS[..] } else { names };
        names.iter().map(|name| Contender::read(name)).collect()
    };
    let chosen =
        |names: &[&str]| contenders(if names.is_empty() { &CONTENDERS[..1] } else { names });
    match words[..] {
        ["random", seed, ref names @ ..] => {
            let seed = seed.parse().expect("a whole number: the seed");
            grid::compare(&cells::random(seed), &contenders(names), 20);
        }
        ["grid", ref names @ ..] => grid::compare(&cells::grid(), &contenders(names), 60),
        ["pages", "--bound"] => pages::bound(),
        ["pages", ref names @ ..] => pages::compare(&chosen(names)),
        ["traces", ref words @ ..] => {
            // File names contain a dot, names of schedulers do not.
            let (files, names): (Vec<&str>, Vec<&str>) =
                words.iter().partition(|word| word.contains('.'));
            traces::compare(&files, &chosen(&names));
        }
        ["cost", ref names @ ..] => cost::compare(&contenders(names)),
        [] => grid::compare(&cells::grid(), &contenders(&[]), 20),
        _ => println!(
            "modes: grid, random SEED, pages, traces FILE…, cost; see the top of benches/scheduling/main.rs"
        ),
    }
}
