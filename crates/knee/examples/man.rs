//! Writes the man pages of `knee` into a folder: one for the program and one for each command. Used
//! to build packages; the program itself does not include it.
//!
//!     cargo run --example man -- FOLDER

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use std::fs;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};

const SECTION: &str = "1";

fn main() -> Result<(), Error> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| Error::other("usage: man FOLDER"))?;
    fs::create_dir_all(&folder)?;
    let mut program = knee::command();
    // Sets the display names of commands as typed: `knee run`.
    program.build();
    write(&program, &folder)
}

/// Writes the page of a command and of its subcommands.
fn write(command: &Command, folder: &Path) -> Result<(), Error> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_string();
    let man = Man::new(command.clone())
        .title(name.as_str())
        .section(SECTION)
        .source(concat!("Knee ", env!("CARGO_PKG_VERSION")))
        .manual("Knee");
    let mut page = fs::File::create(folder.join(format!("{name}.{SECTION}")))?;
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().next().is_some() {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    examples(command).to_writer(&mut page)?;
    page.flush()?;
    command.get_subcommands().try_for_each(|command| write(command, folder))
}

/// The help text after the options. It has columns and command lines, which filling as a paragraph
/// would join.
fn examples(command: &Command) -> Roff {
    let mut page = Roff::default();
    let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) else {
        return page;
    };
    page.control("SH", ["EXAMPLES"]).control("nf", []);
    let text = text.to_string();
    let lines = text.strip_prefix("Examples:\n").or_else(|| text.strip_prefix("Example:\n"));
    page.text([roman(lines.unwrap_or(&text))]);
    page.control("fi", []);
    page
}
