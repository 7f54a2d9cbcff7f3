//! A plan with `flow`s, which are simulated or emulated.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::places::{coordinates, number};
use super::record::Ids;
use super::scenario::{FlowText, Scenario, Text};
use super::text::{PlanText, SeriesText, SweepText};
use super::{SimCase, SimQuantity};
use crate::plan::{
    Claim, Overlays, PlanError, PlanFile, Published, ReferenceCurve, Scale, Spread, is_name, parse_time, read_text,
};

/// A plan with flows that share a link, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct SimPlan {
    /// Its name, as in `downpour-lab reproduce NAME`.
    pub name: String,
    /// Description of the measurement in one line.
    pub title: String,
    /// The document's claims.
    pub claims: Vec<Claim>,
    /// The network and its traffic, before anything is varied.
    pub base: Scenario,
    /// The lines of each picture.
    pub series: Vec<Series>,
    /// The sweeps, each around the base.
    pub sweeps: Vec<SimSweep>,
    /// Published values, drawn over the measurements.
    pub published: Vec<Published>,
    /// Lines to compare them with.
    pub lines: Vec<ReferenceCurve>,
    /// Seeds, with each of which every point is run once.
    pub seeds: Vec<u64>,
    /// Time after which a run is stopped, virtual time in the simulator.
    pub cap: Duration,
    /// Length of the spans for which the arriving bytes are stored.
    pub span: Duration,
    /// The file it was read from.
    pub file: PathBuf,
}

/// One line of a picture: values that differ from the base.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Values by their paths, in the order in which they are applied.
    pub set: Vec<(String, String)>,
}

/// One axis, varied around the base.
#[derive(Clone, Debug, PartialEq)]
pub struct SimSweep {
    /// Its name: that of the picture's file.
    pub name: String,
    /// The varied quantity.
    pub vary: Vary,
    /// The values; one without a value if time is the axis.
    pub points: Vec<SimPoint>,
    /// Its drawing.
    pub picture: SimPicture,
}

/// The quantity that a sweep varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vary {
    /// The value at a path.
    Path(String),
    /// Nothing: arrivals are drawn over time.
    Time,
}

/// The drawing of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SimPicture {
    /// Title of the picture.
    pub title: String,
    /// Title of the horizontal axis, with its unit.
    pub x: String,
    /// The scale of that axis.
    pub x_scale: Scale,
    /// The quantity on the vertical axis.
    pub y: SimQuantity,
    /// The scale of that axis.
    pub y_scale: Scale,
    /// The meaning of the error bars.
    pub spread: Spread,
    /// The indices of the shown flows.
    pub flows: Vec<usize>,
    /// Whether the values are labels of their positions, unless the plan gives positions.
    pub is_ticked: bool,
    /// Whether the values are names, one after the other, and not numbers.
    pub is_named: bool,
    /// The index of the series by whose median a series of [`SimQuantity::Harm`] is divided.
    pub against: Option<usize>,
    /// Whether the caption has the line through the origin nearest to each series.
    pub fit: bool,
}

/// One value of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SimPoint {
    /// As the plan writes it.
    pub label: String,
    /// Its position on the axis.
    pub x: f64,
    /// The scenario of each series.
    pub scenarios: Vec<Scenario>,
}

impl SimPlan {
    /// Reads the plan of a file that has `flow`s; `None` for another kind.
    ///
    /// # Errors
    /// One line with the file, the line in it, the error, and advice.
    pub fn read(file: &Path) -> Result<Option<Self>, PlanError> {
        Self::parse(file, &read_text(file)?)
    }

    /// Parses a plan from the text of its file; see [`SimPlan::read`].
    ///
    /// # Errors
    /// Those of [`SimPlan::read`].
    pub fn parse(file: &Path, text: &str) -> Result<Option<Self>, PlanError> {
        let source = PlanFile { file, text };
        if !source.has("flow") {
            return Ok(None);
        }
        let written: PlanText = source.parse()?;
        let refuse = |message: String| PlanError::new(file, None, message);
        let mut plan = Self::without_sweeps(file, &written).map_err(refuse)?;
        for text in &written.sweep {
            let sweep = plan.sweep(text.get_ref(), &written);
            let sweep = sweep.map_err(|message| source.error(Some(text.span()), message))?;
            plan.sweeps.push(sweep);
        }
        if plan.sweeps.is_empty() {
            return Err(refuse("no sweep: add a [[sweep]]".to_owned()));
        }
        plan.overlay(source, &written)?;
        if written.picture.against.is_some() && plan.sweeps.iter().all(|sweep| sweep.picture.against.is_none()) {
            return Err(refuse("against needs y = \"harm\": omit it, or change y".to_owned()));
        }
        Ok(Some(plan))
    }

