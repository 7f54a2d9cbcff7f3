//! Builds a checked plan from its text.

use std::collections::HashSet;
use std::path::{Component, Path};
use std::time::Duration;

use toml::Spanned;

use super::error::PlanFile;
use super::text::{PictureText, PlanText, SweepText, TopologyText, Values, WritesText};
use super::{
    Axis, Floor, LinkPlan, Overlays, Picture, PlacedLink, PlanError, Point, Quantity, Scale, Sweep, Writes, axis,
    is_name, link,
};

const CAP: Duration = Duration::from_secs(120);
const DEFAULT_RATE_SHARE: f64 = 0.95;
/// Limit on the number of writes of one run; more would be a mistake.
const MOST_WRITES: f64 = 1e6;
/// Limit on the number of cases; more would be a mistake.
const MOST_CASES: usize = 100_000;

/// Parses and checks a plan. Without `known` any peer is accepted.
pub(super) fn plan(file: &Path, text: &str, known: Option<&[String]>) -> Result<LinkPlan, PlanError> {
    let source = PlanFile { file, text };
    let mut written: PlanText = source.parse()?;
    let builder = Builder { source, known, are_writes: written.writes.is_some() };
    let name = builder.name(&written.name, "rc-udp/fig10")?;
    let peers = builder.peers(&written.peers)?;
    let base = Base {
        link: &written.link,
        size: &written.size,
        peers: &peers,
        repeats: builder.repeats(written.repeats.as_ref())?.unwrap_or(1),
        cap: builder.cap(written.cap.as_ref())?.unwrap_or(CAP),
        x_scale: written.picture.x_scale,
        title: &written.title,
    };
    builder.size(base.size)?;
    builder.link(base.link)?;
    let sweeps = match written.ranges.take() {
        Some(ranges) if !written.sweep.is_empty() => {
            let message = "[ranges] and [[sweep]] exclude each other: remove one";
            return Err(source.error(Some(ranges.span()), message));
        }
        Some(ranges) => {
            let span = ranges.span();
            builder.product(&base, ranges.into_inner().all(), written.picture.x.as_ref(), span)?
        }
        None => builder.sweeps(&base, &written.sweep, written.picture.x.as_ref())?,
    };
    let writes = written.writes.as_ref().map(|writes| builder.writes(writes, &sweeps)).transpose()?;
    let picture = builder.picture(&written.picture, writes.as_ref())?;
    let overlays = Overlays {
        source,
        sweeps: sweeps.iter().map(|sweep| sweep.name.as_str()).collect(),
        series: sweeps.iter().flat_map(|sweep| &sweep.peers).map(String::as_str).collect(),
    };
    let published = overlays.published(&written.published, |sweep, x| place(&sweeps[sweep], base.link.get_ref(), x))?;
    let lines = overlays.lines(&written.line)?;
    let plan = LinkPlan {
        title: written.title.clone(),
        claims: std::mem::take(&mut written.claim),
        published,
        lines,
        seeds: builder.seeds(written.seeds.as_ref())?,
        warm_up: written.warm_up.unwrap_or(1),
        fast: written.fast,
        shuffle: written.shuffle,
        rate_share: builder.rate_share(written.rate_share.as_ref())?,
        topology: written.topology.as_ref().map(|topology| builder.topology(topology)).transpose()?,
        file: file.to_owned(),
        name,
        sweeps,
        peers,
        writes,
        picture,
    };
    builder.drawable(&plan)?;
    Ok(plan)
}

/// The starting point of sweeps.
struct Base<'a> {
    link: &'a Spanned<String>,
    size: &'a Spanned<String>,
    peers: &'a [String],
    repeats: u32,
    cap: Duration,
    x_scale: Scale,
    title: &'a str,
}

struct Builder<'a> {
    source: PlanFile<'a>,
    known: Option<&'a [String]>,
    /// Whether the work is small writes and not a file.
    are_writes: bool,
}

