//! The directory of results: records, their plan, and pictures.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::StoreOf;
use crate::exit::Failure;
use crate::output::warn;

/// The plan of the results.
pub(crate) const PLAN: &str = "plan.toml";

/// Opens the records of a directory for appending.
pub(crate) fn open<R: Serialize + DeserializeOwned>(directory: &Path) -> Result<StoreOf<R>, Failure> {
    let store = StoreOf::open(directory)?;
    if store.cut() > 0 {
        warn("last record was incomplete: discarded, its case runs again");
    }
    Ok(store)
}

/// Copies a file into a directory, under the given name.
pub(crate) fn keep(file: &Path, directory: &Path, name: impl AsRef<Path>) -> Result<(), Failure> {
    let text = fs::read(file).map_err(Failure::at(file))?;
    let path = directory.join(name);
    if fs::read(&path).ok().as_ref() == Some(&text) {
        return Ok(());
    }
    write(&path, &text)
}

/// Writes a file atomically: on failure the previous one remains.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(Failure::at(directory))?;
    let written = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(directory)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.persist(path).map_err(|error| error.error)
        });
    written.map(drop).map_err(Failure::at(path))
}