    fn without_sweeps(file: &Path, written: &PlanText) -> Result<Self, String> {
        let PlanText { name, title, claim, link, topology, access, flow, background, series, warm_up, .. } = written;
        if !is_name(name) {
            return Err(format!("invalid name {name:?}: use lower-case letters, digits, - and /, such as arq/fig6"));
        }
        let repeats = || u64::from(written.repeats.unwrap_or(1));
        let seeds = written.seeds.clone().unwrap_or_else(|| (1..=repeats()).collect());
        if seeds.is_empty() || (1..seeds.len()).any(|at| seeds[..at].contains(&seeds[at])) {
            return Err("seeds need at least one value, and no duplicates".to_owned());
        }
        let time = |key: &str, text: &str| match parse_time(key, text) {
            Ok(time) if !time.is_zero() => Ok(time),
            Ok(_) => Err(format!("{key} is 0: write a time such as 120s")),
            Err(error) => Err(error.to_string()),
        };
        let mut base = Scenario {
            link: link.clone(),
            topology: topology.clone(),
            access: access.clone(),
            flows: flow.clone(),
            background: background.clone(),
            warm_up: warm_up.clone(),
        };
        base.load(file)?;
        let named = |text: &SeriesText| Series { name: text.name.clone(), set: ordered(&text.set) };
        let mut series: Vec<Series> = series.iter().map(named).collect();
        if series.is_empty() {
            let first = base.flows.first().ok_or("no flows: add a [[flow]]")?;
            let name = first.profile.clone().or_else(|| first.peer_name()).unwrap_or_default();
            series.push(Series { name, set: Vec::new() });
        }
        let plan = Self {
            name: name.clone(),
            title: title.clone(),
            claims: claim.clone(),
            base,
            series,
            sweeps: Vec::new(),
            published: Vec::new(),
            lines: Vec::new(),
            seeds,
            cap: time("cap", &written.cap)?,
            span: time("span", written.span.as_deref().unwrap_or("1s"))?,
            file: file.to_owned(),
        };
        plan.check(&plan.base)?;
        Ok(plan)
    }

    /// Reads the overlays of the measurements. A published claim in words is a claim like others.
    fn overlay(&mut self, source: PlanFile<'_>, written: &PlanText) -> Result<(), PlanError> {
        let overlays = Overlays {
            source,
            sweeps: self.sweeps.iter().map(|sweep| sweep.name.as_str()).collect(),
            series: self.series.iter().map(|series| series.name.as_str()).collect(),
        };
        let published = overlays.published(&written.published, |sweep, x| self.sweeps[sweep].place(x))?;
        let lines = overlays.lines(&written.line)?;
        self.claims.extend(published.iter().filter_map(Published::claim));
        (self.published, self.lines) = (published, lines);
        Ok(())
    }

    fn check(&self, scenario: &Scenario) -> Result<(), String> {
        match scenario.is_emulated() {
            true => scenario.programs(self.cap).map(drop),
            false => scenario.case(self.seeds[0], self.span, self.cap).map(drop),
        }
    }

