//! The plans and results that the page may open, by name.
//!
//! A name from a browser is only compared with those of a list on the server, and never used as a path.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::Serialize;
use tokio::sync::Semaphore;

use super::background::in_background;
use super::lock;
use super::refusal::Refusal;
use crate::results::{PLAN, has_records};
use crate::tables::ResultsReader;

/// The first part of the names in the two directories.
const EXPERIMENTS: &str = "experiments";
const RESULTS: &str = "lab-results";
/// The depth of the search in directories, and the most inspected files.
const DEPTH: usize = 5;
const MOST_FILES: usize = 10_000;
/// The most directories with records in memory.
const MOST_READ: usize = 6;
/// The most parallel requests that read directories.
const AT_ONCE: usize = 2;

/// The directory of experiments, if there is one, and the directory for results.
#[derive(Debug)]
pub(super) struct ExperimentIndex {
    experiments: Option<PathBuf>,
    results: PathBuf,
    /// The experiments read last, by name; the most recent at the end.
    read: Mutex<Vec<(String, SharedReading)>>,
    permits: Semaphore,
}

/// A directory's plan and records, shared by viewers.
pub(super) type SharedReading = Arc<Mutex<ResultsReader>>;

/// A plan with its results, if it has any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Experiment {
    /// `experiments/arq/fig3`, `lab-results/my/first`.
    pub(super) name: String,
    /// The plan: that of the results, if there are any.
    pub(super) plan: PathBuf,
    /// The plan for another run.
    pub(super) source: PathBuf,
    /// The directory with results.
    pub(super) directory: PathBuf,
    pub(super) has_results: bool,
}

impl Experiment {
    /// Returns whether its results are in the directory for results, where a run can resume.
    pub(super) fn is_own(&self) -> bool {
        self.name.starts_with(&format!("{RESULTS}/"))
    }

    /// Returns the command that runs the case with this line again. It uses another directory, since a case with a
    /// valid run is not repeated in its own.
    pub(super) fn command(&self, label: &str) -> String {
        let out = if self.is_own() { " --out again" } else { "" };
        format!("downpour-lab run {} --only {}{out}", quoted(&self.source.display().to_string()), quoted(label))
    }
}

/// Returns a word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A network of several links for plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TopologyFile {
    /// `experiments/rc-udp/esnet.toml`.
    pub(super) name: String,
    /// Its name in plans of the same directory.
    pub(super) file: String,
    pub(super) hosts: Vec<String>,
    /// The ends of its links.
    pub(super) links: Vec<[String; 2]>,
    /// The hosts that communicate.
    pub(super) pairs: Vec<[String; 2]>,
    #[serde(skip)]
    pub(super) path: PathBuf,
}

impl ExperimentIndex {
    /// Creates the index. The default directory of experiments is `experiments`, if it exists.
    pub(super) fn new(experiments: Option<&Path>) -> Self {
        let default = || Some(PathBuf::from(EXPERIMENTS)).filter(|directory| directory.is_dir());
        Self::of(experiments.map(Path::to_owned).or_else(default), PathBuf::from(crate::commands::RESULTS))
    }

    pub(super) fn of(experiments: Option<PathBuf>, results: PathBuf) -> Self {
        Self { experiments, results, read: Mutex::default(), permits: Semaphore::new(AT_ONCE) }
    }

    /// Returns the directory in which runs put their results.
    pub(super) fn results(&self) -> &Path {
        &self.results
    }

    /// Returns whether a path, with links resolved, is of a file in one of the directories.
    pub(super) fn has(&self, file: &Path) -> bool {
        let Ok(file) = file.canonicalize() else { return false };
        let is_in = |root: &Path| root.canonicalize().is_ok_and(|root| file.starts_with(root));
        file.is_file() && self.roots().any(|(_, root)| is_in(root))
    }

    /// Returns a description of the directories.
    pub(super) fn places(&self) -> String {
        self.roots().map(|(_, root)| root.display().to_string()).collect::<Vec<_>>().join(" or ")
    }

    /// Returns the directory for the results of a plan of this name, which must be valid.
    pub(super) fn directory(&self, plan: &str) -> PathBuf {
        self.results.join(plan)
    }

    /// Returns the name of these results in the index.
    pub(super) fn name(plan: &str) -> String {
        format!("{RESULTS}/{plan}")
    }

