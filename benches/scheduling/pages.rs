//! Web pages: load times relative to minRTT.

use crate::ideal::{self, Object};
use crate::runs::{Contender, run_with, side_by_side, value};
use crate::table::Column;
use knee_scenario::{Embedded, Measure};
use knee_units::random::{below, log_normal};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

/// Number of objects of each page, from that of the default page upwards.
const OBJECTS: [usize; 10] = [53, 65, 80, 95, 110, 125, 145, 165, 180, 200];
const SEEDS: u64 = 20;

/// Mbit/s and round-trip time in ms of each path: first equal paths, then different ones.
const NETWORKS: [&[(f64, f64)]; 6] = [
    &[(10.0, 20.0), (10.0, 20.0)],
    &[(5.0, 40.0), (5.0, 40.0)],
    &[(10.0, 20.0), (5.0, 60.0)],
    &[(10.0, 20.0), (2.0, 100.0)],
    &[(2.0, 20.0), (20.0, 200.0)],
    &[(10.0, 40.0), (5.0, 40.0), (1.0, 40.0)],
];

/// Makes a page: a document, style sheets and scripts in it, images and more scripts that these
/// load. Sizes are log-normal around a median of 8 kB, like those of the default page; they depend
/// only on the number of objects.
fn page(objects: usize) -> Vec<Object> {
    let mut rng = ChaCha8Rng::seed_from_u64(objects as u64);
    let mut page = vec![Object { bytes: 25_000, after: None }];
    let early = objects / 3;
    for number in 1..objects {
        let bytes = log_normal(&mut rng, 8e3, 1.5).clamp(200.0, 600e3) as u64;
        let after = if number <= early { 0 } else { 1 + below(&mut rng, early as u64) };
        page.push(Object { bytes, after: Some(after as usize) });
    }
    page
}

/// Formats a page as a page file.
fn as_file(page: &[Object]) -> String {
    let mut text = String::from("name,bytes,after\n");
    for (number, Object { bytes, after }) in page.iter().enumerate() {
        let after = after.map_or(String::new(), |after| format!("o{after}"));
        text += &format!("o{number},{bytes},{after}\n");
    }
    text
}

/// Returns the number of HTTP/1.1 connections, or `None` if the page is multiplexed on one.
fn connections(number: usize) -> Option<usize> {
    number.is_multiple_of(2).then_some(6)
}

/// Makes the scenario of a page: even numbers use six connections of HTTP/1.1, odd ones one
/// multiplexed connection.
fn scenario(number: usize, network: usize, seed: u64, contender: &Contender) -> String {
    let mut text = format!("duration = \"600 s\"\nseed = {seed}\n");
    let mut names = Vec::new();
    for (path, (mbit, rtt_ms)) in NETWORKS[network].iter().enumerate() {
        let (queue, way) = ((mbit * rtt_ms * 125.0).max(30_000.0).round(), rtt_ms / 2.0);
        text += &format!(
            "[link.l{path}]\nrate = \"{mbit} Mbit/s\"\ndelay = \"{way} ms\"\njitter = {{ amount = \"1 ms\" }}\n\
             buffer = \"{queue} B\"\n\
             [path.p{path}]\nforward = [\"l{path}\"]\nreverse_delay = \"{way} ms\"\n"
        );
        names.push(format!("\"p{path}\""));
    }
    let http = connections(number).map_or("multiplexed", |_| "1.1");
    text + &format!(
        "[[flow]]\nname = \"flow\"\npaths = [{}]\nscheduler = {}\nreinjection = {}\n\
         cc = \"cubic\"\nworkload = {{ page = {{ objects = \"page.csv\", http = \"{http}\" }} }}\n",
        names.join(", "),
        contender.scheduler,
        contender.reinjection
    )
}

fn load_time(number: usize, network: usize, seed: u64, contender: &Contender) -> f64 {
    let objects = as_file(&page(OBJECTS[number]));
    let files = Embedded(&[("page.csv", objects.as_bytes())]);
    let records = run_with(&scenario(number, network, seed, contender), &files);
    value(&records, &Measure::PageLoadTime)
}