    fn sweep(&self, text: &SweepText, plan: &PlanText) -> Result<SimSweep, String> {
        let SweepText { name, title, vary, values, at, fit, x, scale, y, flows, set } = text;
        if !is_name(name) || name.contains('/') || self.sweeps.iter().any(|other| other.name == *name) {
            return Err(format!("invalid or duplicate name {name:?}: use lower-case letters, digits and -"));
        }
        let place = |name: &String| {
            let found = self.base.flows.iter().position(|flow| flow.name == *name);
            found.ok_or_else(|| format!("unknown flow {name:?} in flows"))
        };
        let flows: Vec<usize> = match flows {
            Some(names) => names.iter().map(place).collect::<Result<_, _>>()?,
            None => (0..self.base.flows.len()).collect(),
        };
        let (vary, values) = match (vary.as_str(), &values[..]) {
            ("time", []) => (Vary::Time, vec![None]),
            ("time", _) => return Err("vary = \"time\" has no values: omit them".to_owned()),
            (_, []) => return Err("values is empty: add at least one value".to_owned()),
            (path, values) => {
                (Vary::Path(path.to_owned()), values.iter().map(|value| Some(value.0.as_str())).collect())
            }
        };
        let y = y.unwrap_or(plan.picture.y);
        self.check_quantity(y, &vary)?;
        let named = |name: &String| {
            let found = self.series.iter().position(|series| series.name == *name);
            found.ok_or_else(|| format!("unknown series {name:?} in against"))
        };
        let against = match (y, &plan.picture.against) {
            (SimQuantity::Harm, Some(name)) => Some(named(name)?),
            (SimQuantity::Harm, None) => {
                return Err("harm is relative to a series: add against = \"NAME\" under [picture]".to_owned());
            }
            _ => None,
        };
        let (places, unit) = match at {
            Some(places) if places.len() == values.len() && vary != Vary::Time => (places.clone(), ""),
            Some(places) => return Err(format!("at has {} positions for {} values", places.len(), values.len())),
            None => coordinates(&values)?,
        };
        if *scale == Scale::Log && places.iter().any(|x| *x <= 0.0) {
            return Err("0 cannot be shown on a logarithmic axis: use scale = \"linear\"".to_owned());
        }
        let title_x = match (&vary, x) {
            (_, Some(title)) if title.to_lowercase().contains(&unit.to_lowercase()) => title.clone(),
            (_, Some(title)) => format!("{title}, {unit}"),
            (Vary::Time, None) => "Time, s".to_owned(),
            (Vary::Path(path), None) if unit.is_empty() => path.clone(),
            (Vary::Path(path), None) => format!("{path}, {unit}"),
        };
        let mut points = Vec::new();
        for (value, x) in values.iter().zip(places) {
            let scenarios = self.series.iter().map(|series| self.at(series, set, &vary, *value));
            let label = value.unwrap_or_default().to_owned();
            points.push(SimPoint { label, x, scenarios: scenarios.collect::<Result<_, _>>()? });
        }
        if y == SimQuantity::Harm && vary != Vary::Time {
            let shown = points
                .iter()
                .flat_map(|point| &point.scenarios)
                .flat_map(|at| flows.iter().map(|&flow| &at.flows[flow]));
            if let Some(FlowText { name, .. }) = shown.into_iter().find(|flow| flow.size.is_none()) {
                return Err(format!("harm needs flows with a size: give {name} one, or select other flows"));
            }
        }
        let picture = SimPicture {
            title: title.clone().unwrap_or_else(|| self.title.clone()),
            x: title_x,
            x_scale: *scale,
            y,
            y_scale: plan.picture.y_scale,
            spread: plan.picture.spread,
            flows,
            is_ticked: at.is_none() && vary != Vary::Time,
            is_named: at.is_none()
                && vary != Vary::Time
                && values.iter().flatten().any(|value| number(value).is_none()),
            against,
            fit: *fit,
        };
        Ok(SimSweep { name: name.clone(), vary, points, picture })
    }

    /// Checks that a quantity can be drawn over the varied one.
    fn check_quantity(&self, y: SimQuantity, vary: &Vary) -> Result<(), String> {
        if y.is_of_time() && *vary != Vary::Time {
            return Err("rates are drawn over time: use vary = \"time\", or another y".to_owned());
        }
        if y == SimQuantity::QueueDelay && !self.base.is_emulated() {
            return Err("queue-delay is for real programs only: use another y".to_owned());
        }
        if y.is_of_engine() && self.base.is_emulated() {
            return Err("y is not available for real programs: use another, such as goodput".to_owned());
        }
        Ok(())
    }

    /// Returns the scenario of a series at a value of a sweep.
    fn at(
        &self,
        series: &Series,
        of_sweep: &BTreeMap<String, Text>,
        vary: &Vary,
        value: Option<&str>,
    ) -> Result<Scenario, String> {
        let mut scenario = self.base.clone();
        for (path, value) in ordered(of_sweep).iter().chain(&series.set) {
            scenario.put(path, value)?;
        }
        if let (Vary::Path(path), Some(value)) = (vary, value) {
            scenario.put(path, value)?;
        }
        scenario.load(&self.file)?;
        self.check(&scenario)?;
        Ok(scenario)
    }

