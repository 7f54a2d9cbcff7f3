//! `web`: the lab in a browser.
//!
//! One page, built into the program, without requests to other hosts. Each of its rooms is a module with routes of its
//! own and a script of the same name in `page/`; a `topic::Topic` has the updates of a room.

mod background;
mod connections;
mod demonstration;
mod experiment_index;
mod guard;
mod links;
mod live;
mod lock;
mod page;
mod refusal;
mod results;
mod testing;
mod topic;

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use axum::{Router, middleware};
use clap::Args;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;

use crate::exit::{Code, Failure};
use crate::output::{say, warn};
use crate::peers::{Downpour, Programs};
use crate::runner::StopFlag;
use demonstration::Demonstration;
pub use demonstration::demonstrate;
use experiment_index::ExperimentIndex;
use guard::Guard;
use live::Live;
use lock::MeasurementLock;
use testing::Testing;

/// Interval of checks for a stop.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// Show the lab in a browser
///
/// Serves a page on this machine and prints its address. Keep the address secret: anyone with it can start runs as you.
/// Stop with Ctrl-C.
#[derive(Args, Clone, Debug)]
pub struct WebArgs {
    /// Address and port to listen on; port 0: any free one
    ///
    /// Any other than a loopback address admits other hosts, and the traffic is not encrypted.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = listen_address)]
    listen: SocketAddr,
    /// Open the page in the browser of this desktop
    #[arg(long)]
    open: bool,
    /// Directory of stored experiments [default: experiments, if it exists]
    #[arg(long, value_name = "DIRECTORY")]
    experiments: Option<PathBuf>,
    /// Follow this trace of `downpour --qlog`, which may still grow; may be repeated
    #[arg(long, value_name = "FILE")]
    follow: Vec<PathBuf>,
    /// Exit at the end of stdin: for a program that starts this one
    #[arg(long, hide = true)]
    until_eof: bool,
}

fn listen_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:7777, [::1]:0 or 0.0.0.0:7777")
}

/// Serves the page until a stop is requested.
///
/// # Errors
/// An address that cannot be listened on.
pub fn run(args: &WebArgs, downpour: Downpour, stop: &StopFlag) -> Result<u8, Failure> {
    let testing = testing(args, downpour)?;
    let failed =
        |error: io::Error| Failure::new(Code::Other, format_args!("cannot listen on {}: {error}", args.listen));
    let live = Live::new(&args.follow).map_err(|error| Failure::new(Code::Usage, format_args!("--follow: {error}")))?;
    if args.until_eof {
        stop_at_eof(stop);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let guard = Guard::new(address).map_err(failed)?;
        // With --follow the page opens at Live.
        let room = if args.follow.is_empty() { "" } else { "#live" };
        let url = format!("{}{room}", guard.url());
        say(&format!("{url}\n"));
        if !address.ip().is_loopback() {
            warn("downpour-lab: warning: other hosts can reach this page, and the traffic is not encrypted");
        }
        let _door = args.open.then(|| open(&url));
        tokio::select! {
            never = connections::serve(listener, guarded(rooms(&testing, Arc::clone(&live)), guard)) => match never {},
            () = async {
                stopped(stop).await;
                if args.until_eof {
                    // The parent's transfer has ended: viewers get its last state.
                    live.finish().await;
                }
            } => {}
        }
        testing.end();
        Ok(Code::Done as u8)
    })
}

/// The room in which plans are run.
fn testing(args: &WebArgs, downpour: Downpour) -> Result<Arc<Testing>, Failure> {
    if let Some(directory) = args.experiments.as_ref().filter(|directory| !directory.is_dir()) {
        return Err(Failure::new(
            Code::Usage,
            format_args!("no directory {}: use another with --experiments", directory.display()),
        ));
    }
    let unknown =
        |error: io::Error| Failure::new(Code::Other, format_args!("cannot find the path of this program: {error}"));
    let program = std::env::current_exe().map_err(unknown)?;
    let programs = Programs::of_this(downpour).map_err(unknown)?;
    let experiments = Arc::new(ExperimentIndex::new(args.experiments.as_deref()));
    Ok(Testing::new(Arc::clone(&experiments), MeasurementLock::new(experiments), program, programs))
}

