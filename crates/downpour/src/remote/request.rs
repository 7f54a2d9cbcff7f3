//! The request to the remote downpour: one frame on its standard input, a 4-byte length followed by JSON.
//!
//! Releases must understand the requests of earlier ones: fields are only added, with a default that gives old requests
//! their meaning and is not written. A field that this release does not know is refused by its name, since the sender
//! of the request relies on it.

use std::io::Read;
use std::time::Duration;

use net::{Bind, EndpointOptions, Family};
use serde::de::DeserializeSeed as _;
use serde::{Deserialize, Serialize};
use transport::Profile;
use transport::profile::AlgorithmRegistry;

use super::via::{CarrierChoice, PathOptions};
use crate::base64::Bytes;
use crate::error::Error;
use crate::files::permitted::has_wildcards;
use crate::files::{ReceiveRequest, SourceOptions};
use crate::options::EngineOptions;
use crate::tunnel::ForwardAddress;

mod bounds;

pub(super) use bounds::Bounds;

/// Version of the layout. A request of another version is refused with an error line.
const VERSION: u32 = 1;

/// Maximum number of unknown fields in an error, and of bytes of each: a restricted key may belong to anybody.
const MOST_UNKNOWN: usize = 8;
const LONGEST_UNKNOWN: usize = 64;

/// A task for the remote host and its options. [`PathOptions`] and [`EngineOptions`] are written out field by field, as
/// every release has done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<P = Profile> {
    version: u32,
    pub(super) task: RemoteTask,
    pub(super) via: CarrierChoice,
    family: Family,
    /// UDP ports that may be used, first and last.
    ports: Option<(u16, u16)>,
    profile: P,
    dead_after: Duration,
    /// Bytes that the remote host may buffer; an older release keeps its own bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_memory: Option<u64>,
    /// Whether the path cache is neither read nor written.
    #[serde(rename = "forgets", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ignores_path_cache: bool,
}

/// A task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RemoteTask {
    /// Send files of the remote host.
    Send {
        sources: Vec<Bytes>,
        scan: SourceOptions,
        /// Whether a directory means its contents.
        compared: bool,
        dry_run: bool,
    },
    /// Send files of the remote host to a third one.
    Forward {
        sources: Vec<Bytes>,
        scan: SourceOptions,
        compared: bool,
        dry_run: bool,
        /// The direct path to it; without one, the datagrams use the pipes to the requesting host.
        onward: Option<Box<Onward>>,
    },
    /// Receive.
    Receive(Box<ReceiveRequest>),
    /// Run a command whose input is a stream.
    Pipe { command: String },
    /// Be the remote side of a tunnel, which also listens at these addresses.
    Tunnel { listen: Vec<ForwardAddress> },
    /// Answer a doctor's probes, and report the properties of this host.
    Examine {
        /// The directory whose disk is measured; the home if there is none.
        #[serde(rename = "folder")]
        directory: Option<Bytes>,
    },
}

impl RemoteTask {
    /// Returns whether it may send the matches of wildcards.
    pub(super) fn has_wildcards(&self) -> bool {
        match self {
            Self::Send { sources, .. } | Self::Forward { sources, .. } => {
                sources.iter().any(|source| has_wildcards(&source.0))
            }
            Self::Receive(_) | Self::Pipe { .. } | Self::Tunnel { .. } | Self::Examine { .. } => false,
        }
    }
}

/// The receiver of [`RemoteTask::Forward`] and its request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Onward {
    /// `[user@]host`.
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// [`ReceiveRequest::requested`] is left to the sender, which has the sources.
    pub(super) receive: ReceiveRequest,
    pub(super) keeps_names: bool,
    /// [`super::SshOptions::remote_program`].
    pub(super) program: Option<String>,
    pub(super) retry_for: Option<Duration>,
}

impl Request {
    pub(super) fn new(task: RemoteTask, path: &PathOptions, engine: &EngineOptions) -> Self {
        let PathOptions { via, family, ports } = path;
        let EngineOptions { profile, endpoint: EndpointOptions { dead_after, max_memory, .. } } = engine;
        Self {
            version: VERSION,
            task,
            via: *via,
            family: *family,
            ports: ports.as_ref().map(|range| (*range.start(), *range.end())),
            profile: profile.clone(),
            dead_after: *dead_after,
            max_memory: *max_memory,
            ignores_path_cache: false,
        }
    }

    /// Limits the memory of the endpoint to the default bound: the request is from a restricted key.
    pub(super) fn limit_memory(&mut self) {
        self.max_memory = self.max_memory.map(|bound| bound.min(net::default_memory()));
    }

    /// Returns the sending profile and the limits of the endpoint.
    pub(super) fn engine(&self) -> EngineOptions {
        let endpoint = EndpointOptions::new(self.dead_after).max_memory(self.max_memory);
        EngineOptions { profile: self.profile.clone(), endpoint }
    }

    /// Returns the allowed paths of the data.
    pub(super) fn path(&self) -> PathOptions {
        let ports = self.ports.map(|(first, last)| first..=last);
        PathOptions { via: self.via, family: self.family, ports }
    }

