//! Files in an object store: a folder, and a server on loopback that speaks S3.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use knee_live::{Queue, Stored, Upload, upload_place};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Larger than two parts of an upload, and not a multiple of one.
const LARGE: usize = (10 << 20) + 12_345;
const LONG: Duration = Duration::from_secs(60);
/// Variables of the environment for the other process of a test: folder of the files.
const FOLDER: &str = "KNEE_TEST_FOLDER";

fn file(directory: &Path, second: u32, bytes: usize) -> PathBuf {
    let path = directory.join(format!("connections-20260101T0000{second:02}.000Z.parquet"));
    let content: Vec<u8> = (0..bytes).map(|at| (at * 7919 % 251) as u8).collect();
    fs::write(&path, content).unwrap();
    path
}

fn begin(from: &Path, to: &Path) -> Upload {
    let address = format!("file://{}", to.display());
    Upload::begin(&address, "edge-1", Queue::of(from).unwrap()).unwrap()
}

/// Files are stored unless they are already.
#[test]
fn files_are_stored_once() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let large = file(from.path(), 1, LARGE);
    let small = file(from.path(), 2, 1000);
    let told = begin(from.path(), to.path()).finish(LONG);
    let bytes = LARGE as u64 + 1000;
    assert_eq!(told, Stored { files: 2, bytes, ..Stored::default() });
    let copy = |path: &Path| {
        fs::read(to.path().join("host=edge-1").join(path.file_name().unwrap())).unwrap()
    };
    for path in [&large, &small] {
        assert!(copy(path) == fs::read(path).unwrap(), "{}", path.display());
    }
    let third = file(from.path(), 3, 2000);
    let told = begin(from.path(), to.path()).finish(LONG);
    assert_eq!(told, Stored { files: 1, bytes: 2000, ..Stored::default() });
    assert_eq!(copy(&third).len(), 2000);
}

/// A file that somebody else removes is not waited for.
#[test]
fn what_is_gone_is_not_waited_for() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let gone = file(from.path(), 1, 1000);
    let queue = Queue::of(from.path()).unwrap();
    fs::remove_file(gone).unwrap();
    let address = format!("file://{}", to.path().display());
    let told = Upload::begin(&address, "edge-1", queue).unwrap().finish(LONG);
    assert_eq!(told, Stored::default());
}

/// A place where nothing can be stored: the file waits, with the reason.
#[test]
fn what_cannot_be_stored_waits() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
    let path = file(from.path(), 1, 1000);
    let told = begin(from.path(), to.path()).finish(Duration::from_secs(2));
    assert!(told.waiting == 1 && told.failures >= 1 && told.files == 0, "{told:?}");
    assert!(told.trouble.is_some() && path.exists(), "{told:?}");
}

/// A file that cannot be stored does not hold up the others.
#[test]
fn one_that_cannot_be_stored_holds_up_no_other() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [first, second] = [1, 2].map(|second| file(from.path(), second, 1000));
    let place = |path: &Path| to.path().join("host=edge-1").join(path.file_name().unwrap());
    // A folder that is not empty has the name of the first.
    fs::create_dir_all(place(&first).join("taken")).unwrap();
    let told = begin(from.path(), to.path()).finish(Duration::from_secs(5));
    assert!(told.files == 1 && told.waiting == 1 && told.trouble.is_some(), "{told:?}");
    assert!(place(&second).is_file() && first.exists());
}

#[test]
fn addresses_are_checked() {
    for (address, part) in [
        ("bucket/observed", "relative URL"),
        ("ftp://host/observed", "nable to recognise"),
        ("memory:///observed", "no known kind"),
    ] {
        let error = upload_place(address).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains(address), "{error}");
    }
    // Secrets are not repeated.
    for address in [
        "s3://key:secret@bucket/observed",
        "s3://:secret@bucket/observed",
        "az://container/observed?sig=secret",
        "s3://bucket/observed#secret",
    ] {
        let error = upload_place(address).unwrap_err().to_string();
        assert!(error.contains("belong into the environment"), "{error}");
        assert!(error.contains("/observed") && !error.contains("secret"), "{error}");
    }
    upload_place("file:///tmp").unwrap();
}

/// A store that speaks as much of S3 as uploads need, over HTTP on loopback.
mod store {
    use std::collections::BTreeMap;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::{Arc, Mutex};
    use std::thread;

