//! Passages of documents whose numbers come from results, by the same expressions as verdicts.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Data, FILE, file, filled, plain};
use crate::exit::{Code, Failure};
use crate::tables::Measured;

/// The file, in the directory of all experiments.
const PASSAGES: &str = "passages.toml";

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PassagesText {
    passage: Vec<PassageText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PassageText {
    /// The document, by its path in the repository.
    document: PathBuf,
    /// The results whose numbers it has, such as `auto/untold`.
    results: PathBuf,
    text: String,
}

/// Returns the document and the text of each passage. `measured` reads the results of a directory.
pub(crate) fn passages(
    experiments: &Path,
    measured: impl Fn(&Path) -> Result<Measured, Failure>,
) -> Result<Vec<(PathBuf, String)>, Failure> {
    let path = experiments.join(PASSAGES);
    let read = fs::read_to_string(&path).map_err(Failure::at(&path))?;
    let failed = |error: String| Failure::new(Code::Usage, format_args!("{}: {error}", path.display()));
    let PassagesText { passage } = toml::from_str(&read).map_err(|error| failed(error.to_string()))?;
    let text = |passage: PassageText| -> Result<(PathBuf, String), Failure> {
        let directory = experiments.join(&passage.results);
        let names = file(&directory.join(FILE))?.unwrap_or_default().names;
        let measured = measured(&directory)?;
        let text = filled(passage.text.trim(), &Data { measured: &measured, names: &names }).map_err(failed)?;
        Ok((passage.document, plain(&text)))
    };
    passage.into_iter().map(text).collect()
}
