//! The permission to make namespaces.

use std::time::{Duration, Instant};
use std::{fs, io, thread};

use crate::sys::namespaces;

/// The kernel denies namespaces to this user.
#[derive(Debug, thiserror::Error)]
#[error("cannot create network namespaces as {user} ({reason}): {remedy}")]
pub struct NamespacesDenied {
    user: &'static str,
    reason: io::Error,
    remedy: &'static str,
}

const THREAD_GONE_WITHIN: Duration = Duration::from_millis(200);

/// Switches that deny user namespaces to ordinary users: the location of each, the denying value, and the command to
/// change it.
const SWITCHES: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "run it as root, or allow them to all users: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "run it as root, or allow them to all users: sudo sysctl kernel.unprivileged_userns_clone=1",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "run it as root, or allow them to all users: sudo sysctl user.max_user_namespaces=15000",
    ),
];

/// Ensures that this process may make namespaces. An ordinary user gets a user namespace, in which the user's own files
/// belong to root.
///
/// Call it before anything else: a process with a second thread gets no user namespace.
///
/// # Errors
/// A kernel that denies it, with the setting to change.
pub fn acquire() -> Result<(), NamespacesDenied> {
    if may_make_networks() {
        return Ok(());
    }
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    user_namespace()
        .and_then(|()| {
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
            fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
        })
        .and_then(|()| if may_make_networks() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) })
        .map_err(|reason| {
            if user.is_root() {
                let remedy = "in a container, start it with --cap-add=SYS_ADMIN --cap-add=NET_ADMIN --security-opt seccomp=unconfined";
                return NamespacesDenied { user: "root", reason, remedy };
            }
            let is_set = |&&(path, value, _): &&(&str, &str, &str)| {
                fs::read_to_string(path).is_ok_and(|text| text.trim() == value)
            };
            let remedy = SWITCHES.iter().find(is_set).map_or("run it as root", |(_, _, remedy)| remedy);
            NamespacesDenied { user: "an ordinary user", reason, remedy }
        })
}

/// Enters a user namespace. An ended thread counts for a moment longer, hence the retries.
fn user_namespace() -> io::Result<()> {
    let start = Instant::now();
    loop {
        match namespaces::new_user_namespace() {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput && start.elapsed() < THREAD_GONE_WITHIN => {
                thread::yield_now();
            }
            result => return result,
        }
    }
}

/// Tested on a temporary thread.
fn may_make_networks() -> bool {
    thread::spawn(|| namespaces::new_network().is_ok()).join().unwrap_or(false)
}
