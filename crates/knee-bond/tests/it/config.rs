//! Invalid configurations and keys: each error names the place and what to do.

use knee_bond::request::Target;
use knee_bond::status::StatusSocket;
use knee_bond::{ClientConfig, Forward, ServerConfig, key};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const KEY: &str = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lsg=";

fn public() -> String {
    let folder = tempfile::tempdir().unwrap();
    key::to_text(&key::generate(&folder.path().join("k")).unwrap())
}

fn complaint(text: &str, is_client: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bond.toml");
    fs::write(&path, text).unwrap();
    if is_client {
        ClientConfig::read(&path).unwrap_err().to_string()
    } else {
        ServerConfig::read(&path).unwrap_err().to_string()
    }
}

/// As docs/bond.md has it, with parameters of every kind; and as a recording writes it.
#[test]
fn a_controller_may_have_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bond.toml");
    let read = |tuning: &str| {
        let text = format!(
            "server = \"example.org:4433\"\nserver_key = \"{}\"\nkey = \"k\"\n{tuning}\n",
            public()
        );
        fs::write(&path, text).unwrap();
        ClientConfig::read(&path).unwrap().tuning
    };
    let page = include_str!("../../../../docs/bond.md");
    let row = page.lines().find(|line| line.starts_with("| `tuning` |")).unwrap();
    let default = row.split('`').nth(3).unwrap();
    let (written, usual) = (read(&format!("tuning = {default}")), read(""));
    assert_eq!((&written.controller, &written.scheduler), (&usual.controller, &usual.scheduler));
    assert_ne!(read("tuning = { controller = \"bbr\" }").controller, usual.controller);
    for controller in [
        "\"bbr\"",
        "{ name = \"bbr\", probe_up_exit_early = true }",
        "{ name = \"bbr\", max_cruise = \"400 ms\", probe_gains = [1.2, 0.8], cwnd_pace = 20 }",
    ] {
        let once = read(&format!("tuning = {{ controller = {controller} }}")).controller;
        assert_eq!(read(&format!("tuning = {{ controller = {once} }}")).controller, once);
    }
}

#[test]
fn a_client_is_told_what_is_wrong_and_where() {
    let right =
        format!("server = \"example.org:4433\"\nserver_key = \"{}\"\nkey = \"k\"\n", public());
    for (text, wanted) in [
        (right.replace("example.org:4433", "example.org"), "line 1"),
        (right.replace("example.org:4433", "example.org"), "a colon and a port"),
        (format!("{right}listen = \"0.0.0.0:1080\"\n"), "login"),
        (format!("{right}login = {{ user = \"\", password = \"b\" }}\n"), "1 to 255 bytes"),
        (format!("{right}login = {{ user = \"a\", password = \"\" }}\n"), "1 to 255 bytes"),
        (
            format!("{right}login = {{ user = \"a\", password = \"{}\" }}\n", "b".repeat(256)),
            "1 to 255 bytes",
        ),
        (format!("{right}login = {{ user = \"a:b\", password = \"c\" }}\n"), "no colon"),
        (format!("{right}liste = \"0.0.0.0:1080\"\n"), "unknown field `liste`"),
        (format!("{right}[[link]]\ninterface = \"an interface\"\n"), "no interface is named"),
        (format!("{right}[transparent]\nlan = [\"an interface\"]\n"), "no interface is named"),
        (format!("{right}[transparent]\nlan = \"br-lan\"\n"), "such as [\"br-lan\"]"),
        (
            format!("{right}[[link]]\ninterface = \"a\"\n[[link]]\ninterface = \"a\"\n"),
            "is repeated",
        ),
        (format!("{right}[[link]]\ninterface = \"a\"\ncap = \"20\"\n"), "20 GB"),
        (format!("{right}[[link]]\ninterface = \"a\"\nresets = 32\n"), "1 to 31"),
        (format!("page = \"0.0.0.0:9433\"\n{right}"), "must be on loopback"),
        (format!("{right}[[link]]\ninterface = \"a\"\ncost = 256\n"), "a cost from 0 to 255"),
        (format!("{right}[[link]]\ninterface = \"a\"\ncap = \"0 B\"\n"), "a size above 0"),
        (format!("{right}[[link]]\ninterface = \"a\"\noverflow = true\n"), "add cost = 1"),
        (format!("{right}[tuning]\ncontroller = \"bbrr\"\n"), "bbrr"),
        (format!("{right}[tuning]\ncontroller = \"dctcp\"\n"), "counts marked bytes"),
        (
            format!("{right}[tuning]\ncontroller = {{ name = \"bbr\", probe_rtt = 3 }}\n"),
            "probe_rtt",
        ),
        (
            format!("{right}[tuning]\ncontroller = {{ name = \"bbr\", probe_gain = 3 }}\n"),
            "probe_gain",
        ),
        (format!("{right}[tuning]\nscheduler = {{ name = \"ecf\", beta = -1 }}\n"), "beta"),
        (format!("{right}[tuning]\ncontroller = 3\n"), "write a name, or a table"),
        (
            format!("{right}[[forward]]\nlisten = \"0.0.0.0:80\"\nto = \"a:1\"\n"),
            "must be on loopback",
        ),
        (format!("server = \"a:1\"\nserver_key = \"{KEY}\"\nkey = \"k\"\n"), "44 letters"),
        ("server = \"a:1\"\nserver_key = []\nkey = \"k\"\n".to_owned(), "two during a change"),
    ] {
        let said = complaint(&text, true);
        assert!(!said.contains('\n'), "{said:?}");
        assert!(said.contains(wanted), "{wanted:?} is not in {said:?}");
    }
}

