//! What is printed, word for word: `tests/cmd`. `TRYCMD=overwrite` writes it
//! again; look at the difference before it is committed.

#[test]
fn words() {
    trycmd::TestCases::new().env("COLUMNS", "90").case("tests/cmd/*.trycmd");
}
