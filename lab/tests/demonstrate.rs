//! A demonstration over emulated links, as `web` starts it: its output is the received data, and its links can change.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};

use data_encoding::BASE64;
use serde_json::{Value, json};

const WIDTH: usize = 64;
const HEIGHT: usize = 48;
const PIXEL: usize = 3;

/// A process that plays one.
struct Player {
    process: Child,
    stdin: ChildStdin,
}

impl Player {
    /// Starts one with these systems over links of 1 Mbit/s with this loss in percent.
    fn start(systems: &str, loss: f64, picture: &[u8]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_downpour-lab"))
            .arg("demonstrate")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = process.stdin.take().expect("a pipe");
        let asked = json!({
            "systems": systems, "width": WIDTH, "height": HEIGHT, "seed": 1, "loss": loss, "delay": 20.0, "rate": 1.0,
            "speed": 1.0, "emulated": true,
        });
        stdin.write_all(&[asked.to_string().as_bytes(), b"\n", picture].concat()).expect("it reads");
        Self { process, stdin }
    }

    /// Calls `each` with every frame and with the stdin of the process. Returns the reason of the end.
    fn play(mut self, mut each: impl FnMut(&Value, &mut ChildStdin)) -> String {
        let stdout = BufReader::new(self.process.stdout.take().expect("a pipe"));
        let mut why = String::new();
        for line in stdout.lines() {
            let event: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
            match event["over"].as_str() {
                Some(over) => over.clone_into(&mut why),
                None => each(&event["frame"], &mut self.stdin),
            }
        }
        let status = self.process.wait().expect("it ends");
        assert!(status.success(), "{status}");
        why
    }
}

fn picture() -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(3);
    (0..WIDTH * HEIGHT * PIXEL).map(|_| random.u8(..)).collect()
}

#[test]
fn demonstrate_delivers_the_picture() {
    let picture = picture();
    let systems = ["auto", "arq-reno", "tornado-transfer", "rc-udp"];
    let mut painted = vec![vec![None; picture.len()]; systems.len()];
    let mut last = Value::Null;
    let why = Player::start(&systems.join(","), 5.0, &picture).play(|frame, _| {
        for (system, painted) in frame["systems"].as_array().expect("systems").iter().zip(&mut painted) {
            for piece in system["pieces"].as_array().expect("pieces") {
                let offset = piece[0].as_u64().expect("an offset") as usize;
                let bytes = BASE64.decode(piece[2].as_str().expect("text").as_bytes()).expect("Base64");
                for (place, byte) in painted[offset..].iter_mut().zip(bytes) {
                    assert_eq!(place.replace(byte), None, "a byte arrives twice");
                }
            }
        }
        last = frame.clone();
    });
    assert!(why.starts_with("every system has ended; the emulation was "), "{why}");
    for (at, name) in systems.iter().enumerate() {
        assert!(painted[at].iter().copied().eq(picture.iter().copied().map(Some)), "{name}");
        let done = last["systems"][at]["done"].as_f64().expect("it is done");
        let floor = last["floor"].as_f64().expect("a floor");
        assert!(done > 0.9 * floor, "{name}: {done} s, floor {floor} s");
    }
}

#[test]
fn demonstrate_link_change_takes_effect() {
    let picture = picture();
    let mut frames = Vec::new();
    let player = Player::start("arq-reno,rc-udp", 0.0, &picture);
    let changed = json!({ "loss": 100.0, "delay": 20.0, "rate": 1.0, "speed": 8.0 });
    let lossy = json!({ "loss": 50.0, "delay": 30.0, "rate": 0.5, "speed": 1.0 });
    player.play(|frame, stdin| {
        if frames.is_empty() {
            // The first line is invalid, and the second is valid.
            stdin.write_all(format!("{changed}\n{lossy}\n").as_bytes()).expect("it reads");
        }
        frames.push(frame.clone());
    });
    assert_eq!(frames[0]["link"]["loss"], 0.0);
    let link = &frames.last().expect("frames")["link"];
    assert_eq!(*link, lossy);
    let lost = |frame: &Value| [0, 1].map(|at| frame["systems"][at]["lost"].as_u64().expect("a count"));
    assert_eq!(lost(&frames[0]), [0, 0]);
    let lost = lost(frames.last().expect("frames"));
    assert!(lost.iter().all(|&lost| lost > 0), "{lost:?} in {} frames", frames.len());
}

#[test]
fn demonstrate_stdin_closed_exits() {
    // With this loss the transfer would take much longer than the test.
    let Player { mut process, stdin } = Player::start("arq-reno,arq-cubic", 50.0, &picture());
    let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a frame").expect("text");
    assert!(first.starts_with("{\"frame\":"), "{first}");
    drop(stdin);
    // Its stdout stays open, and cannot be the reason of the end.
    let last = lines.last().expect("an end").expect("text");
    assert!(last.starts_with("{\"over\":\"stopped; the emulation was "), "{last}");
    assert!(process.wait().expect("it ends").success());
}
