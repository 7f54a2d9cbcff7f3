//! The search without coverage.

use std::any::Any;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, panic, process, thread};

use fastrand::Rng;

use super::{Searched, Target, mutate};
use xtask::failure::Failure;

/// An input that takes longer than this hangs, or does work out of all proportion to its size.
const PATIENCE: Duration = Duration::from_secs(10);

/// A target, and where its inputs come from.
pub(super) struct Search {
    pub(super) target: Target,
    pub(super) corpus: Vec<Vec<u8>>,
    /// What every input begins with, where that is given.
    pub(super) first: Option<u8>,
    pub(super) seed: u64,
    /// Where an input that breaks something is kept.
    pub(super) crashes: PathBuf,
}

/// The input being tried.
#[derive(Clone, Default)]
struct Trial {
    number: u64,
    input: Vec<u8>,
    started: Option<Instant>,
}

impl Search {
    /// The corpus as it is, then mutations from number `from` on, until the time is up or something breaks.
    pub(super) fn run(self, from: u64, time: Duration) -> Result<Searched, Failure> {
        println!(
            "{}: seed {}, {} inputs in the corpus, {} s",
            self.target.name,
            self.seed,
            self.corpus.len(),
            time.as_secs()
        );
        let trial = Arc::new(Mutex::new(Trial::default()));
        let watched = Arc::clone(&trial);
        let search = Arc::new(self);
        let working = Arc::clone(&search);
        let worker = thread::spawn(move || working.search(from, time, &trial));
        while !worker.is_finished() {
            thread::sleep(Duration::from_millis(20));
            let trial = watched.lock().expect("its holder does not panic").clone();
            if trial.started.is_some_and(|started| started.elapsed() > PATIENCE) {
                // The worker cannot be stopped, so the process ends.
                let why = format!("takes longer than {} s", PATIENCE.as_secs());
                eprintln!("{}", search.broken(&trial, &why));
                process::exit(1);
            }
        }
        worker.join().map_err(|_| Failure::new("the search itself broke"))?
    }

    fn search(&self, from: u64, time: Duration, trial: &Mutex<Trial>) -> Result<Searched, Failure> {
        let started = Instant::now();
        let mut slowest = Duration::ZERO;
        let as_they_are = self.corpus.len() as u64;
        let mut number = from;
        while number < as_they_are || started.elapsed() < time {
            let mut input = match self.corpus.get(number as usize) {
                Some(input) => input.clone(),
                None => mutate::mutated(&self.corpus, &mut self.rng(number)),
            };
            if let (Some(first), Some(byte)) = (self.first, input.first_mut()) {
                *byte = first;
            }
            let began = Instant::now();
            *trial.lock().expect("its holder does not panic") =
                Trial { number, input: input.clone(), started: Some(began) };
            if let Err(panic) = panic::catch_unwind(|| (self.target.function)(&input)) {
                let trial = Trial { number, input, started: None };
                return Err(self.broken(&trial, &said(&*panic)));
            }
            slowest = slowest.max(began.elapsed());
            number += 1;
        }
        trial.lock().expect("its holder does not panic").started = None;
        let tried = number - from;
        let each = started.elapsed().as_secs_f64() / tried.max(1) as f64;
        println!(
            "{}: clean after {tried} inputs, {:.0} a second, the slowest {slowest:.1?}",
            self.target.name,
            1.0 / each
        );
        Ok(Searched { inputs: tried, reached: None })
    }

    /// Every input has a generator of its own, so that any of them can be made without those before it.
    fn rng(&self, number: u64) -> Rng {
        Rng::with_seed(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Keeps the input and says how to try it again.
    fn broken(&self, trial: &Trial, why: &str) -> Failure {
        let (name, seed, number) = (self.target.name, self.seed, trial.number);
        let again = match self.keep(trial) {
            Ok(file) => format!("--replay {}", file.display()),
            Err(failure) => format!("--seed {seed} --from {number} (the input could not be kept: {failure})"),
        };
        Failure::new(format_args!(
            "{name}: input {number} of seed {seed}: {why}\nagain: cargo xtask fuzz {name} {again}"
        ))
    }

    fn keep(&self, trial: &Trial) -> Result<PathBuf, Failure> {
        let file = self.crashes.join(format!("{}-{}-{}", self.target.name, self.seed, trial.number));
        fs::create_dir_all(&self.crashes).map_err(Failure::at(self.crashes.display()))?;
        fs::write(&file, &trial.input).map_err(Failure::at(file.display()))?;
        Ok(file)
    }
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panicked").to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn search(function: fn(&[u8]), crashes: &Path) -> Search {
        let target = Target { name: "of-a-test", function };
        Search { target, corpus: vec![b"ab".to_vec()], first: None, seed: 1, crashes: crashes.to_owned() }
    }

    #[test]
    fn a_clean_target_is_clean() {
        let folder = tempfile::tempdir().expect("a folder");
        search(|_| (), folder.path()).run(0, Duration::from_millis(50)).expect("clean");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn what_breaks_is_kept_and_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let function = |input: &[u8]| assert!(input.len() < 40, "too long");
        let failure = search(function, folder.path()).run(0, Duration::from_secs(20)).expect_err("broken").to_string();
        assert!(failure.contains("too long") && failure.contains("cargo xtask fuzz of-a-test --replay"), "{failure}");
        let file = failure.rsplit_once("--replay ").expect("a file").1;
        assert!(fs::read(file).expect("the input").len() >= 40);
    }

    #[test]
    fn inputs_begin_with_what_is_given() {
        let folder = tempfile::tempdir().expect("a folder");
        let function = |input: &[u8]| assert!(input.first().is_none_or(|&byte| byte == 7));
        let search = Search { first: Some(7), ..search(function, folder.path()) };
        search.run(0, Duration::from_millis(50)).expect("all of them");
    }

    #[test]
    fn an_input_can_be_made_without_those_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let function = |input: &[u8]| assert!(input.len() < 40);
        let number = |from| {
            let failure =
                search(function, folder.path()).run(from, Duration::from_secs(20)).expect_err("broken").to_string();
            failure.split_whitespace().nth(2).expect("a number").parse::<u64>().expect("a number")
        };
        let first = number(0);
        assert_eq!(number(first), first);
    }
}