/// Each configuration of the book is read as it is, with keys in it.
#[test]
fn configurations_of_the_book_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut read = 0;
    for page in [
        include_str!("../../../../docs/bond-router.md"),
        include_str!("../../../../docs/bond-laptop.md"),
    ] {
        for block in page.split("\n```toml ").skip(1) {
            let (name, text) = block.split_once("\n").unwrap();
            let text = text.split("\n```").next().unwrap();
            let path = folder.path().join(name);
            let start = text.find("PUBLIC KEY OF THE ").unwrap();
            let end = start + text[start..].find('"').unwrap();
            fs::write(&path, text.replace(&text[start..end], &public())).unwrap();
            if name == "server.toml" {
                ServerConfig::read(&path).unwrap();
            } else {
                ClientConfig::read(&path).unwrap();
            }
            read += 1;
        }
    }
    assert_eq!(read, 5);
}

#[test]
fn a_forwarded_port_is_given_on_the_command_line() {
    let forward = Forward::parse("8080:db.example.org:80").unwrap();
    assert_eq!(forward.listen, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(forward.to, Target::Name("db.example.org".to_owned(), 80));
    let forward = Forward::parse("53:[2001:db8::1]:5353").unwrap();
    assert_eq!(forward.to, Target::Address("2001:db8::1".parse().unwrap(), 5353));
    for wrong in ["8080", "8080:80", "0:a:80", "db:db:80", "127.0.0.1:8080:a:80", ""] {
        let said = Forward::parse(wrong).unwrap_err().to_string();
        assert!(said.contains("8080:db.example.org:80"), "{wrong}: {said}");
    }
}

/// Replies to the house of a router would be refused.
#[test]
fn a_proxy_for_others_needs_an_exception_in_transparent_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bond.toml");
    let config = |listen: &str, transparent: &str| {
        let text = format!(
            "server = \"192.0.2.1:4433\"\nserver_key = \"{}\"\nkey = \"k\"\n\
             listen = \"{listen}:1080\"\nlogin = {{ user = \"a\", password = \"b\" }}\n\
             transparent = {{ {transparent} }}\n",
            public()
        );
        fs::write(&path, text).unwrap();
        ClientConfig::read(&path).map(|config| config.listen.ip().to_string())
    };
    for (listen, transparent, is_right) in [
        ("127.0.0.1", "", true),
        ("192.168.1.1", "", false),
        ("192.168.1.1", "except = [\"fd00::/8\"]", false),
        ("192.168.1.1", "except = [\"192.168.1.0/24\"]", true),
        ("192.168.1.1", "lan = [\"br-lan\"]", true),
        ("0.0.0.0", "", false),
        ("0.0.0.0", "except = [\"192.168.1.0/24\"]", true),
    ] {
        let read = config(listen, transparent);
        assert_eq!(read.is_ok(), is_right, "{listen} {transparent}");
        if let Err(error) = read {
            assert!(error.to_string().contains("except their prefix"), "{error}");
        }
    }
}

