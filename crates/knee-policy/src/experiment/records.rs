//! The blocks of an experiment on disk, so that it survives its process.

use super::Block;
use super::timeline::Timeline;
use crate::policy::TABLE;
use crate::{Policy, PolicyError, PolicyGroup, Stage};
use knee_scenario::{read_open_text, read_text_file};
use knee_steer::Guarded;
use nix::fcntl::{Flock, FlockArg, OFlag};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SCHEMA: &str = "knee-steer-experiment/1";
/// The first bytes of each file that is written here.
const OURS: &str = r#"{"schema":"knee-steer-experiment/1""#;
/// Largest file of blocks that is read.
const RECORDS_BYTES_MAX: u64 = 256 << 20;
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    accepts: Vec<Guarded>,
}

impl Header {
    fn of(policy: &Policy, timeline: &Timeline) -> Header {
        let groups = policy.groups.iter().map(|group| GroupHeader {
            name: group.name.clone(),
            prefixes: group.prefixes.clone(),
            ports: group.ports.clone(),
            control: group.control.clone(),
            controller: group.controller.clone(),
            initial_window: group.initial_window,
            paces: group.paces,
            ecn: group.ecn,
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
            accepts: policy.accepts.clone(),
        }
    }

    fn policy(self) -> Policy {
        let group = |group: GroupHeader| PolicyGroup {
            name: group.name,
            prefixes: group.prefixes,
            ports: group.ports,
            hint: None,
            controller: group.controller,
            control: group.control,
            initial_window: group.initial_window,
            paces: group.paces,
            ecn: group.ecn,
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
            accepts: self.accepts,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    initial_window: Option<u16>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    paces: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ecn: bool,
}

/// A line that is no block.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    /// B was stopped in a group; also if the block in which it was is repeated or was never finished.
    Stopped { group: String, why: String },
}

/// A file of JSON lines: a header, then one line for each block, with notes between them. It is locked
/// (flock(2)) by this process.
#[derive(Debug)]
pub struct BlockFile {
    file: Flock<File>,
    path: PathBuf,
    stopped: Vec<Option<String>>,
}

/// The contents of a file.
struct Contents {
    header: Header,
    blocks: Vec<Block>,
    /// Ends of the header and of each block, in bytes.
    ends: Vec<usize>,
    /// Why B was stopped, by group.
    stopped: Vec<Option<String>>,
}

impl Contents {
    /// Parses whole lines; `None` if they are not those of an experiment, or without a header.
    fn parse(text: &str) -> Option<Contents> {
        let mut lines = whole(text).split_inclusive('\n');
        let first = lines.next()?;
        let header: Header = serde_json::from_str(first).ok()?;
        if header.calibration.max(header.triples.unwrap_or(0)) > PLANNED_MAX {
            return None;
        }
        let mut contents = Contents::of(header);
        let mut end = first.len();
        contents.ends.push(end);
        for line in lines {
            end += line.len();
            contents.add(line, end)?;
        }
        Some(contents)
    }

    fn of(header: Header) -> Contents {
        let stopped = vec![None; header.groups.len()];
        Contents { header, blocks: Vec::new(), ends: Vec::new(), stopped }
    }

    /// Adds a line that ends at this byte.
    fn add(&mut self, line: &str, line_end: usize) -> Option<()> {
        let Contents { header, blocks, ends, stopped } = self;
        let Ok(block) = serde_json::from_str::<Block>(line) else {
            let Note::Stopped { group, why } = serde_json::from_str(line).ok()?;
            let at = header.groups.iter().position(|one| one.name == group)?;
            stopped[at].get_or_insert(why);
            return Some(());
        };
        let next = blocks.last().map_or(0, |before| before.number + 1);
        // A host of a site may miss blocks.
        let gaps = header.stage == Stage::Site && block.number > next;
        let end = 2 * header.calibration + 3 * PLANNED_MAX;
        let groups = block.groups.len() == header.groups.len();
        if block.number != next && !gaps || block.number >= end || !groups {
            return None;
        }
        for (stopped, group) in stopped.iter_mut().zip(&block.groups) {
            *stopped = stopped.take().or_else(|| group.stopped.clone());
        }
        blocks.push(block);
        ends.push(line_end);
        Some(())
    }
}

/// The whole lines of a text.
fn whole(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..=end])
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
        let text = read_text_file(path, RECORDS_BYTES_MAX)
            .map_err(|source| PolicyError::Records { what: "read", path: path.clone(), source })?;
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
    /// Removes the others, which must be repeated; a site does not wait for its hosts, so there
    /// nothing is repeated.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`], also if another process has it open; and
    /// [`PolicyError::OtherExperiment`], in which case it is unchanged.
    pub fn open(
        path: &Path,
        policy: &Policy,
        timeline: &Timeline,
    ) -> Result<(BlockFile, Vec<Block>), PolicyError> {
        let header = Header::of(policy, timeline);
        let failed = |what, source| PolicyError::Records { what, path: path.to_path_buf(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        // A pipe would wait for its other end (fifo(7)).
        let flags = OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        options.custom_flags(flags.bits());
        let file = options.open(path).map_err(|error| failed("open", error))?;
        if !file.metadata().map_err(|error| failed("open", error))?.is_file() {
            let what = io::Error::new(ErrorKind::InvalidInput, "it is not a regular file");
            return Err(failed("open", what));
        }
        let locked = Flock::lock(file, FlockArg::LockExclusiveNonblock);
        let mut file = locked.map_err(|(_, error)| {
            let is_held = error == nix::errno::Errno::EWOULDBLOCK;
            let held = || io::Error::new(ErrorKind::WouldBlock, "another process writes to it");
            failed("lock", if is_held { held() } else { error.into() })
        })?;
        let whole_file = file.try_clone();
        let text = whole_file.and_then(|file| read_open_text(file, RECORDS_BYTES_MAX));
        let text = text.map_err(|error| failed("read", error))?;
        let is_begun = text.starts_with(OURS) || OURS.starts_with(&text);
        let contents = match text.contains('\n') {
            true => Contents::parse(&text).filter(|found| {
                Header { triples: header.triples, ..found.header.clone() } == header
            }),
            // Nothing, or a header that was broken off.
            false => is_begun.then(|| Contents::of(header.clone())),
        };
        let other = || PolicyError::OtherExperiment { path: path.to_path_buf() };
        let Contents { mut blocks, ends, stopped, .. } = contents.ok_or_else(other)?;
        let mut kept = whole(&text).len();
        if policy.stage != Stage::Site {
            blocks.truncate(timeline.resumed(blocks.len() as u64) as usize);
            kept = ends.get(blocks.len()).copied().unwrap_or(kept);
        }
        file.seek(SeekFrom::Start(kept as u64)).map_err(|error| failed("write", error))?;
        let mut records = BlockFile { file, path: path.to_path_buf(), stopped };
        let told = Contents::parse(&text[..kept]).map(|before| before.stopped).unwrap_or_default();
        let mut notes = Vec::new();
        for (index, why) in records.stopped.iter().enumerate() {
            if let Some(why) = why.as_deref().filter(|_| told.get(index) == Some(&None)) {
                let note = stopped_note(&policy.groups[index].name, why);
                notes.extend(line_of(&note).map_err(|error| failed("write", error))?);
            }
        }
        if notes.is_empty() {
            records.file.set_len(kept as u64).map_err(|error| failed("cut", error))?;
        } else {
            // What was stopped remains so. A single write replaces what does not count, and nothing is
            // cut afterwards, so that all lines are whole whenever the process is killed.
            records.write(&padded(notes, text.len() - kept))?;
        }
        if kept == 0 {
            records.line(&header)?;
        }
        Ok((records, blocks))
    }

    /// Why B was stopped in each group when the file was opened, also in blocks that do not count.
    pub fn stopped(&self) -> &[Option<String>] {
        &self.stopped
    }

    /// Appends that B was stopped in a group and syncs it to disk, so that it remains stopped whatever
    /// becomes of the current block.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Records`].
    pub fn stop(&mut self, group: &str, why: &str) -> Result<(), PolicyError> {
        self.line(&stopped_note(group, why))
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
        let line = line_of(value).map_err(|source| self.not_written(source))?;
        self.write(&line)
    }

    /// Writes whole lines at once and syncs them to disk.
    fn write(&mut self, lines: &[u8]) -> Result<(), PolicyError> {
        let written = self.file.write(lines).and_then(|part| match part {
            // A partial write would leave a broken line.
            part if part < lines.len() => Err(ErrorKind::StorageFull.into()),
            _ => self.file.sync_data(),
        });
        written.map_err(|source| self.not_written(source))
    }

    fn not_written(&self, source: io::Error) -> PolicyError {
        PolicyError::Records { what: "write", path: self.path.clone(), source }
    }
}

fn stopped_note(group: &str, why: &str) -> Note {
    Note::Stopped { group: group.to_string(), why: why.to_string() }
}

fn line_of(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// Lines of at least this many bytes: spaces, which JSON ignores, precede the last end of line.
fn padded(mut lines: Vec<u8>, bytes_min: usize) -> Vec<u8> {
    lines.pop();
    lines.resize(lines.len().max(bytes_min.saturating_sub(1)), b' ');
    lines.push(b'\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GroupBlock;
    use std::fs;

    fn policy(name: &str) -> Policy {
        let text = format!(
            "name = \"{name}\"\n[[group]]\nname = \"g\"\nprefixes = [\"192.0.2.0/24\"]\n\
             controller = \"bbr\"\ncontrol = \"cubic\"\n"
        );
        Policy::parse(&text).unwrap()
    }

    fn timeline() -> Timeline {
        let block = Duration::from_secs(600);
        Timeline { block, burn_in: block / 10, calibration: 1, triples: 4 }
    }

    /// After a kill in the second block of a triple, with a truncated line, the triple is repeated
    /// and everything before it counts.
    #[test]
    fn whole_triples_outlive_a_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let timeline = timeline();
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
        let longer = Timeline { block: timeline.block * 2, ..timeline };
        assert!(BlockFile::open(&path, &policy("a"), &longer).is_err());
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        let link = BlockFile::open(&folder.path().join("link"), &policy("a"), &timeline);
        assert!(matches!(link, Err(PolicyError::Records { .. })), "{link:?}");
    }

    /// B is stopped in the second block of a triple, after which the process is killed: the triple is
    /// repeated, but B remains stopped, however often the process begins anew.
    #[test]
    fn a_stop_outlives_its_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let timeline = timeline();
        let whole = |number, stopped: Option<&str>| Block {
            number,
            groups: vec![GroupBlock {
                stopped: stopped.map(str::to_string),
                ..GroupBlock::default()
            }],
            ..Block::default()
        };
        let (mut file, _) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        assert_eq!(file.stopped(), [None]);
        (0..6).for_each(|number| file.push(&whole(number, None)).unwrap());
        file.stop("g", "harm").unwrap();
        drop(file);
        for _ in 0..2 {
            let (file, before) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
            assert_eq!(before.len(), 5);
            assert_eq!(file.stopped(), [Some("harm".to_string())]);
        }
        let (mut file, _) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        (5..8).for_each(|number| file.push(&whole(number, None)).unwrap());
        drop(file);
        let read = recorded_blocks(std::slice::from_ref(&path)).unwrap();
        let numbers: Vec<u64> = read.hosts[0].iter().map(|block| block.number).collect();
        assert_eq!(numbers, (0..8).collect::<Vec<_>>());
        // The same if only the block tells of it, as in files of earlier versions.
        let (mut file, _) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        file.push(&whole(8, Some("other harm"))).unwrap();
        drop(file);
        let (file, before) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        assert_eq!((before.len(), file.stopped()), (8, &[Some("harm".to_string())][..]));
    }

    /// When a file is resumed, what tells of the stops replaces longer blocks in one write, with
    /// nothing to cut afterwards: a kill at any time leaves whole lines. So does a line that was
    /// broken off.
    #[test]
    fn resuming_leaves_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let timeline = timeline();
        for broken_off in ["", "{\"number\":4,\"groups\":[{"] {
            let _ = fs::remove_file(&path);
            let (mut file, _) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
            for number in 0..4 {
                let stopped = (number == 2).then(|| "harm".to_string());
                let groups = vec![GroupBlock { stopped, ..GroupBlock::default() }];
                file.push(&Block { number, groups, ..Block::default() }).unwrap();
            }
            file.file.write_all(broken_off.as_bytes()).unwrap();
            drop(file);
            let length = fs::metadata(&path).unwrap().len();
            let (mut file, before) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
            assert_eq!((before.len(), file.stopped()), (2, &[Some("harm".to_string())][..]));
            assert_eq!(fs::metadata(&path).unwrap().len(), length);
            let text = fs::read_to_string(&path).unwrap();
            let read = Contents::parse(&text).unwrap();
            assert!(text.ends_with(" \n"), "{text}");
            assert_eq!((read.blocks.len(), read.stopped), (2, vec![Some("harm".to_string())]));
            let groups = vec![GroupBlock::default()];
            file.push(&Block { number: 2, groups, ..Block::default() }).unwrap();
            assert_eq!(recorded_blocks(std::slice::from_ref(&path)).unwrap().hosts[0].len(), 3);
        }
        // A note that is longer than what it replaces.
        assert_eq!(padded(b"long\n".to_vec(), 3), b"long\n");
        assert_eq!(padded(b"a\nb\n".to_vec(), 6), b"a\nb  \n");
    }

    /// A file with other contents is refused and stays as it is, also one of a single line without
    /// an end. A header that was broken off is written anew.
    #[test]
    fn other_files_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let timeline = timeline();
        for text in ["{\"a\":1}", "notes", "{\"a\":1}\n", "{\"schema\":\"knee-run/1\"}"] {
            fs::write(&path, text).unwrap();
            let other = BlockFile::open(&path, &policy("a"), &timeline).unwrap_err();
            assert!(matches!(other, PolicyError::OtherExperiment { .. }), "{other}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        for text in ["", "{\"sch", "{\"schema\":\"knee-steer-experiment/1\",\"pol"] {
            fs::write(&path, text).unwrap();
            let (_, before) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
            assert_eq!(before, []);
            assert!(recorded_blocks(std::slice::from_ref(&path)).is_ok());
        }
    }

    #[test]
    fn one_process_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blocks");
        let timeline = timeline();
        let (first, _) = BlockFile::open(&path, &policy("a"), &timeline).unwrap();
        let second = BlockFile::open(&path, &policy("a"), &timeline).unwrap_err();
        assert!(second.to_string().contains("another process"), "{second}");
        assert!(recorded_blocks(std::slice::from_ref(&path)).is_ok(), "anyone can read it");
        drop(first);
        BlockFile::open(&path, &policy("a"), &timeline).unwrap();
    }

    /// /dev/full refuses each byte, as a full disk does.
    #[test]
    fn a_full_disk_ends_it() {
        let path = PathBuf::from("/dev/full");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
        let mut file = BlockFile { file, path, stopped: Vec::new() };
        let error = file.push(&Block::default()).unwrap_err();
        let PolicyError::Records { source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.kind(), ErrorKind::StorageFull);
    }
}
