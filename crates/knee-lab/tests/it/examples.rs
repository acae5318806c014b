//! The programs in `examples/` do what they say.

#[path = "../../examples/controller.rs"]
mod controller;
#[path = "../../examples/rank.rs"]
mod rank;
#[path = "../../examples/records.rs"]
mod records;
#[path = "../../examples/simulate.rs"]
mod simulate;
#[path = "../../examples/sweep.rs"]
mod sweep;

#[test]
fn a_scenario_is_simulated() {
    simulate::main().unwrap();
}

#[test]
fn controllers_are_ranked() {
    rank::main().unwrap();
}

#[test]
fn a_setting_is_varied() {
    sweep::main().unwrap();
}

#[test]
fn a_folder_of_records_is_written_and_read() {
    records::main().unwrap();
}

#[test]
fn a_program_brings_its_own_controller() {
    controller::main().unwrap();
}
