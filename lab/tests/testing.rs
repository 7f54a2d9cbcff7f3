//! `downpour-lab web` without a browser: real processes run plans, and hostile requests are refused.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::results::RECORDS;
use serde_json::{Value, json};

/// A bound on a hang, far above the need of a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The shortest interval of requests of the page.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// Files whose runs take a few hundredths of a second.
fn plan(name: &str, repeats: u32) -> String {
    format!(
        "name = \"{name}\"\ntitle = \"Small files\"\nlink = \"rate=10M,delay=5ms,queue=1bdp\"\nrepeats = {repeats}\ncap = \"60s\"\n\
         [[flow]]\nname = \"file\"\nprofile = \"auto\"\nsize = \"4MB\"\n[[sweep]]\nname = \"loss\"\nvary = \"link.loss\"\nvalues = [\"5%\"]\n"
    )
}

/// The working directory of a page server.
enum Directory {
    Own(tempfile::TempDir),
    Given(PathBuf),
}

impl Directory {
    fn path(&self) -> &Path {
        match self {
            Self::Own(directory) => directory.path(),
            Self::Given(directory) => directory,
        }
    }
}

/// A page server.
struct Web {
    process: Child,
    directory: Directory,
    address: String,
    secret: String,
}

impl Web {
    fn start() -> Self {
        Self::within(Directory::Own(tempfile::tempdir().expect("a directory")))
    }

    fn start_in(directory: &Path) -> Self {
        Self::within(Directory::Given(directory.to_owned()))
    }

    fn within(directory: Directory) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_downpour-lab"))
            .arg("web")
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut url = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut url).expect("an address");
        let (address, secret) =
            url.trim().strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("a URL");
        let (address, secret) = (address.to_owned(), secret.trim_matches('/').to_owned());
        Self { process, directory, address, secret }
    }

    fn send(&self, request: &str, path: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let (address, secret) = (&self.address, &self.secret);
        let head = format!(
            "{request} /{secret}/{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        // A server need not read a request that it refuses for its length.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        stream
    }

    /// Returns the status and the body of an answer.
    fn answer(&self, request: &str, path: &str, body: &[u8]) -> (u16, String) {
        let mut text = Vec::new();
        let _ = self.send(request, path, body).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, body.to_owned())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.answer("GET", path, b"")
    }

    fn post(&self, path: &str, asked: &Value) -> (u16, String) {
        self.answer("POST", path, asked.to_string().as_bytes())
    }

    /// Returns the first state of a run that meets a condition.
    fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let (begun, path) = (Instant::now(), format!("testing/watch?name={name}"));
        while begun.elapsed() < PATIENCE {
            // A request as of the page, for the newest state.
            let (_, answer) = self.get(&path);
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            if let Some(state) =
                answer["events"].as_array().and_then(|events| events.iter().find(|state| wanted(state)))
            {
                return state.clone();
            }
            thread::sleep(LOOK_EVERY);
        }
        panic!("no such state in time");
    }

    fn records(&self, plan: &str) -> PathBuf {
        self.directory.path().join("lab-results").join(plan).join(RECORDS)
    }

    /// Stops it as Ctrl-C does, and returns its exit code.
    fn stop(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
        self.process.wait().expect("it ends").code()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop();
        }
    }
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("records");
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

fn is(stage: &'static str) -> impl Fn(&Value) -> bool {
    move |state| state["stage"] == stage
}

