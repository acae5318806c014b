//! Command line. Under construction.
fn main() {}
