//! A scenario whose settings move, and its page.

use knee_lab::play::{Choice, Play, listen, serve};
use knee_lab::record::{Control, Summary};
use knee_lab::{Handle, Job, Lab, SIMULATOR, ScenarioText};
use knee_scenario::{Reverse, Scenario};
use knee_units::{Rate, Time};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};

/// A path with an unequal way back, between values that the sliders have.
const FILE: &str = "# A comment
name = \"Mine\"
duration = \"3 s\"   # short

[link.wire]
rate = \"11 Mbit/s\"  # of a modem
delay = \"7 ms\"
buffer = \"64 kB\"

[path.main]
forward = [\"wire\"]
reverse_delay = \"14 ms\"

[[flow]]
name = \"mine\"
cc = { name = \"bbr\", drain_to_target = true }
path = \"main\"

[[flow]]
name = \"other\"
cc = \"cubic\"
path = \"main\"
";

fn play(text: &str) -> Play {
    Play::new(Some(ScenarioText::new("mine.toml", text))).unwrap()
}

fn read(text: &str) -> Scenario {
    ScenarioText::new("mine.toml", text).scenario(&[]).unwrap()
}

/// The start of the file with one setting at another position.
fn moved(play: &Play, setting: usize, step: usize) -> Choice {
    let positions = play.settings().iter().enumerate().map(|(number, known)| match number {
        number if number == setting => step.to_string(),
        _ => known.start.to_string(),
    });
    play.choice(&positions.collect::<Vec<_>>().join(",")).unwrap()
}

#[test]
fn what_does_not_move_stays_as_it_is_in_the_file() {
    let crlf = FILE.replace('\n', "\r\n");
    for text in [FILE, &crlf, knee_scenario::template()] {
        let play = play(text);
        assert_eq!(play.file(&play.start(0)), text);
    }
    let play = play(FILE);
    let rate = play.settings().iter().position(|setting| setting.name == "rate").unwrap();
    let step = play.settings()[rate].steps.iter().position(|step| step.text == "50 Mbit/s");
    let changed = play.file(&moved(&play, rate, step.unwrap()));
    assert_eq!(changed, FILE.replace("\"11 Mbit/s\"", "\"50 Mbit/s\""));
}

/// Every value of every slider is a scenario with that value, and nothing else changes.
#[test]
fn each_step_is_what_it_says() {
    let play = play(FILE);
    let first = read(FILE);
    for (number, setting) in play.settings().iter().enumerate() {
        assert!(setting.steps.len() > 10, "{}", setting.name);
        for (at, step) in setting.steps.iter().enumerate() {
            let scenario = read(&play.file(&moved(&play, number, at)));
            let own = at == setting.start;
            let link = &scenario.links[0].config;
            let ours: Vec<_> = scenario.flows.iter().filter(|flow| flow.name == "mine").collect();
            let text = step.text.as_str();
            match setting.name {
                "rate" => assert_eq!(
                    link.rate,
                    knee_link::RateModel::Constant(text.parse::<Rate>().unwrap())
                ),
                "rtt" => {
                    let Reverse::Delay(back) = scenario.paths[0].reverse else { panic!() };
                    let there = link.delay.base.0[0].1;
                    assert_eq!(there.saturating_add(back), text.parse::<Time>().unwrap());
                    // One third there, as in the file.
                    let third = back.as_nanos().abs_diff(2 * there.as_nanos());
                    assert!(third <= 2, "{text}: {third} ns");
                }
                "buffer" if own => assert_eq!(link.buffer, first.links[0].config.buffer),
                "buffer" => {
                    let knee_link::Buffer::Bytes(bytes) = link.buffer else { panic!("{text}") };
                    let bdp = 11e6 / 8.0 * 0.021;
                    let times: f64 = text.strip_suffix(" BDP").unwrap().parse().unwrap();
                    assert!((bytes as f64 / bdp / times - 1.0).abs() < 0.01, "{text}: {bytes}");
                }
                "loss" => {
                    let percent: f64 = text.strip_suffix(" %").unwrap().parse().unwrap();
                    let part = match link.loss {
                        knee_link::Loss::Independent(part) => part,
                        _ => 0.0,
                    };
                    assert!((100.0 * part - percent).abs() < 1e-9, "{text}: {part}");
                }
                "flows" => assert_eq!(ours.len(), text.parse::<usize>().unwrap()),
                "cc" => {
                    assert_eq!(ours[0].controller.name, text.split(',').next().unwrap());
                    assert_eq!(ours[0].controller.parameters.is_empty(), !own, "{text}");
                }
                other => panic!("{other}"),
            }
            assert_eq!(scenario.flows.last(), first.flows.last(), "the other flow stays");
        }
    }
    let names: Vec<&str> = play.settings().iter().map(|setting| setting.name).collect();
    assert_eq!(names, ["rate", "rtt", "buffer", "loss", "flows", "cc"]);
}

/// The simulator takes every controller that the list has, with its defaults.
#[test]
fn every_controller_of_the_list_is_accepted() {
    let play = Play::new(None).unwrap();
    let number = play.settings().iter().position(|setting| setting.name == "cc").unwrap();
    for step in 0..play.settings()[number].steps.len() {
        let control = Control::default();
        // A beginning of it is enough.
        control.stop();
        let drawn = play.draw(&[moved(&play, number, step)], &control);
        assert!(drawn.is_ok(), "{}: {drawn:?}", play.settings()[number].steps[step].text);
    }
}

#[test]
fn what_cannot_move_is_named() {
    let steps =
        "rate = [{ at = \"0 s\", rate = \"11 Mbit/s\" }, { at = \"1 s\", rate = \"2 Mbit/s\" }]";
    let odd = FILE
        .replace("rate = \"11 Mbit/s\"", steps)
        .replace("buffer", "loss = { every = 100 }\nbuffer")
        .replace("reverse_delay = \"14 ms\"", "reverse = [\"wire\"]");
    let play = play(&odd);
    let names: Vec<&str> = play.settings().iter().map(|setting| setting.name).collect();
    assert_eq!(names, ["buffer", "flows", "cc"]);
    let page = play.page().unwrap();
    for why in ["it is not constant", "the way back has links", "not independent"] {
        assert!(page.contains(why), "{why}");
    }
    let two = FILE.replacen("path = \"main\"", "paths = [\"main\", \"second\"]", 1)
        + "[path.second]\nforward = [\"wire\"]\nreverse_delay = \"1 ms\"\n";
    let error = Play::new(Some(ScenarioText::new("two.toml", &two))).unwrap_err();
    assert!(error.to_string().contains("not over one path"), "{error}");
}

#[test]
fn only_positions_of_the_sliders_can_be_asked_for() {
    let play = play(FILE);
    assert!(play.choice("0,0,0,0,0,0").is_some());
    for wrong in
        ["", "0", "0,0,0,0,0", "0,0,0,0,0,0,0", "0,0,0,0,0,-1", "0,0,0,0,0,1000", "a,0,0,0,0,0"]
    {
        assert!(play.choice(wrong).is_none(), "{wrong:?}");
    }
    let largest = u64::MAX.to_string();
    assert!(play.choice(&[largest.as_str(); 6].join(",")).is_none());
    assert!(play.choice(&"0,".repeat(1_000_000)).is_none());
}

fn summary(text: &str) -> Summary {
    let lab = Lab::default();
    let scenario = read(text);
    lab.run(&Job::new(&scenario, lab.grounds.get(SIMULATOR).unwrap())).unwrap().summary
}

/// What is drawn is what a run of the file comes to, for each side.
#[test]
fn the_file_handed_over_comes_to_what_is_drawn() {
    let play = play(FILE);
    let number = play.settings().iter().position(|setting| setting.name == "cc").unwrap();
    let reno = play.settings()[number].steps.iter().position(|step| step.text == "reno").unwrap();
    let choices = [play.start(0), moved(&play, number, reno)];
    let drawn = play.draw(&choices, &Control::default()).unwrap();
    let json = serde_json::to_value(&drawn).unwrap();
    assert_eq!(json["complete"], true);
    let body = json["body"].as_str().unwrap().replace("&#x2f;", "/");
    for (choice, name) in choices.iter().zip(["A", "B"]) {
        let of_file = summary(&play.file(choice));
        let goodput = knee_lab::present::words::rate(of_file.measures.goodput_bps);
        let says = json["says"].as_str().unwrap();
        assert!(says.contains(&format!("{name}: {goodput}")), "{goodput}: {says}");
        for flow in &of_file.flows {
            let goodput = knee_lab::present::words::rate(flow.goodput_bps);
            assert!(body.contains(&format!(">{goodput}<")), "{goodput}: {body}");
        }
    }
    assert!(body.contains("A, bbr") && body.contains("B, reno"), "{body}");
}

#[test]
fn a_run_that_is_stopped_shows_its_beginning() {
    let play = play(&FILE.replace("3 s", "14400 s"));
    let control = Control::default();
    control.stop();
    let drawn = play.draw(&[play.start(0)], &control).unwrap();
    let json = serde_json::to_value(&drawn).unwrap();
    assert_eq!(json["complete"], false);
    // The axis of time is that of the whole run.
    assert!(json["body"].as_str().unwrap().contains(">10000</text>"), "{json}");
}

/// A page that is served until this is dropped.
struct Served {
    address: SocketAddr,
    /// Positions of the sliders at the start.
    start: String,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(play: Play) -> Served {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, handle) = (listener.local_addr().unwrap(), Handle::default());
        let start = play.settings().iter().map(|setting| setting.start.to_string());
        let start = start.collect::<Vec<_>>().join(",");
        let stop = handle.clone();
        let thread = thread::spawn(move || serve(listener, play, &stop).unwrap());
        Served { address, start, handle, thread: Some(thread) }
    }

    fn send(&self, path: &str, fields: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        socket
    }

    fn ask(&self, path: &str, fields: &str) -> String {
        let mut answer = String::new();
        self.send(path, fields).read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn the_page_answers_itself_and_nobody_else() {
    let served = Served::new(play(FILE));
    for (path, wanted) in [
        ("/", "id=\"a-rate\""),
        ("/page.js", "use strict"),
        ("/page.css", "#controls"),
        ("/file?a=0,0,0,0,0,0", "attachment; filename=\"mine-a.toml\""),
        ("/file?b=0,0,0,0,0,0", "rate = \"100 kbit/s\""),
    ] {
        let answer = served.ask(path, "");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(wanted), "{path}: {answer}");
    }
    let run = format!("/run?a={}", served.start);
    let answer = served.ask(&run, "Sec-Fetch-Site: same-origin\r\n");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("svg"), "{answer}");
    for path in ["/run", "/run?a=", "/run?a=0", "/run?b=0,0,0,0,0,9999", "/file", "/file?c=1"] {
        let answer = served.ask(path, "");
        assert!(answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
    }
    // A buffer of less than a packet is refused as in any scenario.
    let answer = served.ask("/run?a=0,0,0,0,0,0", "");
    assert!(answer.starts_with("HTTP/1.1 422") && answer.contains("1.5 kB or more"), "{answer}");
    let answer = served.ask(&run, "Sec-Fetch-Site: cross-site\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let answer = served.ask("/", "Host: evil.example\r\n");
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

/// Runs of a billion packets that nobody waits for any more leave their places: otherwise this test
/// would last as long as they do.
#[test]
fn a_run_that_nobody_waits_for_ends() {
    let long = FILE.replace("3 s", "14400 s").replace("11 Mbit/s", "1 Gbit/s");
    let served = Served::new(play(&long));
    let positions = served.start.clone();
    for _ in 0..4 {
        let whole = format!("/run?a={positions}&whole");
        let left: Vec<TcpStream> = (0..3).map(|_| served.send(&whole, "")).collect();
        drop(left);
        let answer = served.ask(&format!("/run?a={positions}"), "");
        assert!(answer.contains("\"complete\":false"), "{answer}");
    }
}