    #[derive(Default)]
    pub struct State {
        /// Number of requests that are still to be refused.
        pub refuse: u32,
        pub refused: u32,
        pub objects: BTreeMap<String, Vec<u8>>,
        /// Parts of objects, by number.
        pub parts: BTreeMap<(String, u32), Vec<u8>>,
        pub unsigned: u32,
    }

    pub fn begin(state: &Arc<Mutex<State>>) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = state.clone();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, state) = (socket.unwrap(), state.clone());
                thread::spawn(move || answer(socket, &state));
            }
        });
        port
    }

    fn answer(socket: TcpStream, state: &Mutex<State>) {
        let mut reader = BufReader::new(socket);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_string()),
            }
        }
        let field = |name: &str| {
            let fields = head.iter().filter_map(|line| line.split_once(": "));
            fields.clone().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, it)| it)
        };
        let len = field("content-length").map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; len];
        reader.read_exact(&mut body).unwrap();
        let mut words = head[0].split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut state = state.lock().unwrap();
        let signed = field("authorization").is_some_and(|it| it.starts_with("AWS4-HMAC-SHA256"));
        state.unsigned += u32::from(!signed);
        let (status, answer) = if method != "HEAD" && state.refuse > 0 {
            state.refuse -= 1;
            state.refused += 1;
            ("503 Slow Down", String::new())
        } else {
            act(&mut state, method, path, query, body)
        };
        let length = answer.len();
        let answer = format!(
            "HTTP/1.1 {status}\r\nETag: \"1\"\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{answer}"
        );
        let _ = reader.get_mut().write_all(answer.as_bytes());
    }

    fn act(
        state: &mut State,
        method: &str,
        path: &str,
        query: &str,
        body: Vec<u8>,
    ) -> (&'static str, String) {
        let part = query.split('&').find_map(|pair| pair.strip_prefix("partNumber="));
        match (method, part) {
            ("HEAD", _) => return ("404 Not Found", String::new()),
            ("PUT", None) => drop(state.objects.insert(path.to_string(), body)),
            ("PUT", Some(number)) => {
                let place = (path.to_string(), number.parse().unwrap());
                state.parts.insert(place, body);
            }
            ("POST", _) if query.starts_with("uploads") => {
                let answer = "<InitiateMultipartUploadResult><Bucket>bucket</Bucket><Key>k</Key>\
                              <UploadId>one</UploadId></InitiateMultipartUploadResult>";
                return ("200 OK", answer.to_string());
            }
            ("POST", _) => {
                let own = state.parts.iter().filter(|((of, _), _)| of == path);
                let whole = own.flat_map(|(_, part)| part.clone()).collect();
                state.objects.insert(path.to_string(), whole);
                let answer = "<CompleteMultipartUploadResult><ETag>\"1\"</ETag>\
                              </CompleteMultipartUploadResult>";
                return ("200 OK", answer.to_string());
            }
            _ => {}
        }
        ("200 OK", String::new())
    }
}

/// The process of [`uploads_arrive`] that has the environment of a user.
#[test]
#[ignore = "another test runs it"]
fn process_of_uploads_arrive() {
    let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
    let queue = Queue::of(&folder).unwrap();
    let upload = Upload::begin("s3://bucket/observed", "edge-1", queue).unwrap();
    let told = upload.finish(LONG);
    assert!(told.waiting == 0 && told.files == 2 && told.failures == 2, "{told:?}");
    assert_eq!(told.trouble, None);
}

/// Files arrive in a store that is busy at first, signed with the credentials of the environment,
/// a large one in parts.
#[test]
fn uploads_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [file(folder.path(), 1, LARGE), file(folder.path(), 2, 1000)];
    let state = Arc::new(Mutex::new(store::State { refuse: 2, ..store::State::default() }));
    let port = store::begin(&state);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "process_of_uploads_arrive", "--ignored"]);
    command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}")).env(FOLDER, folder.path());
    command.envs([("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")]);
    command.envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    let state = state.lock().unwrap();
    assert_eq!((state.refused, state.unsigned, state.objects.len()), (2, 0, 2));
    assert_eq!(state.parts.len(), 3);
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy();
        let found = ["=", "%3D"].iter().find_map(|equals| {
            state.objects.get(&format!("/bucket/observed/host{equals}edge-1/{name}"))
        });
        assert!(found.is_some_and(|found| *found == fs::read(&path).unwrap()), "{name}");
    }
}
