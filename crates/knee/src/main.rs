//! The program `knee`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(knee::main_with(std::env::args_os()))
}