    /// Returns the local address for the remote host's UDP socket.
    pub(super) fn bind(&self) -> Bind {
        let ports = self.ports.map_or(0..=0, |(first, last)| first..=last);
        Bind::Ports { family: self.family, ports }
    }

    /// Encodes the request as a frame.
    pub(super) fn to_frame(&self) -> Result<Vec<u8>, Error> {
        let text = serde_json::to_vec(self).map_err(|_| Error::Internal("request cannot be encoded"))?;
        Bounds::OF_USER.check(&text)?;
        let length = u32::try_from(text.len()).map_err(|_| Error::Internal("request too long"))?;
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend(text);
        Ok(frame)
    }

    /// Reads one request within these bounds, and nothing beyond it.
    pub(super) fn read(input: &mut impl Read, names: &AlgorithmRegistry, bounds: Bounds) -> Result<Self, Error> {
        /// The part of a request that stays the same in all versions.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let failed = |error: std::io::Error| Error::Ssh(format!("no request on stdin: {error}"));
        let mut length = [0; 4];
        input.read_exact(&mut length).map_err(failed)?;
        let length = u32::from_be_bytes(length);
        if length > Bounds::OF_USER.length {
            return Err(Error::Ssh("no request on stdin: this command is started by downpour, not by hand".into()));
        }
        bounds.check_length(length.into())?;
        let mut text = Vec::new();
        input.take(length.into()).read_to_end(&mut text).map_err(failed)?;
        bounds.check(&text)?;
        let unreadable = |error| Error::Ssh(format!("unreadable request: {error}"));
        let Head { version } = serde_json::from_slice(&text).map_err(unreadable)?;
        if version != VERSION {
            return Err(Error::VersionMismatch);
        }
        let mut unknown = Vec::new();
        let mut input = serde_json::Deserializer::from_slice(&text);
        let request: Request<serde_json::Value> = serde_ignored::deserialize(&mut input, |path| {
            if unknown.len() < MOST_UNKNOWN {
                let path = path.to_string();
                unknown.push(path.rsplit('.').next().unwrap_or(&path).chars().take(LONGEST_UNKNOWN).collect());
            }
        })
        .map_err(unreadable)?;
        input.end().map_err(unreadable)?;
        if !unknown.is_empty() {
            return Err(Error::UnknownFields(unknown));
        }
        // The requesting program may have controllers of its own.
        let profile = names
            .deserialize(request.profile)
            .map_err(|error| Error::Ssh(format!("unknown profile setting in this downpour: {error}")))?;
        let Request { version, task, via, family, ports, dead_after, max_memory, ignores_path_cache, .. } = request;
        Ok(Self { version, task, via, family, ports, profile, dead_after, max_memory, ignores_path_cache })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Compare, Existing, Filter, Modes, RequestedItems};