    /// Returns the files with topologies beside that of the plan, each once.
    pub fn topology_files(&self) -> Vec<PathBuf> {
        let scenarios = self.sweeps.iter().flat_map(|sweep| &sweep.points).flat_map(|point| &point.scenarios);
        let texts = scenarios.filter_map(|scenario| scenario.topology.as_ref());
        let files = texts.filter_map(|text| text.path(&self.file).ok().flatten());
        files.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Iterates over the cases of one series at one point, one for each seed.
    pub fn cases_at<'a>(
        &'a self,
        sweep: &'a SimSweep,
        point: &'a SimPoint,
        series: usize,
    ) -> impl Iterator<Item = SimCase> + 'a {
        self.seeds.iter().map(move |seed| SimCase {
            experiment: self.name.clone(),
            sweep: sweep.name.clone(),
            series: self.series[series].name.clone(),
            point: point.label.clone(),
            scenario: point.scenarios[series].clone(),
            seed: *seed,
            span_seconds: self.span.as_secs_f64(),
            cap_seconds: self.cap.as_secs_f64(),
        })
    }

    /// Iterates over the ids of these cases.
    pub(crate) fn ids_at(&self, point: &SimPoint, series: usize) -> impl Iterator<Item = String> {
        let ids = Ids::of(&point.scenarios[series], self.span.as_secs_f64(), self.cap.as_secs_f64());
        self.seeds.iter().map(move |seed| ids.of_seed(*seed))
    }

    /// Returns the ids of all cases.
    pub(crate) fn ids(&self) -> HashSet<String> {
        let points = self.sweeps.iter().flat_map(|sweep| &sweep.points);
        points.flat_map(|point| (0..self.series.len()).flat_map(move |series| self.ids_at(point, series))).collect()
    }

    /// Returns every case once, in the order of the plan. Sweeps that share a point share its cases, which belong to
    /// the first sweep.
    pub fn cases(&self) -> Vec<SimCase> {
        let mut seen = HashSet::new();
        let points = self.sweeps.iter().flat_map(|sweep| sweep.points.iter().map(move |point| (sweep, point)));
        let cases = points.flat_map(|(sweep, point)| {
            (0..self.series.len()).flat_map(move |series| self.cases_at(sweep, point, series))
        });
        cases.filter(|case| seen.insert(case.id())).collect()
    }
}

impl SimSweep {
    /// Returns the position of a value on the axis, which need not be one of its points.
    fn place(&self, text: &str) -> Result<f64, String> {
        if let Some(point) = self.points.iter().find(|point| point.label == text) {
            return Ok(point.x);
        }
        let unit = match (&self.vary, self.picture.is_ticked) {
            (Vary::Time, _) => Some("ms"),
            (_, true) => self.points.first().and_then(|point| number(&point.label)).map(|(_, unit)| unit),
            (_, false) => Some(""),
        };
        match number(text).filter(|(_, other)| Some(*other) == unit) {
            // The axis of time has seconds.
            Some((x, _)) if self.vary == Vary::Time => Ok(x / 1e3),
            Some((x, _)) => Ok(x),
            None => Err(format!("{text:?} is not on the axis of {}: write a value in its unit", self.name)),
        }
    }
}

