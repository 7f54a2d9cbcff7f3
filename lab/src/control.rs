//! Communication of commands on the hosts with the surrounding lab: through a socket whose path is in their
//! environment.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::thread;

use crate::emulator::EmulatorHandle;

/// The environment variable with the path of the socket.
pub const VARIABLE: &str = "LAB_CONTROL";

const ON: &[u8] = b"impair on";
const OFF: &[u8] = b"impair off";

/// Listens in `directory` for commands to an emulator, for the lifetime of the process; returns the path of the socket.
///
/// # Errors
/// A socket that cannot be created.
pub fn listen(directory: &Path, control: EmulatorHandle) -> io::Result<PathBuf> {
    let path = directory.join("control");
    let socket = UnixDatagram::bind(&path)?;
    thread::Builder::new().name("control".to_owned()).spawn(move || {
        let mut buffer = [0; 64];
        while let Ok((length, sender)) = socket.recv_from(&mut buffer) {
            match &buffer[..length] {
                ON => control.set_impaired(true),
                OFF => control.set_impaired(false),
                _ => continue,
            }
            // The sender may not wait for the answer.
            let _ = sender.as_pathname().map(|sender| socket.send_to(b"done", sender));
        }
    })?;
    Ok(path)
}

/// Switches the impairments of the lab in which this process runs, and waits until that is done.
///
/// # Errors
/// No lab, or one that does not answer.
pub fn set_impaired(impaired: bool) -> io::Result<()> {
    let path = std::env::var_os(VARIABLE).ok_or_else(|| io::Error::other(format!("{VARIABLE} is not set")))?;
    let directory = tempfile::tempdir()?;
    let socket = UnixDatagram::bind(directory.path().join("answer"))?;
    socket.set_read_timeout(Some(std::time::Duration::from_secs(5)))?;
    socket.send_to(if impaired { ON } else { OFF }, Path::new(&path))?;
    socket.recv(&mut [0; 8])?;
    Ok(())
}