impl Builder<'_> {
    fn refuse<T>(&self, at: &Spanned<T>, message: impl Into<String>) -> PlanError {
        self.source.error(Some(at.span()), message)
    }

    fn name(&self, name: &Spanned<String>, example: &str) -> Result<String, PlanError> {
        if is_name(name.get_ref()) {
            return Ok(name.get_ref().clone());
        }
        let message =
            format!("invalid name {:?}: use lower-case letters, digits and -, such as {example}", name.get_ref());
        Err(self.refuse(name, message))
    }

    fn peers(&self, peers: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<String>, PlanError> {
        let names = self.values(peers, "peers")?;
        for name in names {
            let (Some(known), peer) = (self.known, name.get_ref()) else { continue };
            if let Err(error) = crate::peers::choices(peer) {
                return Err(self.refuse(name, error.to_string()));
            }
            if !known.iter().any(|known| Some(known.as_str()) == peer.split(' ').next()) {
                let message = format!("unknown peer {peer:?}: one of {}", known.join(", "));
                return Err(self.refuse(name, message));
            }
            if self.are_writes && crate::peers::named(peer).is_ok_and(|peer| !peer.carries_connections()) {
                let message =
                    format!("{peer} moves files only: small writes need peers that carry connections, such as tunnel");
                return Err(self.refuse(name, message));
            }
        }
        Ok(names.iter().map(|name| name.get_ref().clone()).collect())
    }

    /// Checks that a range is not empty and has no duplicates.
    fn values<'v>(&self, values: &'v Values, key: &str) -> Result<&'v [Spanned<String>], PlanError> {
        let mut seen = HashSet::new();
        let all = values.get_ref();
        if all.is_empty() {
            return Err(self.refuse(values, format!("{key} is empty: add at least one value")));
        }
        match all.iter().find(|value| !seen.insert(value.get_ref())) {
            Some(twice) => Err(self.refuse(twice, format!("duplicate value {:?} in {key}", twice.get_ref()))),
            None => Ok(all),
        }
    }

    fn link(&self, text: &Spanned<String>) -> Result<(), PlanError> {
        link::with(text.get_ref(), "").map(drop).map_err(|error| self.refuse(text, error.to_string()))
    }

    fn size(&self, text: &Spanned<String>) -> Result<u64, PlanError> {
        axis::bytes(text.get_ref()).map_err(|error| self.refuse(text, error.to_string()))
    }

    fn cap(&self, text: Option<&Spanned<String>>) -> Result<Option<Duration>, PlanError> {
        let Some(text) = text else { return Ok(None) };
        match axis::time("cap", text.get_ref()) {
            Ok(cap) if !cap.is_zero() => Ok(Some(cap)),
            Ok(_) => Err(self.refuse(text, "cap is 0: write the time limit of a run, such as 120s")),
            Err(error) => Err(self.refuse(text, error.to_string())),
        }
    }

    fn repeats(&self, repeats: Option<&Spanned<u32>>) -> Result<Option<u32>, PlanError> {
        match repeats {
            Some(none) if *none.get_ref() == 0 => Err(self.refuse(none, "repeats is 0: write at least 1")),
            repeats => Ok(repeats.map(|repeats| *repeats.get_ref())),
        }
    }

    fn seeds(&self, seeds: Option<&Spanned<Vec<u64>>>) -> Result<Vec<u64>, PlanError> {
        let Some(seeds) = seeds else { return Ok(Vec::new()) };
        let mut seen = HashSet::new();
        match seeds.get_ref().iter().find(|seed| !seen.insert(**seed)) {
            Some(twice) => Err(self.refuse(seeds, format!("duplicate value {twice} in seeds"))),
            None if seen.is_empty() => Err(self.refuse(seeds, "seeds is empty: add at least one value")),
            None => Ok(seeds.get_ref().clone()),
        }
    }

    fn rate_share(&self, share: Option<&Spanned<String>>) -> Result<f64, PlanError> {
        let Some(share) = share else { return Ok(DEFAULT_RATE_SHARE) };
        match axis::share("told", share.get_ref()) {
            Ok(share) if share > 0.0 => Ok(share),
            _ => Err(self.refuse(
                share,
                format!("told is {:?}: write a share of the link's rate, such as 95%", share.get_ref()),
            )),
        }
    }

    fn topology(&self, written: &Spanned<TopologyText>) -> Result<PlacedLink, PlanError> {
        let TopologyText { file, between, pair } = written.get_ref();
        // The file is stored with the results under the same name.
        if !Path::new(file).components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(self.refuse(written, format!("topology {file} must be in the directory of the plan")));
        }
        let path = self.source.file.parent().unwrap_or(Path::new("")).join(file);
        let text = std::fs::read(&path)
            .map_err(|error| self.refuse(written, format!("cannot read topology {}: {error}", path.display())))?;
        let digest = blake3::hash(&text).to_hex().to_string();
        Ok(PlacedLink { file: path, digest, between: between.clone(), pair: pair.clone() })
    }

    fn writes(&self, written: &WritesText, sweeps: &[Sweep]) -> Result<Writes, PlanError> {
        let time = |key: &str, text: &Spanned<String>| match axis::time(key, text.get_ref()) {
            Ok(time) if !time.is_zero() => Ok(time),
            Ok(_) => Err(self.refuse(text, format!("{key} is 0: write a time such as 200ms"))),
            Err(error) => Err(self.refuse(text, error.to_string())),
        };
        let (every, duration) = (time("every", &written.every)?, time("for", &written.duration)?);
        if duration.as_secs_f64() / every.as_secs_f64() > MOST_WRITES {
            return Err(self.refuse(&written.every, format!("more than {MOST_WRITES} writes: use a longer interval")));
        }
        if let Some(sweep) = sweeps.iter().find(|sweep| sweep.cap <= duration) {
            let message = format!("the cap of {} ends before the last write: use a longer one", sweep.name);
            return Err(self.refuse(&written.duration, message));
        }
        let beside = written.beside.as_ref().map(|text| match self.size(text) {
            Ok(0) => Err(self.refuse(text, "beside is 0: write a size such as 100MB, or omit it")),
            size => size,
        });
        Ok(Writes {
            every_seconds: every.as_secs_f64(),
            poisson: written.poisson,
            seconds: duration.as_secs_f64(),
            echo: written.echo,
            beside: beside.transpose()?,
        })
    }

    /// Returns the drawn quantity: by default the delay of writes, or the time of files.
    fn drawn(&self, y: Option<&Spanned<Quantity>>, writes: Option<&Writes>) -> Result<Quantity, PlanError> {
        let Some(y) = y else { return Ok(if writes.is_some() { Quantity::DelayP99 } else { Quantity::Seconds }) };
        let of_writes: Vec<Quantity> = writes.map_or_else(Vec::new, |writes| {
            let is_known = |quantity: &Quantity| *quantity != Quantity::Upload || writes.beside.is_some();
            Quantity::OF_WRITES.into_iter().filter(is_known).collect()
        });
        let all = if writes.is_some() { of_writes } else { vec![Quantity::Seconds, Quantity::Goodput] };
        if all.contains(y.get_ref()) {
            return Ok(*y.get_ref());
        }
        let names: Vec<_> = all.into_iter().map(Quantity::name).collect();
        let message = format!("{} is not available for these runs: one of {}", y.get_ref().name(), names.join(", "));
        Err(self.refuse(y, message))
    }

    fn picture(&self, written: &PictureText, writes: Option<&Writes>) -> Result<Picture, PlanError> {
        let round_trips = match &written.floor_round_trips {
            None => 1.0,
            Some(number) if (0.0..100.0).contains(number.get_ref()) => *number.get_ref(),
            Some(number) => return Err(self.refuse(number, "floor-round-trips: write a number such as 1.5")),
        };
        Ok(Picture {
            y: self.drawn(written.y.as_ref(), writes)?,
            y_scale: written.y_scale,
            spread: written.spread,
            // Writes have no floor.
            floor: (written.floor.unwrap_or(true) && writes.is_none()).then_some(Floor { round_trips }),
        })
    }

    /// Checks that a logarithmic axis has only values that it can show.
    fn drawable(&self, plan: &LinkPlan) -> Result<(), PlanError> {
        let cases: usize =
            plan.sweeps.iter().map(|sweep| sweep.points.len() * sweep.peers.len() * sweep.repeats as usize).sum();
        if cases.saturating_mul(plan.seeds.len().max(1)) > MOST_CASES {
            return Err(self.source.error(None, format!("more than {MOST_CASES} cases: use fewer values or repeats")));
        }
        for sweep in plan.sweeps.iter().filter(|sweep| sweep.scale == Scale::Log) {
            if sweep.points.iter().any(|point| point.x <= 0.0) {
                let (key, name) = (sweep.axis.name(), &sweep.name);
                let message = format!(
                    "{key} is 0 in {name}, which cannot be shown on a logarithmic axis: use scale = \"linear\""
                );
                return Err(self.source.error(None, message));
            }
        }
        Ok(())
    }

    fn sweeps(
        &self,
        base: &Base<'_>,
        written: &[Spanned<SweepText>],
        x: Option<&Spanned<Axis>>,
    ) -> Result<Vec<Sweep>, PlanError> {
        if let Some(x) = x {
            return Err(self.refuse(x, "x needs [ranges]: the axis of a [[sweep]] is its own quantity"));
        }
        if written.is_empty() {
            return Err(self.source.error(None, "no sweep: add [ranges] or a [[sweep]]"));
        }
        let mut sweeps: Vec<Sweep> = Vec::new();
        for text in written {
            let sweep = self.sweep(base, text.get_ref())?;
            if sweeps.iter().any(|other| other.name == sweep.name) {
                let message = format!("duplicate sweep name {:?}: rename one", sweep.name);
                return Err(self.refuse(&text.get_ref().name, message));
            }
            let same =
                |other: &&Sweep| (other.axis, &other.points, &other.peers) == (sweep.axis, &sweep.points, &sweep.peers);
            if let Some(same) = sweeps.iter().find(same) {
                let message = format!("sweep {:?} equals sweep {:?}: remove one", sweep.name, same.name);
                return Err(self.refuse(&text.get_ref().name, message));
            }
            sweeps.push(sweep);
        }
        Ok(sweeps)
    }

    fn sweep(&self, base: &Base<'_>, written: &SweepText) -> Result<Sweep, PlanError> {
        let name = self.name(&written.name, "loss")?;
        let link = written.link.as_ref().unwrap_or(base.link);
        self.link(link)?;
        let size = self.size(written.size.as_ref().unwrap_or(base.size))?;
        let peers = match &written.peers {
            Some(peers) => self.peers(peers)?,
            None => base.peers.to_vec(),
        };
        Ok(Sweep {
            title: written.title.clone().unwrap_or_else(|| base.title.to_owned()),
            axis: written.vary,
            scale: written.scale.unwrap_or(base.x_scale),
            points: self.points(written.vary, link.get_ref(), size, &written.values)?,
            peers,
            repeats: self.repeats(written.repeats.as_ref())?.unwrap_or(base.repeats),
            cap: self.cap(written.cap.as_ref())?.unwrap_or(base.cap),
            name,
        })
    }

    fn points(&self, axis: Axis, link: &str, size: u64, values: &Values) -> Result<Vec<Point>, PlanError> {
        let values = self.values(values, axis.name())?;
        let mut points = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            let text = value.get_ref();
            let varied = axis.vary(link, size, text).map_err(|error| self.refuse(value, error.to_string()))?;
            let x = match axis.coordinate(&varied.link.duplex, varied.size) {
                Some(x) => x,
                None if axis == Axis::Link => index as f64,
                None => {
                    let message = format!("{}={text} has no effect on this link: write another value", axis.name());
                    return Err(self.refuse(value, message));
                }
            };
            if varied.size == 0 {
                return Err(self.refuse(value, "size is 0: write a size such as 10MB"));
            }
            let label = if text.is_empty() { "as it is".to_owned() } else { text.clone() };
            points.push(Point { label, x, link: varied.link, size: varied.size });
        }
        Ok(points)
    }

    /// Returns one sweep along `x` for each combination of the other ranges.
    fn product(
        &self,
        base: &Base<'_>,
        ranges: Vec<(Axis, Values)>,
        x: Option<&Spanned<Axis>>,
        span: std::ops::Range<usize>,
    ) -> Result<Vec<Sweep>, PlanError> {
        let axis = match (x, &ranges[..]) {
            (_, []) => return Err(self.source.error(Some(span), "ranges is empty: add at least one range")),
            (Some(x), _) => *x.get_ref(),
            (None, [(only, _)]) => *only,
            (None, _) => {
                let axes: Vec<_> = ranges.iter().map(|(axis, _)| axis.name()).collect();
                let message = format!("several ranges: write x = \"{}\" under [picture] to select the axis", axes[0]);
                return Err(self.source.error(Some(span), message));
            }
        };
        let Some(along) = ranges.iter().position(|(other, _)| *other == axis) else {
            let message = format!("x is {}, which has no range: add one under [ranges]", axis.name());
            return Err(self.source.error(Some(span), message));
        };
        let mut combinations = vec![Combination::of(base.link.get_ref(), self.size(base.size)?)];
        for (other, values) in ranges.iter().enumerate().filter(|(index, _)| *index != along).map(|(_, range)| range) {
            let mut next = Vec::new();
            for value in self.values(values, other.name())? {
                for combination in &combinations {
                    next.push(combination.with(*other, value.get_ref()).map_err(|error| self.refuse(value, error))?);
                }
            }
            combinations = next;
        }
        let sweep = |combination: &Combination| {
            let Combination { link, size, values } = combination;
            Ok(Sweep {
                name: std::iter::once(axis.name().to_owned())
                    .chain(values.iter().map(|value| slug(value)))
                    .collect::<Vec<_>>()
                    .join("-"),
                title: std::iter::once(base.title.to_owned())
                    .chain(values.iter().cloned())
                    .collect::<Vec<_>>()
                    .join(", "),
                axis,
                scale: base.x_scale,
                points: self.points(axis, link, *size, &ranges[along].1)?,
                peers: base.peers.to_vec(),
                repeats: base.repeats,
                cap: base.cap,
            })
        };
        combinations.iter().map(sweep).collect()
    }
}

