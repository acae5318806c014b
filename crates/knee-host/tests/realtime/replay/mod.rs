//! The programs of `bpf/` compared with the controllers of `knee-cc`. `main` lists the tests.

mod bpf;

use knee_trials::{Trial, trials};

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    let trials = trials![
        bpf::kernel_and_simulator_decide_the_same,
        bpf::both_follow_a_slower_link,
        bpf::both_decide_the_same_where_it_matters,
        bpf::the_file_visits_every_phase,
        bpf::bbr3::bbr3_decides_the_same,
        bpf::copa::copa_decides_the_same,
    ];
    // Writes a file, so it runs only on request.
    let record = trials![bpf::recording::record].into_iter();
    trials.into_iter().chain(record.map(|trial| trial.with_ignored_flag(true))).collect()
}