    /// Lists all experiments, ordered by name.
    pub(super) fn list(&self) -> Vec<Experiment> {
        let mut list: BTreeMap<String, Experiment> = BTreeMap::new();
        for (first, root) in self.roots() {
            for file in files(root) {
                if let Some(experiment) = experiment(first, root, &file) {
                    // Results have precedence over the plan of the same name.
                    match list.get(&experiment.name) {
                        Some(other) if other.has_results => {}
                        _ => drop(list.insert(experiment.name.clone(), experiment)),
                    }
                }
            }
        }
        list.into_values().collect()
    }

    /// Returns the experiment with this name.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(&self, name: &str) -> Result<Experiment, Refusal> {
        let found = self.list().into_iter().find(|experiment| experiment.name == name);
        found.ok_or_else(|| {
            Refusal::unknown(format!("unknown plan {name:?}: it may have been removed; reload the page"))
        })
    }

    /// Lists the files with topologies.
    pub(super) fn topologies(&self) -> Vec<TopologyFile> {
        let all = self.roots().flat_map(|(first, root)| files(root).into_iter().map(move |file| (first, root, file)));
        all.filter_map(|(first, root, file)| topology(first, root, &file)).collect()
    }

    fn roots(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let experiments = self.experiments.as_deref().map(|directory| (EXPERIMENTS, directory));
        experiments.into_iter().chain([(RESULTS, self.results.as_path())])
    }

    /// Returns the current plan and records of an experiment.
    ///
    /// # Errors
    /// They cannot be read.
    pub(super) fn read(&self, experiment: &Experiment) -> Result<SharedReading, Refusal> {
        let known =
            self.kept().iter().find(|(name, _)| *name == experiment.name).map(|(_, reading)| Arc::clone(reading));
        let reading = match known {
            // Another file may have become the plan of that name.
            Some(reading) if lock(&reading).plan() == experiment.plan => reading,
            _ => {
                let read = ResultsReader::open(&experiment.plan, &experiment.directory)
                    .map_err(|failure| Refusal::failed(failure.message))?;
                Arc::new(Mutex::new(read))
            }
        };
        lock(&reading).refresh().map_err(|failure| Refusal::failed(failure.message))?;
        let mut kept = self.kept();
        kept.retain(|(name, _)| *name != experiment.name);
        kept.push((experiment.name.clone(), Arc::clone(&reading)));
        let old = kept.len().saturating_sub(MOST_READ);
        kept.drain(..old);
        Ok(reading)
    }

    fn kept(&self) -> MutexGuard<'_, Vec<(String, SharedReading)>> {
        lock(&self.read)
    }

    /// Does work that reads files, draws or computes on background threads, a bounded number at a time.
    ///
    /// # Errors
    /// Those of the work.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let _permit = self.permits.acquire().await;
        in_background(work).await
    }
}

