//! A plan with `codes`, which are timed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use erasure::BlockCode;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::plan::{
    Claim, LineText, Overlays, PlanError, PlanFile, Published, PublishedText, ReferenceCurve, Scale, Spread, is_name,
    parse_bytes, parse_share, parse_time, read_text,
};

/// A plan that times codes, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct CodePlan {
    /// Its name, as in `downpour-lab reproduce NAME`.
    pub name: String,
    /// Description of the measurement in one line.
    pub title: String,
    /// The document's claims.
    pub claims: Vec<Claim>,
    /// The sweeps, each around its base.
    pub sweeps: Vec<CodeSweep>,
    /// Every code, in the order of the legend.
    pub codes: Vec<BlockCode>,
    /// Published values, drawn over the measurements.
    pub published: Vec<Published>,
    /// Lines to compare them with.
    pub lines: Vec<ReferenceCurve>,
    /// Seed of contents and drops.
    pub seed: u64,
    /// The quantity on the vertical axis.
    pub y: CodeQuantity,
    /// The scale of that axis.
    pub y_scale: Scale,
    /// The meaning of the error bars.
    pub spread: Spread,
    /// The file it was read from.
    pub file: PathBuf,
}

/// One axis, varied around a base.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeSweep {
    /// Its name: that of the picture's file.
    pub name: String,
    /// Title of the picture.
    pub title: String,
    /// The timed half of the codes.
    pub measured: Measured,
    /// The varied quantity.
    pub vary: Vary,
    /// The scale of the axis.
    pub scale: Scale,
    /// The values, as the plan writes them, and the settings that follow from them.
    pub points: Vec<(String, Setting)>,
    /// The timed codes.
    pub codes: Vec<BlockCode>,
    /// Runs of each code at each point.
    pub runs: u32,
    /// No further run of a point starts after this time.
    pub cap: Duration,
}

/// One half of a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    /// From the full file to all symbols sent, in packets.
    Encode,
    /// From the received packets to the file.
    Decode,
}

/// The quantity that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vary {
    /// Bytes of the file.
    Size,
    /// Bytes of a symbol.
    Symbol,
    /// Bytes of the largest block.
    Block,
    /// The share of dropped packets.
    Drops,
}

/// The quantity on the vertical axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeQuantity {
    /// Milliseconds.
    #[default]
    Time,
    /// Nanoseconds for each byte of the file.
    TimePerByte,
}

impl CodeQuantity {
    /// Returns the title of the axis.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Time => "Processor time, ms",
            Self::TimePerByte => "Processor time per byte of the file, ns",
        }
    }

    /// Returns the value of a time in nanoseconds.
    pub(super) fn of(self, nanoseconds: f64, setting: &Setting) -> f64 {
        match self {
            Self::Time => nanoseconds / 1e6,
            Self::TimePerByte => nanoseconds / setting.size as f64,
        }
    }
}