/// Only a socket of an end that was killed is removed.
#[test]
fn a_status_socket_replaces_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "notes").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let said = StatusSocket::bind(&path).unwrap_err().to_string();
    assert!(said.contains("not a socket"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "notes");
    let path = folder.path().join("bond.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    drop(StatusSocket::bind(&path).unwrap());
    assert!(!path.exists());
}

#[test]
fn a_server_is_told_what_is_wrong_and_where() {
    let public = public();
    let client = format!("[[client]]\nname = \"a\"\nkey = \"{public}\"\n");
    let again = format!("[[client]]\nname = \"a\"\nkey = \"{}\"\n", self::public());
    for (text, wanted) in [
        ("key = \"k\"\nclient = []\n".to_owned(), "at least one"),
        (format!("key = \"k\"\n{client}{client}"), "a key is repeated"),
        (format!("key = \"k\"\n{client}{again}"), "the name \"a\" is repeated"),
        (format!("key = \"k\"\n{client}[egress]\nallow = [\"10.0.0.0/40\"]\n"), "is not a prefix"),
        (format!("key = \"k\"\nlisten = \"anywhere\"\n{client}"), "line 2"),
        (format!("key = \"k\"\n{client}[limits]\nbytes_per_day = \"20\"\n"), "20 GB"),
    ] {
        let said = complaint(&text, false);
        assert!(said.contains(wanted), "{wanted:?} is not in {said:?}");
    }
}

#[test]
fn a_key_is_read_as_it_was_made_and_only_if_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bond.key");
    let public = key::generate(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(key::read(&path).unwrap().public(), public);
    assert_eq!(key::from_text(&key::to_text(&public)), Ok(public));
    assert!(key::generate(&path).unwrap_err().to_string().contains("exists already"));
    // A folder that others may read is no key, and stays as it is.
    let said = key::read(folder.path()).unwrap_err().to_string();
    assert!(said.contains("it is a folder") && !said.contains("chmod"), "{said}");

    for mode in [0o644, 0o640, 0o610, 0o604] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let said = key::read(&path).unwrap_err().to_string();
        assert!(said.contains("chmod 600") && said.contains(&format!("{mode:o}")), "{said}");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();

    let text = fs::read_to_string(&path).unwrap();
    for damaged in [
        text.replace("BEGIN", "BEGUN"),
        text.replacen(|letter: char| letter.is_ascii_lowercase(), "~", 1),
        text[..60].to_owned(),
        String::new(),
        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n".to_owned(),
    ] {
        fs::write(&path, damaged).unwrap();
        let said = key::read(&path).unwrap_err().to_string();
        assert!(said.contains("knee bond keys"), "{said}");
    }
}

/// A key of the same kind that another tool made is accepted.
#[test]
fn a_key_of_openssl_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bond.key");
    // From RFC 8410, section 10.3, with the public key printed in its section 10.1.
    fs::write(
        &path,
        "-----BEGIN PRIVATE KEY-----\n\
         MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
         -----END PRIVATE KEY-----\n",
    )
    .unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let public = key::to_text(&key::read(&path).unwrap().public());
    assert_eq!(public, "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=");
}

/// A configuration or key that is a pipe, a device, a folder or very large is refused at once: a pipe
/// has no writer, and a device no end.
#[test]
fn only_small_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len(1 << 30).unwrap();
    for (path, why) in [
        (pipe.as_path(), "not a regular file"),
        (std::path::Path::new("/dev/zero"), "not a regular file"),
        (folder.path(), "folder"),
        (large.as_path(), "larger than 1 MiB"),
    ] {
        let error = ServerConfig::read(path).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        let error = key::read(path).unwrap_err().to_string();
        assert!(path == large || error.contains(why), "{error}");
    }
}

/// A password that others can read is worth a warning; one that they cannot is not.
#[test]
fn a_password_that_others_can_read_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("client.toml");
    let warning = |login: &str, mode: u32| {
        let server_key = public();
        let text = format!(
            "server = \"example.org:4433\"\nserver_key = \"{server_key}\"\nkey = \"k\"\n{login}\n"
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        ClientConfig::read(&path).unwrap().warning(&path)
    };
    let login = "login = { user = \"ann\", password = \"secret\" }";
    assert!(warning(login, 0o644).unwrap().contains("chmod 600"));
    assert!(warning(login, 0o640).is_some());
    assert_eq!((warning(login, 0o600), warning("", 0o644)), (None, None));
}

/// Names that would break a line of the log, and more streams than the window has room for.
#[test]
fn names_and_limits_are_checked() {
    let server = |client: &str, more: &str| {
        let key = public();
        complaint(
            &format!(
                "key = \"k\"\nclient = [{{ name = \"{client}\", key = \"{key}\" }}]\n{more}\n"
            ),
            false,
        )
    };
    assert!(server("a\\nb", "").contains("control characters"));
    let error = server("a", "limits = { streams = 6145 }");
    assert!(error.contains("streams at a time from 1 to 6144"), "{error}");
    for (limits, wanted) in [
        ("streams = 0", "streams at a time from 1 to 6144"),
        ("new_streams_per_second = 0", "new streams per second from 1 to 1000000"),
        ("udp_flows = -1", "UDP flows at a time from 0 to 1000000"),
        ("bytes_per_day = \"0 GB\"", "a size above 0"),
    ] {
        let error = server("a", &format!("limits = {{ {limits} }}"));
        assert!(error.contains(wanted), "{error}");
    }
    for (egress, wanted) in [
        ("ports = [0]", "a port from 1 to 65535"),
        ("ports = 443", "a list of ports, such as [80, 443]"),
        ("allow = \"10.0.0.0/8\"", "a list of prefixes"),
    ] {
        let error = server("a", &format!("egress = {{ {egress} }}"));
        assert!(error.contains(wanted), "{error}");
    }
}