/// Lists the files of a directory that could be plans or topologies, in order. Symbolic links to other directories are
/// not followed.
fn files(root: &Path) -> Vec<PathBuf> {
    fn walk(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
        let mut entries: Vec<_> = fs::read_dir(directory).into_iter().flatten().flatten().collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            if found.len() >= MOST_FILES {
                return;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth > 0 => walk(&entry.path(), depth - 1, found),
                Ok(kind) if kind.is_file() && entry.path().extension().is_some_and(|end| end == "toml") => {
                    found.push(entry.path());
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    walk(root, DEPTH, &mut found);
    found
}

/// Returns a file's path relative to a directory.
fn below<'a>(root: &Path, file: &'a Path) -> Option<&'a str> {
    file.strip_prefix(root).ok()?.to_str()
}

fn experiment(first: &str, root: &Path, file: &Path) -> Option<Experiment> {
    let name = |path: &Path| Some(format!("{first}/{}", below(root, path)?));
    match file.file_name()?.to_str()? {
        crate::claims::FILE => None,
        PLAN if file.parent() != Some(root) => {
            let directory = file.parent()?.to_owned();
            let beside = directory.with_extension("toml");
            let source = if beside.is_file() { beside } else { file.to_owned() };
            let has_results = has_records(&directory);
            Some(Experiment { name: name(&directory)?, plan: file.to_owned(), source, directory, has_results })
        }
        _ => {
            let directory = file.with_extension("");
            // The plan of results is the one in their directory.
            let (plan, source) = (file.to_owned(), file.to_owned());
            Some(Experiment { name: name(&directory)?, plan, source, directory, has_results: false })
                .filter(|_| is_plan(file))
        }
    }
}

/// Returns whether a file has the keys that all plans have.
fn is_plan(file: &Path) -> bool {
    let table = fs::read_to_string(file).ok().and_then(|text| text.parse::<toml::Table>().ok());
    table.is_some_and(|table| table.contains_key("name") && table.contains_key("title"))
}

fn topology(first: &str, root: &Path, file: &Path) -> Option<TopologyFile> {
    #[derive(serde::Deserialize)]
    struct Text {
        #[serde(default)]
        hosts: Vec<String>,
        links: Vec<LinkJson>,
        #[serde(default)]
        pairs: Vec<Pair>,
    }
    #[derive(serde::Deserialize)]
    struct LinkJson {
        between: [String; 2],
    }
    #[derive(serde::Deserialize)]
    struct Pair {
        from: String,
        to: String,
    }
    let text: Text = toml::from_str(&fs::read_to_string(file).ok()?).ok()?;
    Some(TopologyFile {
        name: format!("{first}/{}", below(root, file)?),
        file: file.file_name()?.to_str()?.to_owned(),
        hosts: text.hosts,
        links: text.links.into_iter().map(|link| link.between).collect(),
        pairs: text.pairs.into_iter().map(|pair| [pair.from, pair.to]).collect(),
        path: file.to_owned(),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::results::write;

    const PLAN_TEXT: &str = "name = \"arq/fig3\"\ntitle = \"T\"\n";

    #[test]
    fn find_accepts_listed_names_only() {
        let home = tempfile::tempdir().expect("a directory");
        let put = |path: &str, text: &str| write(&home.path().join(path), text.as_bytes()).expect("written");
        for path in ["experiments/arq/fig3.toml", "experiments/arq/fig3/plan.toml", "experiments/arq/fig4.toml"] {
            put(path, PLAN_TEXT);
        }
        put("experiments/arq/fig3/results.jsonl", "");
        put("experiments/arq/fig3/verdict.toml", PLAN_TEXT);
        put("experiments/arq/net.toml", "links = [{ between = [\"a\", \"b\"] }]\n");
        put("results/my/plan.toml", PLAN_TEXT);
        put("secret/plan.toml", PLAN_TEXT);
        put("secret.toml", PLAN_TEXT);
        std::os::unix::fs::symlink(home.path(), home.path().join("experiments/loop")).expect("a link");
        let experiments = ExperimentIndex::of(Some(home.path().join("experiments")), home.path().join("results"));
        let list: Vec<(String, bool)> =
            experiments.list().into_iter().map(|experiment| (experiment.name, experiment.has_results)).collect();
        let names = ["experiments/arq/fig3", "experiments/arq/fig4", "lab-results/my"].map(str::to_owned);
        assert_eq!(list, names.into_iter().zip([true, false, false]).collect::<Vec<_>>());
        for name in [
            "experiments/../secret",
            "../secret",
            "secret",
            "lab-results/../secret",
            "lab-results/./my",
            "lab-results/my/",
            "lab-results//my",
            "experiments/loop/secret",
            "experiments/arq/fig3/plan.toml",
            "",
            "/",
            "lab-results/my\0",
        ] {
            assert!(experiments.find(name).is_err(), "{name:?}");
        }
        let found = experiments.find("experiments/arq/fig3").expect("it exists");
        assert!(found.plan.ends_with("fig3/plan.toml") && found.source.ends_with("arq/fig3.toml"), "{found:?}");
        let topologies: Vec<String> = experiments.topologies().into_iter().map(|file| file.name).collect();
        assert_eq!(topologies, ["experiments/arq/net.toml"]);
    }

    #[test]
    fn command_is_quoted_for_a_shell() {
        let experiment = |name: &str| Experiment {
            name: name.into(),
            plan: "p".into(),
            source: "experiments/arq/fig 3.toml".into(),
            directory: "f".into(),
            has_results: true,
        };
        assert_eq!(
            experiment("experiments/x").command("a/b it's 5% seed 1"),
            r"downpour-lab run 'experiments/arq/fig 3.toml' --only 'a/b it'\''s 5% seed 1'"
        );
        assert!(experiment("lab-results/x").command("a").ends_with(" --only a --out again"));
    }
}