/// Orders choices: a profile or peer before its choices, and a choice before its numbers.
fn ordered(set: &BTreeMap<String, Text>) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = set.iter().map(|(path, value)| (path.clone(), value.0.clone())).collect();
    all.sort_by_key(|(path, _)| (!path.ends_with(".profile") && !path.ends_with(".peer"), path.len()));
    all
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::plan::PublishedPoint;

    pub(in super::super) const PLAN: &str = r#"
        name = "paper/fig6"
        title = "Two flows"
        link = "rate=10M,delay=2ms,queue-packets=20"
        access = "rate=100M,delay=2ms"
        repeats = 2
        cap = "60s"
        [[flow]]
        name = "near"
        profile = "arq"
        size = "500KB"
        [[flow]]
        name = "far"
        profile = "arq"
        size = "500KB"
        [[background]]
        name = "cbr"
        rate = "1M"
        [[series]]
        name = "cubic"
        [[series]]
        name = "told"
        set = { "far.congestion.rate" = "2M", "far.congestion" = "fixed-rate:1M", "far.profile" = "auto" }
        [picture]
        y = "jain"
        [[sweep]]
        name = "delay"
        vary = "far.receiver.delay"
        values = ["0ms", "20ms"]
        [[sweep]]
        name = "time"
        vary = "time"
        flows = ["far"]
        [[published]]
        sweep = "delay"
        label = "Theirs"
        section = "figure 6"
        claim = "It sinks."
        of = "told"
        times = 2.0
        points = [{ x = "5ms", y = 0.4, error = 0.1 }]
        [[line]]
        label = "half"
        y = 0.5
        sweep = "time"
    "#;

    pub(in super::super) fn plan() -> SimPlan {
        SimPlan::parse(Path::new("plan.toml"), PLAN).expect("it makes sense").expect("it has flows")
    }

    #[test]
    fn plan_becomes_cases() {
        let plan = plan();
        let [delay, time] = &plan.sweeps[..] else { panic!("two sweeps") };
        assert_eq!(delay.points.iter().map(|point| point.x).collect::<Vec<_>>(), [0.0, 20.0]);
        assert_eq!((delay.picture.x.as_str(), delay.picture.y), ("far.receiver.delay, ms", SimQuantity::Jain));
        assert_eq!((time.vary.clone(), time.points.len(), &time.picture.flows), (Vary::Time, 1, &vec![1]));
        assert_eq!(delay.points[1].scenarios[0].flows[1].receiver.0, "delay=20ms");
        let far = &delay.points[1].scenarios[1].flows[1];
        assert_eq!((far.profile.as_deref(), far.set["congestion.rate"].0.as_str()), (Some("auto"), "2M"));
        let [published] = &plan.published[..] else { panic!("one series") };
        assert_eq!(published.points, [PublishedPoint { x: 5.0, y: 0.8, error: Some(0.2) }]);
        assert_eq!((published.sweep.as_str(), published.of.as_deref()), ("delay", Some("told")));
        assert_eq!(plan.claims.last().map(|claim| claim.text.as_str()), Some("It sinks."));
        assert_eq!((plan.lines[0].at(3.0), plan.lines[0].sweep.as_deref()), (0.5, Some("time")));
        assert_eq!(time.place("1500ms"), Ok(1.5));
        // Two values and none, two series, two seeds.
        let cases = plan.cases();
        assert_eq!(cases.len(), 3 * 2 * 2);
        let ids: std::collections::BTreeSet<String> = cases.iter().map(SimCase::id).collect();
        assert_eq!(ids.len(), cases.len());
    }

    #[test]
    fn plan_of_flows_error_names_line() {
        let parse = |text: &str| SimPlan::parse(Path::new("plan.toml"), text);
        assert_eq!(parse("name = \"x\"\npeers = []"), Ok(None));
        for (from, to, said) in [
            ("\"0ms\", \"20ms\"", "\"0ms\", \"2%\"", "plan.toml:26: values with units \"%\" and \"ms\": use one unit"),
            ("\"20ms\"]", "\"soon\"]", "plan.toml:26: far: cannot read delay=soon"),
            ("\"far.receiver.delay\"", "\"farther.size\"", "plan.toml:26: unknown path \"farther.size\""),
            ("[\"0ms\", \"20ms\"]", "[]", "plan.toml:26: values is empty: add at least one value"),
            ("\"20ms\"]", "\"20ms\"]\nat = [1.0]", "plan.toml:26: at has 1 positions for 2 values"),
            ("repeats = 2", "repeats = 0", "plan.toml: seeds need at least one value"),
            ("cap = \"60s\"", "cap = \"0s\"", "plan.toml: cap is 0: write a time such as 120s"),
            ("y = \"jain\"", "y = \"sending-rate\"", "plan.toml:26: rates are drawn over time"),
            ("[\"far\"]", "[\"absent\"]", "plan.toml:30: unknown flow \"absent\" in flows"),
            ("rate=10M", "rate=0", "plan.toml: link: rate is 0"),
            ("title =", "subtitle =", "plan.toml:3: unknown field `subtitle`"),
            ("x = \"5ms\"", "x = \"5%\"", "plan.toml:41: \"5%\" is not on the axis of delay"),
            (
                "of = \"told\"",
                "of = \"tolled\"",
                "plan.toml:39: unknown series \"tolled\": write of = one of cubic, told",
            ),
            (
                "sweep = \"time\"",
                "sweep = \"thyme\"",
                "plan.toml:45: unknown sweep \"thyme\": write sweep = one of delay, time",
            ),
            ("y = 0.5", "power = 0.5", "plan.toml:42: a line has either y, or factor and power"),
        ] {
            assert!(PLAN.contains(from), "{from}");
            let refused = parse(&PLAN.replace(from, to)).expect_err(to).to_string();
            assert!(refused.starts_with(said), "{refused}");
        }
    }
}