    fn frame(text: &str) -> Vec<u8> {
        [&u32::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn request_unknown_controller_named_in_one_line() {
        let task = RemoteTask::Pipe { command: "true".into() };
        let request = Request::new(task, &PathOptions::default(), &engine(None));
        let text = String::from_utf8(request.to_frame().unwrap()[4..].to_vec()).unwrap();
        assert!(Request::read(&mut &frame(&text)[..], &systems::registry(), Bounds::OF_USER).is_ok());
        let theirs = text.replace(r#""name":"auto""#, r#""name":"auto","congestion":"theirs:beta=0.8""#);
        assert_ne!(theirs, text);
        let message =
            Request::read(&mut &frame(&theirs)[..], &systems::registry(), Bounds::OF_USER).unwrap_err().to_string();
        let wanted =
            "unknown profile setting in this downpour: congestion=theirs:beta=0.8: unknown congestion control 'theirs'";
        assert!(message.starts_with(wanted) && message.lines().count() == 1, "{message}");
    }

    fn engine(max_memory: Option<u64>) -> EngineOptions {
        let mut engine = EngineOptions::default();
        engine.endpoint.max_memory = max_memory;
        engine
    }

    #[test]
    fn restricted_key_cannot_raise_max_memory() {
        let asked = |bound| {
            let task = RemoteTask::Pipe { command: "true".into() };
            let mut request = Request::new(task, &PathOptions::default(), &engine(bound));
            request.limit_memory();
            request.engine().endpoint.max_memory
        };
        assert_eq!(asked(Some(u64::MAX)), Some(net::default_memory()));
        assert_eq!(asked(Some(1)), Some(1), "less is allowed");
        assert_eq!(asked(None), None);
    }

    #[test]
    fn request_max_memory_sent_only_if_set() {
        for bound in [None, Some(64_000_000)] {
            let task = RemoteTask::Pipe { command: "true".into() };
            let request = Request::new(task, &PathOptions::default(), &engine(bound));
            let frame = request.to_frame().unwrap();
            let text = str::from_utf8(&frame[4..]).unwrap();
            assert_eq!(text.contains(r#""max_memory":64000000"#), bound.is_some(), "{text}");
            assert_eq!(text.contains("max_memory"), bound.is_some(), "earlier releases do not know the field");
            let read = Request::read(&mut &frame[..], &systems::registry(), Bounds::OF_USER).unwrap();
            assert_eq!(read.engine().endpoint, engine(bound).endpoint);
        }
    }

    #[test]
    fn fields_of_a_later_release_are_refused_by_name() {
        let receive = RemoteTask::Receive(Box::new(ReceiveRequest::to_target("to")));
        let send =
            RemoteTask::Send { sources: Vec::new(), scan: SourceOptions::default(), compared: false, dry_run: true };
        for (task, field) in [
            (receive, r#""existing":"#),
            (send, r#""recursive":"#),
            (RemoteTask::Pipe { command: "true".into() }, r#""family":"#),
        ] {
            let request = Request::new(task, &PathOptions::default(), &engine(None));
            let text = String::from_utf8(request.to_frame().unwrap()[4..].to_vec()).unwrap();
            let later = text.replace(field, &format!(r#""max_size":1000,{field}"#));
            assert_ne!(later, text);
            let read = Request::read(&mut &frame(&later)[..], &systems::registry(), Bounds::OF_USER);
            assert!(
                matches!(&read, Err(Error::UnknownFields(names)) if names[..] == ["max_size"]),
                "{later}: {read:?}"
            );
            let long = format!(r#""{}":0,"#, "x".repeat(1000));
            let many: String = (0..100).map(|number| format!(r#""{number}{}"#, &long[1..])).collect();
            let hostile = text.replace(field, &format!("{many}{field}"));
            let read = Request::read(&mut &frame(&hostile)[..], &systems::registry(), Bounds::LIMITED);
            assert!(read.unwrap_err().to_string().len() < 700, "an answer is short");
        }
    }

    /// Requests as release 0.1 wrote them, one per line.
    const RECORDED: &str = include_str!("request/recorded.jsonl");

    fn spec(target: &str, requested: RequestedItems) -> ReceiveRequest {
        ReceiveRequest { existing: Existing::Replace, requested, ..ReceiveRequest::to_target(target) }
    }

    /// Asserts that the request is written as in `recorded`, where the profile had its unchanged choices, too.
    fn assert_written_as(request: &Request, recorded: &str) {
        let mut recorded: serde_json::Value = serde_json::from_str(recorded).unwrap();
        let written: serde_json::Value = serde_json::from_slice(&request.to_frame().unwrap()[4..]).unwrap();
        for (key, value) in written["profile"].as_object().unwrap() {
            assert_eq!(*value, recorded["profile"][key], "{key}");
        }
        recorded["profile"] = written["profile"].clone();
        assert_eq!(written, recorded);
    }

    #[test]
    fn requests_are_those_of_the_release_before_in_both_directions() {
        let items = |name: &str| Some(vec![name.as_bytes().to_vec()]);
        let rules = b"- *.tmp\n+ keep/\n";
        let several = RequestedItems { many: true, ..RequestedItems::default() };
        let contents = RequestedItems { contents: true, ..several.clone() };
        let wanted = [
            // cp src/f host:~/to
            spec("~/to", RequestedItems { items: items("f"), ..RequestedItems::default() }),
            // sync src/tree host:backup --delete --exclude '*.tmp' --include keep/ --checksum
            ReceiveRequest {
                compare: Compare::Checksum,
                modes: Modes::Exact,
                delete: Some(Filter::parse(rules).unwrap()),
                ..spec("backup", RequestedItems { items: items("tree"), ..several })
            },
            // cp -r src/tree/ src/f host:dir/ --existing skip -n
            ReceiveRequest { existing: Existing::Skip, dry_run: true, ..spec("dir/", contents.clone()) },
            // cp src/tree host:x --files-from list --existing refuse
            ReceiveRequest { existing: Existing::Refuse, ..spec("x", RequestedItems::default()) },
            // verify src/tree host:x
            ReceiveRequest {
                compare: Compare::Checksum,
                modes: Modes::Exact,
                delete: Some(Filter::default()),
                compare_trees: true,
                dry_run: true,
                ..spec("x", contents)
            },
        ];
        assert_eq!(RECORDED.lines().count(), wanted.len() + 1);
        for (recorded, wanted) in RECORDED.lines().zip(wanted) {
            let request = Request::read(&mut &frame(recorded)[..], &systems::registry(), Bounds::OF_USER).unwrap();
            let RemoteTask::Receive(found) = &request.task else { panic!("{recorded}") };
            assert_eq!(**found, wanted);
            assert_written_as(&request, recorded);
        }
        // cp 'host:a*' here
        let last = RECORDED.lines().last().unwrap();
        let request = Request::read(&mut &frame(last)[..], &systems::registry(), Bounds::OF_USER).unwrap();
        assert!(matches!(&request.task, RemoteTask::Send { sources, .. } if sources == &[Bytes(b"a*".to_vec())]));
        assert_written_as(&request, last);
    }
}