/// A file, and how it is coded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes of a symbol.
    pub symbol: u64,
    /// Bytes of the largest block; `None` if one block takes all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub block: Option<u64>,
    /// Symbols sent beyond those of the source, as a share of them.
    pub repair: f64,
    /// The bounds of the share of packets dropped, which each run draws.
    pub drops: [f64; 2],
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PlanText {
    name: String,
    title: String,
    #[serde(default)]
    claim: Vec<Claim>,
    codes: Vec<String>,
    size: String,
    symbol: String,
    block: Option<String>,
    repair: Option<String>,
    drops: Option<Vec<String>>,
    runs: u32,
    cap: String,
    seed: Option<u64>,
    #[serde(default)]
    picture: PictureText,
    sweep: Vec<Spanned<SweepText>>,
    #[serde(default)]
    published: Vec<Spanned<PublishedText>>,
    #[serde(default)]
    line: Vec<Spanned<LineText>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct PictureText {
    y: CodeQuantity,
    y_scale: Scale,
    spread: Spread,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SweepText {
    name: String,
    title: Option<String>,
    measure: Measured,
    vary: Vary,
    values: Vec<String>,
    #[serde(default)]
    scale: Scale,
    codes: Option<Vec<String>>,
    size: Option<String>,
    symbol: Option<String>,
    block: Option<String>,
    repair: Option<String>,
    drops: Option<Vec<String>>,
    runs: Option<u32>,
    cap: Option<String>,
}

impl CodePlan {
    /// Reads the plan of a file that has `codes`; `None` for one that moves files over links.
    ///
    /// # Errors
    /// One line with the file, the line in it, the error, and advice.
    pub fn read(file: &Path) -> Result<Option<Self>, PlanError> {
        Self::parse(file, &read_text(file)?)
    }

    /// Parses a plan from the text of its file; see [`CodePlan::read`].
    ///
    /// # Errors
    /// Those of [`CodePlan::read`].
    pub fn parse(file: &Path, text: &str) -> Result<Option<Self>, PlanError> {
        let source = PlanFile { file, text };
        if !source.has("codes") {
            return Ok(None);
        }
        let written: PlanText = source.parse()?;
        let refuse = |message: String| PlanError::new(file, None, message);
        let base = base(&written).map_err(refuse)?;
        let codes = codes(&written.codes).map_err(refuse)?;
        let cap = time(&written.cap).map_err(refuse)?;
        let mut sweeps: Vec<CodeSweep> = Vec::new();
        for text in &written.sweep {
            let sweep = sweep(text.get_ref(), &written, &base, &codes, cap)
                .and_then(|sweep| match sweeps.iter().any(|other| other.name == sweep.name) {
                    true => Err(format!("duplicate sweep name {:?}: rename one", sweep.name)),
                    false => Ok(sweep),
                })
                .map_err(|message| source.error(Some(text.span()), message))?;
            sweeps.push(sweep);
        }
        if sweeps.is_empty() || !is_name(&written.name) {
            let message = "write a name of lower-case letters, digits, - and /, and at least one [[sweep]]";
            return Err(PlanError::new(file, None, message));
        }
        let named = sweeps.iter().flat_map(|sweep| &sweep.codes).filter(|code| !codes.contains(code)).copied();
        let all: Vec<BlockCode> = codes.iter().copied().chain(named).collect();
        let names: Vec<String> = all.iter().map(BlockCode::to_string).collect();
        let overlays = Overlays {
            source,
            sweeps: sweeps.iter().map(|sweep| sweep.name.as_str()).collect(),
            series: names.iter().map(String::as_str).collect(),
        };
        let published = overlays.published(&written.published, |sweep, x| sweeps[sweep].place(x))?;
        let lines = overlays.lines(&written.line)?;
        Ok(Some(Self {
            name: written.name,
            title: written.title,
            claims: written.claim.into_iter().chain(published.iter().filter_map(Published::claim)).collect(),
            sweeps,
            codes: all,
            published,
            lines,
            seed: written.seed.unwrap_or(1),
            y: written.picture.y,
            y_scale: written.picture.y_scale,
            spread: written.picture.spread,
            file: file.to_owned(),
        }))
    }
}

fn base(written: &PlanText) -> Result<Setting, String> {
    let nominal = Setting { size: 1, symbol: 1, block: None, repair: 0.1, drops: [0.0, 0.1] };
    let texts = [Some(&written.size), Some(&written.symbol), written.block.as_ref(), written.repair.as_ref()];
    nominal.with(texts, written.drops.as_deref())
}

fn sweep(
    text: &SweepText,
    plan: &PlanText,
    base: &Setting,
    codes: &[BlockCode],
    cap: Duration,
) -> Result<CodeSweep, String> {
    let texts = [&text.size, &text.symbol, &text.block, &text.repair].map(Option::as_ref);
    let base = base.clone().with(texts, text.drops.as_deref())?;
    let codes = text.codes.as_deref().map_or_else(|| Ok(codes.to_vec()), self::codes)?;
    if !is_name(&text.name) || text.values.is_empty() {
        return Err("write a name of lower-case letters, digits and -, and at least one value".to_owned());
    }
    let mut points: Vec<(String, Setting)> = Vec::new();
    for value in &text.values {
        let setting = base.clone().put(text.vary, value)?;
        if points.iter().any(|(_, other)| *other == setting) {
            return Err(format!("duplicate value {value:?} in values"));
        }
        if text.scale == Scale::Log && text.vary.coordinate(&setting) <= 0.0 {
            return Err(format!("{value:?} cannot be shown on a logarithmic axis: use scale = \"linear\""));
        }
        for &code in &codes {
            setting.check(code)?;
        }
        points.push((value.clone(), setting));
    }
    let runs = text.runs.unwrap_or(plan.runs);
    if runs == 0 {
        return Err("runs is 0: write at least 1".to_owned());
    }
    Ok(CodeSweep {
        name: text.name.clone(),
        title: text.title.clone().unwrap_or_else(|| plan.title.clone()),
        measured: text.measure,
        vary: text.vary,
        scale: text.scale,
        points,
        codes,
        runs,
        cap: text.cap.as_ref().map_or(Ok(cap), |cap| time(cap))?,
    })
}

fn codes(names: &[String]) -> Result<Vec<BlockCode>, String> {
    let codes = names.iter().map(|name| name.parse::<BlockCode>().map_err(|error| error.to_string()));
    let codes = codes.collect::<Result<Vec<_>, _>>()?;
    if codes.is_empty() { Err("codes is empty: write at least one".to_owned()) } else { Ok(codes) }
}

fn time(text: &str) -> Result<Duration, String> {
    parse_time("cap", text).map_err(|error| error.to_string())
}

fn share(key: &str, text: &str) -> Result<f64, String> {
    // A share of losses is at most 100 %, which corresponds to as many repair symbols as source symbols.
    parse_share(key, text).map_err(|error| error.to_string())
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

impl Setting {
    fn with(mut self, texts: [Option<&String>; 4], drops: Option<&[String]>) -> Result<Self, String> {
        let [size, symbol, block, repair] = texts;
        for (vary, text) in [(Vary::Size, size), (Vary::Symbol, symbol), (Vary::Block, block)] {
            if let Some(text) = text {
                self = self.put(vary, text)?;
            }
        }
        if let Some(text) = repair {
            self.repair = share("repair", text)?;
        }
        match drops {
            None => {}
            Some([least, most]) => self.drops = [share("drops", least)?, share("drops", most)?],
            Some(_) => return Err("drops: write the least and the most, such as [\"0%\", \"10%\"]".to_owned()),
        }
        Ok(self)
    }

    fn put(mut self, vary: Vary, text: &str) -> Result<Self, String> {
        match vary {
            Vary::Size => self.size = bytes(text)?,
            Vary::Symbol => self.symbol = bytes(text)?,
            Vary::Block => self.block = Some(bytes(text)?),
            Vary::Drops => self.drops = [share("drops", text)?; 2],
        }
        Ok(self)
    }

    /// Returns the number of source symbols of each block: as equal as possible, the longer ones first.
    pub fn blocks(&self) -> Vec<u32> {
        let symbols = self.size.div_ceil(self.symbol);
        let blocks = self.block.map_or(1, |block| self.size.div_ceil(block)).min(symbols);
        (0..blocks).map(|index| (symbols / blocks + u64::from(index < symbols % blocks)) as u32).collect()
    }

    /// Checks whether a code has such blocks; a block of one symbol needs none.
    fn check(&self, code: BlockCode) -> Result<(), String> {
        let symbol = usize::try_from(self.symbol).unwrap_or(usize::MAX);
        if self.size.div_ceil(self.symbol) > 1 << 24 {
            return Err("more than 2^24 symbols: use larger symbols".to_owned());
        }
        let mut coded = self.blocks().into_iter().filter(|&k| k > 1);
        coded.try_for_each(|k| code.check(k, symbol).map_err(|error| error.to_string()))
    }
}

impl CodeSweep {
    /// Returns the position of a value on the axis, which need not be one of its points.
    fn place(&self, text: &str) -> Result<f64, String> {
        let (_, first) = &self.points[0];
        Ok(self.vary.coordinate(&first.clone().put(self.vary, text)?))
    }
}

impl Vary {
    /// Returns the title of the axis.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Size => "Size of the file",
            Self::Symbol => "Size of a symbol",
            Self::Block => "Largest block",
            Self::Drops => "Packets dropped, %",
        }
    }

    /// Returns the position of a setting on it: in bytes, or in percent.
    pub(crate) fn coordinate(self, setting: &Setting) -> f64 {
        match self {
            Self::Size => setting.size as f64,
            Self::Symbol => setting.symbol as f64,
            Self::Block => setting.block.unwrap_or(setting.size) as f64,
            Self::Drops => setting.drops[1] * 100.0,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::codes) const TEXT: &str = r#"
name = "paper/fig3"
title = "Time of coding"
codes = ["raptorq", "reed-solomon"]
size = "20KB"
symbol = "1000B"
repair = "20%"
runs = 4
cap = "60s"
[picture]
y = "time-per-byte"
y-scale = "log"
[[claim]]
text = "It is linear."
section = "figure 3"
[[sweep]]
name = "encode-size"
measure = "encode"
vary = "size"
values = ["1KB", "10KB", "30KB"]
scale = "log"
[[sweep]]
name = "decode-blocks"
title = "In blocks"
measure = "decode"
vary = "block"
values = ["20KB", "7KB"]
codes = ["raptorq"]
[[published]]
sweep = "encode-size"
label = "Theirs"
section = "figure 3"
points = [{ x = "2KB", y = 5.0 }]
"#;

    pub(in crate::codes) fn plan() -> CodePlan {
        CodePlan::parse(Path::new("p.toml"), TEXT).expect("a plan").expect("one of codes")
    }

    #[test]
    fn plan_of_codes_is_read() {
        let plan = plan();
        assert_eq!(plan.codes, [BlockCode::RaptorQ, BlockCode::ReedSolomon]);
        let [sizes, blocks] = &plan.sweeps[..] else { panic!("two sweeps") };
        assert_eq!((sizes.points.len(), sizes.runs, sizes.measured), (3, 4, Measured::Encode));
        assert_eq!((blocks.title.as_str(), &blocks.codes[..]), ("In blocks", &[BlockCode::RaptorQ][..]));
        assert_eq!(blocks.points[0].1.blocks(), [20]);
        assert_eq!(blocks.points[1].1.blocks(), [7, 7, 6]);
        assert_eq!((sizes.points[0].1.repair, sizes.points[0].1.drops), (0.2, [0.0, 0.1]));
        assert_eq!((plan.published[0].points[0].x, plan.published[0].points[0].y), (2e3, 5.0));
        let links = CodePlan::parse(Path::new("p.toml"), "name = \"a\"\npeers = [\"b\"]");
        assert_eq!(links, Ok(None), "a plan over links");
    }

    #[test]
    fn plan_of_codes_error_is_one_line() {
        for (from, to, hint) in [
            ("codes = [\"raptorq\"]", "codes = [\"raptor-x\"]", "raptor-x"),
            ("symbol = \"1000B\"", "symbol = \"0B\"", "cannot read size=0B"),
            ("\"30KB\"", "\"900MB\"", "source symbols, not 900000"),
            ("\"20KB\", \"7KB\"", "\"20KB\", \"20KB\"", "duplicate value"),
            ("vary = \"block\"", "vary = \"rate\"", "unknown variant"),
            ("runs = 4", "runs = 0", "runs is 0"),
            ("decode-blocks", "encode-size", "duplicate sweep name"),
            ("x = \"2KB\"", "x = \"soon\"", "cannot read size=soon"),
            ("measure = \"decode\"", "measured = \"decode\"", "unknown field"),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT, "{from}");
            let error = CodePlan::parse(Path::new("p.toml"), &text).expect_err(to).to_string();
            assert!(error.contains(hint) && error.starts_with("p.toml:") && !error.contains('\n'), "{to}: {error}");
        }
    }
}
