//! Printed output, word for word: `tests/cmd`. `TRYCMD=overwrite` updates it; read the difference
//! before you commit it.

#[test]
fn words() {
    // Removes the output of an earlier run.
    let _ = std::fs::remove_dir_all("tests/cmd/outputs.in/knee-out");
    trycmd::TestCases::new().env("COLUMNS", "90").case("tests/cmd/*.trycmd");
    let _ = std::fs::remove_dir_all("tests/cmd/outputs.in/knee-out");
}