#[test]
fn plan_is_run_stopped_resumed_and_extended() {
    let web = Web::start();
    let text = plan("my/small", 300);
    let (status, said) = web.post("testing/start", &json!({ "text": text, "jobs": 2 }));
    assert_eq!(status, 200, "{said}");
    let name = "lab-results/my/small";
    web.until(name, |state| state["stage"] == "running" && state["records"].as_u64() >= Some(3));
    let (status, said) = web.post("testing/start", &json!({ "text": text, "again": true }));
    assert!(status == 409 && said.contains("already running"), "{status} {said}");
    assert_eq!(web.post("testing/stop", &json!({ "name": name })).0, 200);
    let stopped = web.until(name, is("partial"));
    let before = lines(&web.records("my/small"));
    assert_eq!((stopped["records"].as_u64(), stopped["total"].as_u64()), (Some(before.len() as u64), Some(300)));
    assert!(before.len() < 300, "it was stopped in time");

    let (status, said) = web.post("testing/start", &json!({ "text": text }));
    assert!(status == 409 && said.contains("results of my/small exist"), "{status} {said}");
    assert_eq!(web.post("testing/more", &json!({ "name": name, "jobs": 2 })).0, 200);
    web.until(name, is("done"));
    let after = lines(&web.records("my/small"));
    assert_eq!((after.len(), &after[..before.len()]), (300, &before[..]), "stored cases are not run again");

    assert_eq!(web.post("testing/more", &json!({ "name": name, "more": 5, "jobs": 2 })).0, 200);
    let done = web.until(name, |state| state["stage"] == "done" && state["total"] == 305);
    let all = lines(&web.records("my/small"));
    let seeds: BTreeSet<u64> = all.iter().map(|record| record["case"]["seed"].as_u64().expect("a seed")).collect();
    assert_eq!(seeds, (1..=305).collect());

    // The numbers are those of the records.
    let seconds: Vec<f64> =
        all.iter().map(|record| record["flows"][0]["seconds"].as_f64().expect("finished")).collect();
    let mean = seconds.iter().sum::<f64>() / 305.0;
    let deviation = (seconds.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 304.0).sqrt();
    // Student's t with 304 degrees of freedom.
    let half = 1.9678 * deviation / 305.0_f64.sqrt();
    let cell = &done["tables"][0]["rows"][0]["cells"][0];
    let close = |key: &Value, expected: f64| (key.as_f64().expect("a number") - expected).abs() < 1e-6 * expected;
    assert!(close(&cell["mean"], mean) && close(&cell["deviation"], deviation), "{cell} {mean} {deviation}");
    let width = cell["interval"][1].as_f64().expect("a bound") - cell["interval"][0].as_f64().expect("a bound");
    assert!((width / 2.0 - half).abs() < 1e-3 * half, "{cell} {half}");
    assert_eq!((&cell["runs"], &cell["planned"], &cell["invalid"]), (&json!(305), &json!(305), &json!(0)));
    assert!(done["pictures"][0].as_str().expect("a picture").contains("data-series=\"0\" data-x=\"5\""));

    // From the number to its records, and to one full record.
    let (status, behind) = web.get(&format!("results/at?name={name}&sweep=0&row=0&point=0"));
    let behind: Value = serde_json::from_str(&behind).expect("JSON");
    assert_eq!((status, &behind["all"]), (200, &json!(305)));
    let first = &behind["runs"][0];
    let (_, record) = web.get(&format!("results/record?name={name}&index={}", first["index"]));
    assert_eq!(serde_json::from_str::<Value>(&record).expect("JSON"), all[0]);
    let label = first["label"].as_str().expect("a label");
    let command = format!("downpour-lab run lab-results/my/small/plan.toml --only '{label}' --out again");
    assert_eq!(first["command"], json!(command));
    let again = Command::new(env!("CARGO_BIN_EXE_downpour-lab"))
        .current_dir(web.directory.path())
        .args(["run", "lab-results/my/small/plan.toml", "--only", label, "--out", "again"])
        .output()
        .expect("it starts");
    assert!(again.status.success(), "{again:?}");
    // The same seed gives the same run.
    let repeated = &lines(&web.directory.path().join("again").join(RECORDS))[0];
    assert_eq!(repeated["flows"], all[0]["flows"]);
}

