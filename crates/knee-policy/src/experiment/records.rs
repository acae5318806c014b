//! The blocks of an experiment on disk, so that it survives its process.

use super::Block;
use super::timeline::Timeline;
use crate::policy::TABLE;
use crate::{Policy, PolicyError, PolicyGroup, Stage};
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SCHEMA: &str = "knee-steer-experiment/1";
/// Most pairs, and most triples.
pub const PLANNED_MAX: u64 = 10_000;

/// Identity of an experiment; blocks of another one do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Planned triples: more of them is the same experiment. Older files have none.
    #[serde(default)]
    triples: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    begins_unix: Option<u64>,
}

impl Header {
    fn of(policy: &Policy, timeline: &Timeline) -> Header {
        let groups = policy.groups.iter().map(|group| GroupHeader {
            name: group.name.clone(),
            prefixes: group.prefixes.clone(),
            ports: group.ports.clone(),
            control: group.control.clone(),
            controller: group.controller.clone(),
        });
        Header {
            schema: SCHEMA.to_string(),
            policy: policy.name.clone(),
            stage: policy.stage,
            seed: policy.seed,
            groups: groups.collect(),
            block_ns: timeline.block.as_nanos(),
            burn_in_ns: timeline.burn_in.as_nanos(),
            calibration: timeline.calibration,
            triples: Some(timeline.triples),
            begins_unix: policy.begins_unix,
        }
    }

    fn policy(self) -> Policy {
        let group = |group: GroupHeader| PolicyGroup {
            name: group.name,
            prefixes: group.prefixes,
            ports: group.ports,
            controller: group.controller,
            control: group.control,
            hold_out: 0.0,
            controller_span: 0..0,
        };
        Policy {
            name: self.policy,
            version: None,
            expires_unix: None,
            seed: self.seed,
            table: TABLE,
            actuator: None,
            open_connections: false,
            stage: self.stage,
            begins_unix: self.begins_unix,
            groups: self.groups.into_iter().map(group).collect(),
        }
    }
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

/// The contents of a file.
struct Contents {
    header: Header,
    blocks: Vec<Block>,
    /// Ends of the header and of each block, in bytes.
    ends: Vec<usize>,
}

impl Contents {
    /// Parses whole lines; `None` if they are not those of an experiment, or without a header.
    fn parse(text: &str) -> Option<Contents> {
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = whole.split_inclusive('\n');
        let first = lines.next()?;
        let header: Header = serde_json::from_str(first).ok()?;
        if header.calibration.max(header.triples.unwrap_or(0)) > PLANNED_MAX {
            return None;
        }
        let end = 2 * header.calibration + 3 * PLANNED_MAX;
        let mut contents = Contents { header, blocks: Vec::new(), ends: vec![first.len()] };
        for line in lines {
            let block: Block = serde_json::from_str(line).ok()?;
            let next = contents.blocks.last().map_or(0, |before| before.number + 1);
            // A host of a site may miss blocks.
            let gaps = contents.header.stage == Stage::Site && block.number > next;
            let groups = block.groups.len() == contents.header.groups.len();
            if block.number != next && !gaps || block.number >= end || !groups {
                return None;
            }
            contents.ends.push(contents.ends[contents.blocks.len()] + line.len());
            contents.blocks.push(block);
        }
        Some(contents)
    }
}

/// An experiment as its files of blocks tell it.
#[derive(Debug)]
pub struct RecordedBlocks {
    /// The part of its policy that a result needs: no hold-out, version or expiry.
    pub policy: Policy,
    /// Its schedule.
    pub timeline: Timeline,
    /// The blocks of each file.
    pub hosts: Vec<Vec<Block>>,
}

/// Reads the blocks of the hosts of a site, or those of one host. At least one path.
///
/// # Errors
///
/// [`PolicyError::Records`]; [`PolicyError::OtherExperiment`] for the first file that is none, or of
/// another experiment than those before it.
pub fn recorded_blocks(paths: &[PathBuf]) -> Result<RecordedBlocks, PolicyError> {
    let (mut first, mut hosts) = (None::<Header>, Vec::new());
    for path in paths {
        let text = fs::read_to_string(path).map_err(|source| PolicyError::Records {
            what: "read",
            path: path.clone(),
            source,
        })?;
        let contents = Contents::parse(&text).filter(|contents| {
            let header = &contents.header;
            let fits = |first: &Header| first == header && header.stage == Stage::Site;
            header.schema == SCHEMA && first.as_ref().is_none_or(fits)
        });
        let contents = contents.ok_or_else(|| PolicyError::OtherExperiment { path: path.clone() });
        let Contents { header, blocks, .. } = contents?;
        first.get_or_insert(header);
        hosts.push(blocks);
    }
    let header = first.unwrap_or_default();
    let before = 2 * header.calibration;
    let reached = hosts.iter().flatten().map(|block| block.number + 1).max().unwrap_or(0);
    let length = |ns: u128| Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
    let timeline = Timeline {
        block: length(header.block_ns),
        burn_in: length(header.burn_in_ns),
        calibration: header.calibration,
        // An experiment may go on with more triples than were planned.
        triples: header.triples.unwrap_or(0).max(reached.saturating_sub(before).div_ceil(3)),
    };
    Ok(RecordedBlocks { policy: header.policy(), timeline, hosts })
}

impl BlockFile {
    /// Opens or creates a file and returns the blocks that count, in whole pairs and triples.
    /// Truncates the others, which must be repeated; a site does not wait for its hosts, so there
    /// nothing is repeated.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`], [`PolicyError::OtherExperiment`].
    pub fn open(
        path: &Path,
        policy: &Policy,
        timeline: &Timeline,
    ) -> Result<(BlockFile, Vec<Block>), PolicyError> {
        let header = Header::of(policy, timeline);
        let failed = |what, source| PolicyError::Records { what, path: path.to_path_buf(), source };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        options.custom_flags((OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits());
        let mut file = options.open(path).map_err(|error| failed("open", error))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| failed("read", error))?;
        let (mut kept, mut blocks) = (0, Vec::new());
        if text.contains('\n') {
            let same = |found: &Contents| {
                Header { triples: header.triples, ..found.header.clone() } == header
            };
            let other = || PolicyError::OtherExperiment { path: path.to_path_buf() };
            let contents = Contents::parse(&text).filter(same).ok_or_else(other)?;
            blocks = contents.blocks;
            if policy.stage != Stage::Site {
                blocks.truncate(timeline.resumed(blocks.len() as u64) as usize);
            }
            kept = contents.ends[blocks.len()];
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
    use crate::GroupBlock;

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
        let blocks: Vec<Block> = (0..6)
            .map(|number| Block { number, groups: vec![GroupBlock::default()], ..Block::default() })
            .collect();
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