/// Returns the position of a value on the axis of a sweep, which need not be one of its points.
fn place(sweep: &Sweep, base: &str, x: &str) -> Result<f64, String> {
    if let Some(point) = sweep.points.iter().find(|point| point.label == x) {
        return Ok(point.x);
    }
    let varied = sweep.axis.vary(base, 1, x).ok();
    let found = varied.and_then(|varied| sweep.axis.coordinate(&varied.link.duplex, varied.size));
    found.ok_or_else(|| format!("invalid value {x:?} of {}", sweep.axis.name()))
}

/// One value of each range except that of the axis.
struct Combination {
    link: String,
    size: u64,
    values: Vec<String>,
}

impl Combination {
    fn of(link: &str, size: u64) -> Self {
        Self { link: link.to_owned(), size, values: Vec::new() }
    }

    fn with(&self, axis: Axis, value: &str) -> Result<Self, String> {
        let varied = axis.vary(&self.link, self.size, value).map_err(|error| error.to_string())?;
        let words = if axis == Axis::Link { value.to_owned() } else { format!("{} {value}", axis.name()) };
        let values = self.values.iter().cloned().chain([words]).collect();
        Ok(Self { link: varied.link.text, size: varied.size, values })
    }
}

/// Converts words to a part of a file name.
fn slug(words: &str) -> String {
    let good = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    words.chars().map(good).collect::<String>().trim_matches('-').to_owned()
}