/// Loads ten pages over six networks with twenty seeds, and prints the times of each contender
/// relative to minRTT, by page and by network.
pub fn compare(contenders: &[Contender]) {
    let minrtt = Contender::read("minrtt");
    let jobs = jobs();
    let with = |contender: &Contender| {
        side_by_side(&jobs, |(number, network, seed)| {
            load_time(*number, *network, *seed, contender)
        })
    };
    let base = with(&minrtt);
    println!("Load time over minRTT's, {} loads each\n", jobs.len());
    for contender in contenders {
        let times = with(contender);
        let mean = |belongs: &dyn Fn(usize, usize) -> bool| {
            let chosen = jobs.iter().zip(times.iter().zip(&base));
            let chosen = chosen.filter(|((number, network, _), _)| belongs(*number, *network));
            Column::of(chosen.map(|(_, (time, base))| time / base).collect())
        };
        let all = mean(&|_, _| true);
        let [low, median, high] = [0.05, 0.5, 0.95].map(|part| all.quantile(part));
        println!(
            "{}: mean {:.3}, median {median:.3}, p5 {low:.2}, p95 {high:.2}",
            contender.label, all.mean
        );
        for (number, objects) in OBJECTS.iter().enumerate() {
            let each: Vec<String> = (0..NETWORKS.len())
                .map(|network| {
                    format!("{:.3}", mean(&|page, over| page == number && over == network).mean)
                })
                .collect();
            let page = mean(&|page, _| page == number).mean;
            println!("  {objects} objects: {page:.3}, by network {}", each.join(" "));
        }
        type Belongs = fn(usize) -> bool;
        let kinds: [(&str, Belongs); 3] = [
            ("all", |_| true),
            ("one connection", |page| connections(page).is_none()),
            ("six connections", |page| connections(page).is_some()),
        ];
        for (kind, belongs) in kinds {
            let each: Vec<String> = (0..NETWORKS.len())
                .map(|over| format!("{:.3}", mean(&|page, of| belongs(page) && of == over).mean))
                .collect();
            let whole = mean(&|page, _| belongs(page)).mean;
            println!("  {kind}: {whole:.3}, by network {}", each.join(" "));
        }
        println!();
    }
}

/// Prints the load time of an ideal transport relative to minRTT, network by network: on one
/// connection no scheduler is faster. On six the ideal transport also avoids losses in their
/// initial windows, which a scheduler cannot.
pub fn bound() {
    let minrtt = Contender::read("minrtt");
    let jobs = jobs();
    let shares = side_by_side(&jobs, |&(number, network, seed)| {
        ideal_time(number, network) / load_time(number, network, seed, &minrtt)
    });
    let is_bound = |number: usize| connections(number).is_none();
    for ((number, network, seed), share) in jobs.iter().zip(&shares) {
        let below = is_bound(*number) && *share > 1.0;
        assert!(!below, "page {number}, network {network}, seed {seed}: below the bound, {share}");
    }
    let print = |title: &str, over: &dyn Fn(usize) -> bool| {
        let of = |multiplexed: Option<bool>| {
            let chosen = jobs.iter().zip(&shares).filter(|((number, network, _), _)| {
                over(*network) && multiplexed.is_none_or(|wanted| wanted == is_bound(*number))
            });
            Column::of(chosen.map(|(_, share)| *share).collect()).mean
        };
        let [one, six, all] = [Some(true), Some(false), None].map(of);
        println!("| {title} | {one:.3} | {six:.3} | {all:.3} |");
    };
    println!("Load time of an ideal transport over minRTT's, {} loads\n", jobs.len());
    println!("| Mbit/s / ms | one connection: a bound | six connections | all |");
    println!("| --- | --- | --- | --- |");
    for (network, paths) in NETWORKS.iter().enumerate() {
        let paths: Vec<String> = paths.iter().map(|(mbit, rtt)| format!("{mbit}/{rtt}")).collect();
        print(&paths.join(" + "), &|over| over == network);
    }
    print("all", &|_| true);
}

fn ideal_time(number: usize, network: usize) -> f64 {
    let paths = NETWORKS[network].iter().map(|(mbit, rtt_ms)| ideal::Path::new(*mbit, *rtt_ms));
    let paths: Vec<ideal::Path> = paths.collect();
    ideal::load_time(&paths, &page(OBJECTS[number]), connections(number))
}

/// Returns number of the page, network and seed of each load.
fn jobs() -> Vec<(usize, usize, u64)> {
    let mut jobs = Vec::new();
    for network in 0..NETWORKS.len() {
        for number in 0..OBJECTS.len() {
            jobs.extend((1..=SEEDS).map(|seed| (number, network, seed)));
        }
    }
    jobs
}
