//! What is printed, word for word: `tests/cmd`. `TRYCMD=overwrite` writes it
//! again; look at the difference before it is committed.

#[test]
fn words() {
    // What an earlier run wrote; it is not there in the beginning.
    let _ = std::fs::remove_dir_all("tests/cmd/outputs.in/knee-out");
    trycmd::TestCases::new().env("COLUMNS", "90").case("tests/cmd/*.trycmd");
    let _ = std::fs::remove_dir_all("tests/cmd/outputs.in/knee-out");
}
