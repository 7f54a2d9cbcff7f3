//! One line of a picture: its points and gaps.

/// One peer, code or flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name, or the names of several equal series.
    pub name: String,
    /// Index of colour and marker: that of its position in the plan.
    pub(super) style: usize,
    /// The styles of equal series, which are drawn as this one.
    pub(super) same: Vec<usize>,
    pub(super) form: MarkStyle,
    /// Its points, from left to right.
    pub marks: Vec<Mark>,
    /// The positions without a value, from left to right.
    pub gaps: Vec<Gap>,
}

/// The drawing style of points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarkStyle {
    /// Each with a marker and a bar, joined from left to right.
    #[default]
    Joined,
    /// The same, not joined: their order on the axis means nothing.
    Scattered,
    /// A line over time, with a band for the spread and few markers.
    Course,
}

/// One point: the median, and the ends of its error bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mark {
    /// Position on the axis.
    pub x: f64,
    /// The median of the valid runs.
    pub y: f64,
    /// Lower end of the bar.
    pub low: f64,
    /// Upper end of the bar.
    pub high: f64,
    /// Whether half of the runs did not finish: the true value lies beyond `y`.
    pub is_bound: bool,
    /// Whether the run at the end of the bar did not finish: the true end lies beyond.
    pub bar_is_bound: bool,
}

/// A position with too few valid runs for a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// Position on the axis.
    pub x: f64,
    /// Runs that have a value.
    pub valid: usize,
    /// Runs in the plan.
    pub planned: usize,
}

impl Series {
    /// Creates a series from its points and gaps in any order. `style` is its position among all of the plan.
    pub fn new(name: impl Into<String>, style: usize, points: impl IntoIterator<Item = Result<Mark, Gap>>) -> Self {
        let (mut marks, mut gaps) = (Vec::new(), Vec::new());
        for point in points {
            match point {
                Ok(mark) => marks.push(mark),
                Err(gap) => gaps.push(gap),
            }
        }
        marks.sort_by(|a: &Mark, b| a.x.total_cmp(&b.x));
        gaps.sort_by(|a: &Gap, b| a.x.total_cmp(&b.x));
        Self { name: name.into(), style, same: Vec::new(), form: MarkStyle::Joined, marks, gaps }
    }

    /// Returns it with another drawing style.
    pub fn drawn(self, form: MarkStyle) -> Self {
        Self { form, ..self }
    }

    /// Returns the points that a line may join: none crosses a gap.
    pub(super) fn strokes(&self) -> Vec<&[Mark]> {
        if self.form == MarkStyle::Scattered {
            return Vec::new();
        }
        let is_whole = |a: &Mark, b: &Mark| !self.gaps.iter().any(|gap| a.x < gap.x && gap.x < b.x);
        self.marks.chunk_by(is_whole).collect()
    }

    /// Returns its style, and those of equal series.
    pub(super) fn styles(&self) -> String {
        let all = std::iter::once(&self.style).chain(&self.same);
        all.map(usize::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Returns the system that it belongs to, by the first word of its name.
    pub(super) fn system(&self) -> &str {
        self.name.split([' ', ',', ':']).next().unwrap_or(&self.name)
    }
}

impl Mark {
    /// Creates a point without a bar.
    pub fn at(x: f64, y: f64) -> Self {
        Self::with_bar(x, y, [y, y])
    }

    /// Creates a point with a bar between two values.
    pub fn with_bar(x: f64, y: f64, [low, high]: [f64; 2]) -> Self {
        Self { x, y, low, high, is_bound: false, bar_is_bound: false }
    }

    /// Returns it if at least half of the planned runs have a value, and otherwise the gap.
    pub(crate) fn of_enough(mark: Option<Self>, x: f64, valid: usize, planned: usize) -> Result<Self, Gap> {
        match mark {
            Some(mark) if 2 * valid >= planned => Ok(mark),
            Some(_) => Err(Gap { x, valid, planned }),
            None => Err(Gap { x, valid: 0, planned }),
        }
    }
}

/// Joins series with equal points: `A = B`, drawn as the first of them. Series without points are not
/// joined.
pub(super) fn joined(all: Vec<Series>) -> Vec<Series> {
    let mut groups: Vec<(Series, Vec<String>)> = Vec::new();
    for series in all {
        let is_equal = |(first, _): &&mut (Series, Vec<String>)| {
            !series.marks.is_empty() && (&first.marks, &first.gaps) == (&series.marks, &series.gaps)
        };
        match groups.iter_mut().find(is_equal) {
            Some((first, names)) => {
                names.push(series.name);
                first.same.push(series.style);
            }
            None => {
                let names = vec![series.name.clone()];
                groups.push((series, names));
            }
        }
    }
    // "q = 3 = q = 4" would be unreadable.
    let name = |names: Vec<String>| match names.iter().any(|name| name.contains('=')) {
        true if names.len() > 1 => format!("{} (equal)", names.join(" and ")),
        _ => names.join(" = "),
    };
    groups.into_iter().map(|(series, names)| Series { name: name(names), ..series }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strokes_do_not_cross_gaps() {
        let gap = |x| Err(Gap { x, valid: 1, planned: 5 });
        let points = [4.0, 0.0, 1.0, 5.0].map(|x| Ok(Mark::at(x, x)));
        let series = Series::new("a", 0, points.into_iter().chain([gap(2.0), gap(3.0), gap(6.0)]));
        let places = |stroke: &[Mark]| stroke.iter().map(|mark| mark.x).collect::<Vec<_>>();
        assert_eq!(series.strokes().into_iter().map(places).collect::<Vec<_>>(), [[0.0, 1.0], [4.0, 5.0]]);
        assert!(series.drawn(MarkStyle::Scattered).strokes().is_empty());
    }

    #[test]
    fn of_enough_needs_half_of_the_runs() {
        let mark = Some(Mark::at(1.0, 2.0));
        assert!(Mark::of_enough(mark, 1.0, 3, 5).is_ok() && Mark::of_enough(mark, 1.0, 1, 2).is_ok());
        assert_eq!(Mark::of_enough(mark, 1.0, 2, 5), Err(Gap { x: 1.0, valid: 2, planned: 5 }));
        assert_eq!(Mark::of_enough(None, 1.0, 5, 5), Err(Gap { x: 1.0, valid: 0, planned: 5 }));
    }

    #[test]
    fn joined_merges_equal_series() {
        let series = |name: &str, y: f64| Series::new(name, 0, [Ok(Mark::at(0.0, 1.0)), Ok(Mark::at(1.0, y))]);
        let names = |all: Vec<Series>| joined(all).into_iter().map(|series| series.name).collect::<Vec<_>>();
        assert_eq!(names(vec![series("a", 1.0), series("b", 2.0), series("c", 1.0)]), ["a = c", "b"]);
        assert_eq!(names(vec![series("q = 3", 1.0), series("q = 4", 1.0)]), ["q = 3 and q = 4 (equal)"]);
        let nothing = || Series::new("", 0, [Err(Gap { x: 0.0, valid: 0, planned: 5 })]);
        assert_eq!(joined(vec![nothing(), nothing()]).len(), 2);
    }

    #[test]
    fn system_is_the_first_word() {
        let system = |name: &str| Series::new(name, 0, []).system().to_owned();
        assert_eq!(
            ["auto", "auto, fixed rate", "downpour-arq congestion=reno"].map(system),
            ["auto", "auto", "downpour-arq"]
        );
    }
}
