//! The blocks of an experiment on disk, so that it survives its process.

use super::Block;
use super::timeline::Timeline;
use crate::{Policy, PolicyError, Stage};
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "knee-steer-experiment/1";

/// Identity of an experiment; blocks of another one do not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    schema: String,
    policy: String,
    #[serde(default, skip_serializing_if = "is_host")]
    stage: Stage,
    seed: u64,
    groups: Vec<GroupHeader>,
    block_ns: u128,
    burn_in_ns: u128,
    calibration: u64,
}

/// Files from before there were stages have none.
fn is_host(stage: &Stage) -> bool {
    *stage == Stage::Host
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GroupHeader {
    name: String,
    prefixes: Vec<ipnet::IpNet>,
    ports: Vec<u16>,
    control: Option<String>,
    controller: String,
}

/// A file of JSON lines: a header, then one line for each block.
#[derive(Debug)]
pub struct BlockFile {
    file: File,
    path: PathBuf,
}

impl BlockFile {
    /// Opens or creates a file and returns the blocks that count, in whole pairs and triples.
    /// Truncates the others, which must be repeated.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`], [`PolicyError::OtherExperiment`].
    pub fn open(
        path: &Path,
        policy: &Policy,
        timeline: &Timeline,
    ) -> Result<(BlockFile, Vec<Block>), PolicyError> {
        let groups = policy.groups.iter().map(|group| GroupHeader {
            name: group.name.clone(),
            prefixes: group.prefixes.clone(),
            ports: group.ports.clone(),
            control: group.control.clone(),
            controller: group.controller.clone(),
        });
        let header = Header {
            schema: SCHEMA.to_string(),
            policy: policy.name.clone(),
            stage: policy.stage,
            seed: policy.seed,
            groups: groups.collect(),
            block_ns: timeline.block.as_nanos(),
            burn_in_ns: timeline.burn_in.as_nanos(),
            calibration: timeline.calibration,
        };
        let failed = |what, source| PolicyError::Records { what, path: path.to_path_buf(), source };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits());
        let mut file = options.open(path).map_err(|error| failed("open", error))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| failed("read", error))?;
        let other = || PolicyError::OtherExperiment { path: path.to_path_buf() };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = whole.split_inclusive('\n');
        let mut kept = 0;
        let mut blocks: Vec<Block> = Vec::new();
        if let Some(first) = lines.next() {
            let found: Header = serde_json::from_str(first).map_err(|_| other())?;
            if found != header {
                return Err(other());
            }
            let mut ends = vec![first.len()];
            for line in lines {
                let block: Block = serde_json::from_str(line).map_err(|_| other())?;
                if block.number != blocks.len() as u64 {
                    return Err(other());
                }
                ends.push(ends[blocks.len()] + line.len());
                blocks.push(block);
            }
            blocks.truncate(timeline.resumed(blocks.len() as u64) as usize);
            kept = ends[blocks.len()];
        }
        file.set_len(kept as u64).map_err(|error| failed("cut", error))?;
        let mut records = BlockFile { file, path: path.to_path_buf() };
        if kept == 0 {
            records.line(&header)?;
        }
        Ok((records, blocks))
    }

    /// Appends a block and syncs it to disk.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`]; the experiment cannot continue then.
    pub fn push(&mut self, block: &Block) -> Result<(), PolicyError> {
        self.line(block)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), PolicyError> {
        let written = serde_json::to_vec(value).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            match self.file.write(&line)? {
                // A partial write would leave a broken line.
                part if part < line.len() => Err(ErrorKind::StorageFull.into()),
                _ => self.file.sync_data(),
            }
        });
        let path = || self.path.clone();
        written.map_err(|source| PolicyError::Records { what: "write", path: path(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn policy(name: &str) -> Policy {
        let text = format!(
            "name = \"{name}\"\n[[group]]\nname = \"g\"\nprefixes = [\"192.0.2.0/24\"]\n\
             controller = \"bbr\"\ncontrol = \"cubic\"\n"
        );
        Policy::parse(&text).unwrap()
    }

    /// After a kill in the second block of a triple, with a truncated line, the triple is repeated
    /// and everything before it counts.
    #[test]
    fn whole_triples_outlive_a_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let block = Duration::from_secs(600);
        let timeline = Timeline { block, burn_in: block / 10, calibration: 1, triples: 4 };
        let (mut file, before) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        assert_eq!(before, []);
        let blocks: Vec<Block> =
            (0..6).map(|number| Block { number, reports: number, ..Block::default() }).collect();
        for block in &blocks {
            file.push(block).unwrap();
        }
        file.file.write_all(b"{\"number\":6,").unwrap();
        drop(file);
        let (_, before) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        assert_eq!(before, blocks[..5]);
        let (_, again) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        assert_eq!(again, before);
        let other = BlockFile::open(&path, &policy("b"), &timeline).unwrap_err();
        assert!(matches!(other, PolicyError::OtherExperiment { .. }), "{other}");
        let observed = Policy { stage: Stage::Observe, ..policy("a") };
        assert!(BlockFile::open(&path, &observed, &timeline).is_err());
        let longer = Timeline { block: block * 2, ..timeline };
        assert!(BlockFile::open(&path, &policy("a"), &longer).is_err());
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        let link = BlockFile::open(&folder.path().join("link"), &policy("a"), &timeline);
        assert!(matches!(link, Err(PolicyError::Records { .. })), "{link:?}");
    }

    /// /dev/full refuses each byte, as a full disk does.
    #[test]
    fn a_full_disk_ends_it() {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let error = BlockFile { file, path }.push(&Block::default()).unwrap_err();
        let PolicyError::Records { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::StorageFull);
    }
}
