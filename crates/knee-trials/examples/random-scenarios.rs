//! Writes random scenarios, each into its own folder, to compare two builds of the command:
//! `cargo run --example random-scenarios -- 200 FOLDER`.

use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, folder] = &arguments[..] else {
        return Err("give the number of scenarios and the folder to write them to".into());
    };
    for seed in 0..count.parse()? {
        let scenario = knee_trials::scenario::random(seed);
        let folder = Path::new(folder).join(seed.to_string());
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("scenario.toml"), scenario.text())?;
        for (name, contents) in scenario.files() {
            fs::write(folder.join(name), contents)?;
        }
    }
    Ok(())
}