#[test]
fn terminal_run_is_followed_and_stopped() {
    let web = Web::start();
    fs::write(web.directory.path().join("plan.toml"), plan("theirs", 300)).expect("written");
    let mut theirs = Command::new(env!("CARGO_BIN_EXE_downpour-lab"))
        .current_dir(web.directory.path())
        .args(["run", "plan.toml"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let begun = Instant::now();
    while !web.records("theirs").exists() && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    let name = "lab-results/theirs";
    let running = web.until(name, |state| state["stage"] == "running" && state["records"].as_u64() >= Some(2));
    let says = running["says"].as_str().expect("words");
    assert!(says.starts_with(&format!("Running in process {}", theirs.id())), "{says}");
    let (status, said) = web.post("testing/more", &json!({ "name": name }));
    assert!(status == 409 && said.contains("already running"), "{status} {said}");
    assert_eq!(web.post("testing/stop", &json!({ "name": name })).0, 200);
    assert_eq!(theirs.wait().expect("it ends").code(), Some(75));
    web.until(name, is("partial"));
    let (status, said) = web.post("testing/stop", &json!({ "name": name }));
    assert!(status == 409 && said.contains("is not running"), "{status} {said}");
}

/// Two labs in one directory, as after the crash of one of them.
#[test]
fn run_outlives_a_crashed_lab() {
    let mut web = Web::start();
    assert_eq!(web.post("testing/start", &json!({ "text": plan("long", 5_000) })).0, 200);
    let name = "lab-results/long";
    web.until(name, |state| state["records"].as_u64() >= Some(2));
    web.process.kill().expect("it runs");
    web.process.wait().expect("it ends");
    let before = lines(&web.records("long")).len() as u64;
    let next = Web::start_in(web.directory.path());
    next.until(name, |state| state["stage"] == "running" && state["records"].as_u64() >= Some(before + 2));
    let choices: Value = serde_json::from_str(&next.get("testing/choices").1).expect("JSON");
    assert_eq!(choices["experiments"], json!([{ "name": name, "hasResults": true, "isRunning": true }]));
    let (status, said) = next.post("testing/start", &json!({ "text": plan("long", 5_000), "again": true }));
    assert!(status == 409 && said.contains("already running"), "{status} {said}");
    // It would disturb timed codes.
    let codes = "name = \"codes\"\ntitle = \"x\"\ncodes = [\"raptorq\"]\nsize = \"10KB\"\nsymbol = \"1024B\"\nrepair = \"15%\"\n\
                 drops = [\"0%\", \"10%\"]\nruns = 2\ncap = \"5s\"\n[[sweep]]\nname = \"size\"\ntitle = \"x\"\nmeasure = \"encode\"\n\
                 vary = \"size\"\nvalues = [\"10KB\"]\n";
    let (status, said) = next.post("testing/start", &json!({ "text": codes }));
    assert!(status == 409 && said.contains("are measured alone"), "{status} {said}");
    assert_eq!(next.post("testing/stop", &json!({ "name": name })).0, 200);
    let stopped = next.until(name, is("partial"));
    assert_eq!(stopped["records"].as_u64(), Some(lines(&web.records("long")).len() as u64));
    lab::results::StoreOf::<Value>::open(&web.directory.path().join(name)).expect("the run has ended");
}

#[test]
fn exit_stops_runs_and_keeps_results() {
    let mut web = Web::start();
    assert_eq!(web.post("testing/start", &json!({ "text": plan("long", 5_000) })).0, 200);
    web.until("lab-results/long", |state| state["records"].as_u64() >= Some(2));
    let records = web.records("long");
    assert_eq!(web.stop(), Some(0));
    // The lock is free, and every line is complete.
    lab::results::StoreOf::<Value>::open(records.parent().expect("a directory")).expect("the run has ended");
    assert!(lines(&records).len() >= 2);
}

/// Another lab that starts a run holds this lock as well.
#[test]
fn waiting_starts_do_not_block_requests() {
    let web = Web::start();
    let results = web.directory.path().join("lab-results");
    for name in ["a", "b", "there"] {
        fs::create_dir_all(results.join(name)).expect("a directory");
    }
    fs::write(results.join("there/plan.toml"), plan("there", 1)).expect("written");
    let other = fs::File::open(&results).expect("it exists");
    other.lock().expect("it is free");
    thread::scope(|scope| {
        let starts = ["a", "b"].map(|name| {
            let web = &web;
            scope.spawn(move || web.post("testing/start", &json!({ "text": plan(name, 1) })))
        });
        for _ in 0..4 {
            web.until("lab-results/there", is("empty"));
            assert_eq!(web.get("results/list").0, 200);
            assert_eq!(web.get("testing/choices").0, 200);
        }
        assert!(starts.iter().all(|start| !start.is_finished()), "they wait");
        other.unlock().expect("it was held");
        assert_eq!(starts.map(|start| start.join().expect("an answer").0), [200, 200]);
    });
}

#[test]
fn hostile_requests_are_refused() {
    let web = Web::start();
    let refused = |(status, said): (u16, String), expected: u16, part: &str| {
        assert!(status == expected && said.contains(part) && said.lines().count() <= 1, "{status} {said}");
    };
    for name in ["..%2F..%2Fetc", "../../etc/passwd", "/etc", "lab-results/..", "experiments/arq/fig3", "", "%00"] {
        refused(web.get(&format!("testing/plan?name={name}")), 404, "unknown plan");
        refused(web.get(&format!("testing/watch?name={name}")), 404, "unknown plan");
        refused(web.get(&format!("results/open?name={name}")), 404, "unknown plan");
        refused(web.post("testing/more", &json!({ "name": name })), 404, "unknown plan");
        refused(web.post("testing/stop", &json!({ "name": name })), 404, "unknown plan");
        refused(web.post("testing/check", &json!({ "text": plan("x", 1), "beside": name })), 404, "unknown plan");
    }
    let start = |text: &str| web.post("testing/start", &json!({ "text": text }));
    for name in ["../../etc", "/etc/x", "a/../b", "a//b", "A", "", "a\\u0000b"] {
        refused(start(&plan(name, 1)), 400, "invalid name");
    }
    refused(start(&plan("x", u32::MAX)), 400, "more than 50000 runs");
    refused(start("[["), 400, "plan.toml:1: ");
    refused(
        start(&plan("x", 1).replace("[[sweep]]", "[topology]\nfile = \"../../etc/passwd\"\n[[sweep]]")),
        400,
        "must be in the directory of the plan",
    );
    let over_links = "name = \"x\"\ntitle = \"x\"\nlink = \"trace=/etc/passwd\"\nsize = \"1MB\"\ncap = \"9s\"\npeers = [\"tcp-cubic\"]\n\
                      [[sweep]]\nname = \"x\"\nvary = \"loss\"\nvalues = [\"1%\"]\n";
    refused(start(over_links), 400, "trace /etc/passwd must be a file in lab-results");
    refused(web.post("testing/start", &json!({ "text": plan("x", 1), "jobs": 0 })), 400, "runs at a time");
    refused(web.post("testing/start", &json!({ "text": plan("x", 1), "jobs": 1_000_000 })), 400, "runs at a time");
    refused(web.post("testing/start", &json!({})), 400, "text");
    let long = format!("{}{}", plan("x", 1), "#".repeat(300 << 10));
    refused(start(&long), 400, "plan too long");
    // The server may close the connection before most of this has been sent.
    let (status, _) = web.post("testing/start", &json!({ "text": "#".repeat(10 << 20) }));
    assert!([0, 400].contains(&status), "{status}");
    refused(web.get("results/record?name=x&index=99999999999999999999"), 400, "");
    assert!(!web.directory.path().join("lab-results").exists(), "nothing was written");

    assert_eq!(start(&plan("x", 2)).0, 200);
    web.until("lab-results/x", is("done"));
    refused(web.get("results/at?name=lab-results/x&sweep=0&row=7&point=0"), 404, "no such point");
    refused(web.get("results/record?name=lab-results/x&index=2"), 404, "no such record");
    refused(web.get("results/behind?name=lab-results/x&query=auto%20loss%207%25"), 400, "unknown name '7%'");
    refused(web.get(&format!("results/behind?name=lab-results/x&query={}", "(".repeat(60))), 400, "too long");
    let (status, found) = web.get("results/behind?name=lab-results/x&query=auto%20loss%205%25");
    assert!(status == 200 && found.contains("\"all\":2"), "{status} {found}");
}