/// The page and its rooms.
fn rooms(testing: &Arc<Testing>, live: Arc<Live>) -> Router {
    page::routes()
        .merge(Demonstration::new(testing.measurement_lock()).routes())
        .merge(Arc::clone(testing).routes())
        .merge(live.routes())
        .merge(links::routes(testing.program()))
        .merge(results::routes(testing.experiments()))
}

/// Puts the rooms behind the secret, which is removed from the path of their requests.
fn guarded(rooms: Router, guard: Guard) -> Router {
    Router::new().fallback_service(rooms).layer(middleware::from_fn_with_state(guard, guard::check))
}

async fn stopped(stop: &StopFlag) {
    while !stop.is_set() {
        tokio::time::sleep(STOP_CHECK).await;
    }
}

/// Stops when the parent has exited, for any reason.
fn stop_at_eof(stop: &StopFlag) {
    let stop = stop.clone();
    thread::spawn(move || {
        // An error counts as the end.
        while io::stdin().read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
        stop.set();
    });
}

/// Locks a mutex, even if a thread panicked with it.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a browser, if this desktop has one. Its argument is a file that only this user can read and that redirects to
/// the page: other users can read arguments of programs, and the address is secret. The file is removed with the
/// returned value.
fn open(url: &str) -> Option<NamedTempFile> {
    let opened = redirect_file(url).and_then(|redirect_file| {
        let mut command = Command::new("xdg-open");
        command.arg(redirect_file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut opener = command.spawn()?;
        // Reaped in a thread, since it may run as long as the browser.
        thread::spawn(move || opener.wait());
        Ok(redirect_file)
    });
    opened.map_err(|error| warn(&format!("cannot open a browser (xdg-open: {error}): open the address above"))).ok()
}

/// Creates a file that redirects to an address.
fn redirect_file(url: &str) -> io::Result<NamedTempFile> {
    let mut redirect_file = tempfile::Builder::new().prefix("downpour-lab-").suffix(".html").tempfile()?;
    let title = "<!doctype html><title>downpour lab</title>";
    writeln!(
        redirect_file,
        "{title}<meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">downpour lab</a>"
    )?;
    Ok(redirect_file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::Path;
    use axum::routing::get;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;

    #[tokio::test]
    async fn rooms_need_the_secret_in_the_path() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let guard = Guard::new(address).expect("a secret");
        let url = guard.url();
        let number = get(|Path(number): Path<u32>| async move { number.to_string() });
        let rooms = page::routes().route("/room/{number}", number);
        tokio::spawn(async move { connections::serve(listener, guarded(rooms, guard)).await });
        let secret = url.strip_prefix(&format!("http://{address}")).expect("an address of this server");
        for (path, status, within) in [
            (secret.to_owned(), "200", "<!doctype html>"),
            (format!("{secret}style.css"), "200", ":root"),
            (format!("{secret}room/7?x=/1"), "200", "7"),
            (format!("{secret}nothing"), "404", ""),
            (secret.trim_end_matches('/').to_owned(), "404", ""),
            ("/style.css".to_owned(), "403", "secret"),
        ] {
            let mut stream = TcpStream::connect(address).await.expect("the server");
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("a request");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.expect("an answer");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(within), "{path}: {answer}");
        }
    }

    #[test]
    fn redirect_file_is_private() {
        let redirect_file = redirect_file("http://127.0.0.1:7000/5ecret/#live").expect("a file");
        assert!(!redirect_file.path().to_string_lossy().contains("5ecret"));
        assert_eq!(redirect_file.path().metadata().expect("it exists").permissions().mode() & 0o777, 0o600);
        let text = fs::read_to_string(redirect_file.path()).expect("it can be read");
        assert!(text.contains("content=\"0; url=http://127.0.0.1:7000/5ecret/#live\""), "{text}");
    }
}
