//! Names, parameters, numbers of paths, and the errors for wrong ones.
use knee_multipath::sched::{Selection, Value, build, check, check_paths, schedulers};

fn refused(selection: &Selection) -> String {
    let by_check = check(selection).unwrap_err();
    assert_eq!(build(selection).map(|_| ()).unwrap_err(), by_check);
    assert_eq!(check_paths(selection, 2).unwrap_err(), by_check);
    by_check.to_string()
}

#[test]
fn all_are_there_in_order() {
    let names: Vec<&str> = schedulers().iter().map(|entry| entry.name).collect();
    let wanted = [
        "blest",
        "capacity",
        "daps",
        "dems",
        "ecf",
        "just-in-time",
        "minrtt",
        "opportunistic-redundant",
        "redundant",
        "round-robin",
        "sctc",
    ];
    assert_eq!(names, wanted);
    for name in crate::sched::common::names() {
        assert_eq!(check_paths(&Selection::named(name), 2), Ok(()), "{name}");
    }
}

#[test]
fn wrong_names_and_parameters_are_told_the_right_ones() {
    assert_eq!(
        refused(&Selection::named("round_robbin")),
        "there is no scheduler \"round_robbin\": did you mean \"round-robin\"?"
    );
    assert_eq!(
        refused(&Selection::named("ecf").with("beta", Value::Number(-1.0))),
        "beta of ecf cannot be -1: write a number from 0 to 10"
    );
    assert_eq!(
        refused(&Selection::named("dems").with("beta", Value::Number(1.0))),
        "dems has no parameter \"beta\": it takes no parameters"
    );
    assert_eq!(
        refused(&Selection::named("minrtt").with("penalisation", Value::Switch(true))),
        "penalisation of minrtt needs opportunistic_retransmission: \
         write opportunistic_retransmission = true as well"
    );
    let sctc = |names: [&str; 2]| {
        let on = |chosen: Selection, name: &str| chosen.with(name, Value::Switch(true));
        refused(&names.into_iter().fold(Selection::named("sctc"), on))
    };
    assert_eq!(
        sctc(["plan", "cycle"]),
        "plan and cycle of sctc are two readings: remove plan or cycle"
    );
    assert_eq!(
        sctc(["plan", "send_buffer"]),
        "send_buffer of sctc needs cycle: write cycle = true as well"
    );
}

#[test]
fn the_number_of_paths_must_fit() {
    let answer = |name: &str, paths| check_paths(&Selection::named(name), paths);
    assert_eq!(answer("dems", 2), Ok(()));
    assert_eq!(
        answer("dems", 3).unwrap_err().to_string(),
        "dems needs exactly 2 paths, not 3: \
         name 2 paths, or write another scheduler, such as \"minrtt\""
    );
    assert!(answer("dems", 1).is_err());
    assert_eq!(answer("sctc", 32), Ok(()));
    let too_many = answer("sctc", 33).unwrap_err().to_string();
    assert_eq!(too_many, "sctc cannot serve 33 paths: name from 1 to 32 paths");
}
