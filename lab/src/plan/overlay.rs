//! The overlays of a plan's measurements: a document's numbers, and lines of laws and true values.

use serde::Deserialize;
use toml::Spanned;

use super::{Claim, PlanError, PlanFile};

/// A document's values for one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The sweep it belongs to.
    pub sweep: String,
    /// Name of the series.
    pub label: String,
    /// The section of the document.
    pub section: String,
    /// The claim in words, if no number is available.
    pub claim: Option<String>,
    /// The measured series to compare with, which has the same style in the picture.
    pub of: Option<String>,
    /// The points.
    pub points: Vec<PublishedPoint>,
}

/// One published number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedPoint {
    /// Position on the sweep's axis.
    pub x: f64,
    /// In the unit of the picture's vertical axis.
    pub y: f64,
    /// Half the length of its error bar.
    pub error: Option<f64>,
}

/// A line to compare measurements with: `factor * x ^ power`.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceCurve {
    /// The sweep in whose picture it is drawn; by default all.
    pub sweep: Option<String>,
    /// Its label.
    pub label: String,
    /// Value of the line at 1, in the unit of the vertical axis.
    pub factor: f64,
    /// 0 for a constant, 1 for a proportion, -0.5 for `c / sqrt(p)`.
    pub power: f64,
}

impl Published {
    /// Returns its claim in words, if it has one.
    pub(crate) fn claim(&self) -> Option<Claim> {
        Some(Claim { text: self.claim.clone()?, section: self.section.clone() })
    }
}

impl ReferenceCurve {
    /// Returns its value at a position; infinite at the pole of a falling law.
    pub fn at(&self, x: f64) -> f64 {
        self.factor * x.powf(self.power)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedText {
    sweep: Option<Spanned<String>>,
    label: String,
    section: String,
    claim: Option<String>,
    of: Option<Spanned<String>>,
    /// The factor from the document's unit to that of the picture.
    times: Option<f64>,
    #[serde(default)]
    points: Vec<PointText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointText {
    x: Spanned<String>,
    y: f64,
    error: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineText {
    sweep: Option<Spanned<String>>,
    label: String,
    y: Option<f64>,
    factor: Option<f64>,
    power: Option<f64>,
}

/// The names that published values and lines may use.
pub(crate) struct Overlays<'a> {
    pub(crate) source: PlanFile<'a>,
    /// The names of the plan's sweeps.
    pub(crate) sweeps: Vec<&'a str>,
    /// The names of its series.
    pub(crate) series: Vec<&'a str>,
}

impl Overlays<'_> {
    /// Checks published values. `place` finds the position of a value on the axis of a sweep, given as its index.
    pub(crate) fn published(
        &self,
        written: &[Spanned<PublishedText>],
        place: impl Fn(usize, &str) -> Result<f64, String>,
    ) -> Result<Vec<Published>, PlanError> {
        let one = |text: &Spanned<PublishedText>| {
            let PublishedText { sweep, label, section, claim, of, times, points } = text.get_ref();
            let refuse = |message: String| self.source.error(Some(text.span()), message);
            let found = match sweep {
                Some(name) => self.sweep(name)?,
                None if self.sweeps.len() == 1 => 0,
                None => return Err(refuse(self.which("published has no sweep", "sweep", &self.sweeps))),
            };
            if let Some(of) = of.as_ref().filter(|of| !self.series.contains(&of.get_ref().as_str())) {
                let message = self.which(&format!("unknown series {:?}", of.get_ref()), "of", &self.series);
                return Err(self.source.error(Some(of.span()), message));
            }
            if claim.is_none() && points.is_empty() {
                return Err(refuse("published is empty: add points, or the claim in words".to_owned()));
            }
            let times = times.unwrap_or(1.0);
            let point = |point: &PointText| {
                let x = place(found, point.x.get_ref());
                let x = x.map_err(|message| self.source.error(Some(point.x.span()), message))?;
                Ok(PublishedPoint { x, y: point.y * times, error: point.error.map(|error| error * times) })
            };
            Ok(Published {
                sweep: self.sweeps[found].to_owned(),
                label: label.clone(),
                section: section.clone(),
                claim: claim.clone(),
                of: of.as_ref().map(|of| of.get_ref().clone()),
                points: points.iter().map(point).collect::<Result<_, _>>()?,
            })
        };
        written.iter().map(one).collect()
    }

    /// Checks lines.
    pub(crate) fn lines(&self, written: &[Spanned<LineText>]) -> Result<Vec<ReferenceCurve>, PlanError> {
        let one = |text: &Spanned<LineText>| {
            let LineText { sweep, label, y, factor, power } = text.get_ref();
            let (factor, power) = match (y, factor, power) {
                (Some(y), None, None) => (*y, 0.0),
                (None, Some(factor), power) => (*factor, power.unwrap_or(1.0)),
                _ => {
                    let message = "a line has either y, or factor and power: write one of them";
                    return Err(self.source.error(Some(text.span()), message));
                }
            };
            if let Some(name) = sweep {
                self.sweep(name)?;
            }
            let sweep = sweep.as_ref().map(|name| name.get_ref().clone());
            Ok(ReferenceCurve { sweep, label: label.clone(), factor, power })
        };
        written.iter().map(one).collect()
    }

    fn sweep(&self, name: &Spanned<String>) -> Result<usize, PlanError> {
        self.sweeps.iter().position(|sweep| *sweep == name.get_ref()).ok_or_else(|| {
            let message = self.which(&format!("unknown sweep {:?}", name.get_ref()), "sweep", &self.sweeps);
            self.source.error(Some(name.span()), message)
        })
    }

    fn which(&self, error: &str, key: &str, names: &[&str]) -> String {
        format!("{error}: write {key} = one of {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_at_is_a_power() {
        let line = |factor, power| ReferenceCurve { sweep: None, label: String::new(), factor, power };
        assert_eq!([0.0, 7.0].map(|x| line(3.85, 0.0).at(x)), [3.85, 3.85]);
        assert_eq!(line(1.0, 1.0).at(5.0), 5.0);
        assert_eq!(line(3.0, -0.5).at(4.0), 1.5);
        assert_eq!(line(3.0, -0.5).at(0.0), f64::INFINITY);
    }
}
