//! Printed output, word for word: `tests/cmd`. `TRYCMD=overwrite` updates it; read the difference
//! before you commit it.

/// What help says of the ground `quic`.
const QUIC: &str = match cfg!(feature = "quic") {
    true => "QUIC, over several paths too, over an emulator",
    false => "Not in this build; needs --features quic",
};

/// What help says of the ground `hosts`.
const HOSTS: &str = match cfg!(feature = "bond") {
    true => "Linux's TCP to another machine, which runs knee serve",
    false => "Not in this build; needs --features bond",
};

#[test]
fn words() {
    // Removes the output of an earlier run.
    let _ = std::fs::remove_dir_all("tests/cmd/outputs.in/knee-out");
    let cases = trycmd::TestCases::new();
    cases.env("COLUMNS", "90").insert_var("[QUIC]", QUIC).unwrap();
    cases.insert_var("[HOSTS]", HOSTS).unwrap();
    cases.case("tests/cmd/*.trycmd");
    // Only a build without QUIC says that it lacks it.
    if cfg!(feature = "quic") {
        cases.skip("tests/cmd/lacking.trycmd");
    }
    // Runs when dropped.
    drop(cases);
    let _ = std::fs::remove_dir_all("tests/cmd/outputs.in/knee-out");
}
