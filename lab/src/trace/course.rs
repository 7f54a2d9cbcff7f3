//! The course of quantities over time, in bounded memory.

/// The values of `N` quantities over time: each moment while there is room, and then the least, greatest and mean
/// values of ever longer intervals.
#[derive(Debug)]
pub(crate) struct Course<const N: usize> {
    buckets: Vec<Bucket<N>>,
    most: usize,
    /// Moments in each bucket but the last, which may have fewer.
    /// The greatest number of moments of a bucket.
    per_bucket: usize,
}

/// An interval of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bucket<const N: usize> {
    /// Times of its first and its last moment, in seconds.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// Number of moments.
    pub(crate) moments: usize,
    /// The spread of each quantity.
    pub(crate) values: [Spread; N],
}

/// The values of a quantity in an interval of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    count: usize,
    sum: f64,
    low: f64,
    high: f64,
}

impl Spread {
    fn of(value: Option<f64>) -> Self {
        value.map_or(Self::default(), |value| Self { count: 1, sum: value, low: value, high: value })
    }

    fn join(self, other: Self) -> Self {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Returns the mean, the least and the greatest value, if there is any.
    pub(crate) fn mean_low_high(self) -> Option<[f64; 3]> {
        (self.count > 0).then(|| [self.sum / self.count as f64, self.low, self.high])
    }
}

impl<const N: usize> Bucket<N> {
    /// Returns the middle of the interval.
    pub(crate) fn time(&self) -> f64 {
        if self.moments == 1 { self.from } else { f64::midpoint(self.from, self.to) }
    }

    fn join(&mut self, later: &Self) {
        self.to = later.to;
        self.moments += later.moments;
        for (ours, theirs) in self.values.iter_mut().zip(later.values) {
            *ours = ours.join(theirs);
        }
    }
}

impl<const N: usize> Course<N> {
    /// Creates a course of at most this number of buckets, at least two.
    pub(crate) fn new(most: usize) -> Self {
        Self { buckets: Vec::new(), most: most.max(2), per_bucket: 1 }
    }

    /// Adds the values of one moment, in seconds since the beginning.
    pub(crate) fn push(&mut self, time: f64, values: [Option<f64>; N]) {
        let new = Bucket { from: time, to: time, moments: 1, values: values.map(Spread::of) };
        match self.buckets.last_mut() {
            Some(last) if last.moments < self.per_bucket => last.join(&new),
            _ => self.buckets.push(new),
        }
        if self.buckets.len() > self.most {
            self.buckets = joined(&self.buckets, 2);
            self.per_bucket *= 2;
        }
    }

    pub(crate) fn buckets(&self) -> &[Bucket<N>] {
        &self.buckets
    }

    /// Returns the buckets that overlap an interval of time.
    pub(crate) fn within(&self, [from, to]: [f64; 2]) -> &[Bucket<N>] {
        let first = self.buckets.partition_point(|bucket| bucket.to < from);
        let end = self.buckets.partition_point(|bucket| bucket.from <= to);
        &self.buckets[first..end.max(first)]
    }

    /// Returns the same, with a neighbour on either side for the line, joined to at most `most` or two more.
    pub(crate) fn overview(&self, range: [f64; 2], most: usize) -> Vec<Bucket<N>> {
        let first = self.buckets.partition_point(|bucket| bucket.to < range[0]).saturating_sub(1);
        let end = self.buckets.partition_point(|bucket| bucket.from <= range[1]).max(first);
        let shown = &self.buckets[first..(end + 1).min(self.buckets.len())];
        joined(shown, shown.len().div_ceil(most.max(1)).max(1))
    }
}

/// Joins groups of this number of neighbours.
fn joined<const N: usize>(buckets: &[Bucket<N>], count: usize) -> Vec<Bucket<N>> {
    let join = |neighbours: &[Bucket<N>]| {
        let mut all = neighbours[0];
        neighbours[1..].iter().for_each(|later| all.join(later));
        all
    };
    buckets.chunks(count).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With any number of moments, peaks are kept, the mean is that of all, and memory is bounded.
    #[test]
    fn course_keeps_extremes_and_means_in_bounded_memory() {
        let mut course = Course::<2>::new(64);
        for moment in 0..100_000_u32 {
            let peak = if moment == 31_117 { 9.0 } else { 1.0 };
            course.push(f64::from(moment), [Some(peak), (moment % 2 == 0).then_some(f64::from(moment))]);
            assert!(course.buckets().len() <= 64);
        }
        let buckets = course.buckets();
        assert_eq!((buckets[0].from, buckets[buckets.len() - 1].to), (0.0, 99_999.0));
        assert!(buckets.iter().rev().skip(1).all(|bucket| bucket.moments == course.per_bucket));
        assert!(buckets.windows(2).all(|pair| pair[0].to < pair[1].from));
        let high = buckets.iter().filter_map(|bucket| bucket.values[0].mean_low_high());
        assert_eq!(high.filter(|[_, _, high]| *high == 9.0).count(), 1);
        let all = joined(buckets, buckets.len());
        let [mean, low, high] = all[0].values[1].mean_low_high().expect("every second moment");
        assert_eq!((mean, low, high), (49_999.0, 0.0, 99_998.0));
    }

    #[test]
    fn course_keeps_every_moment_while_there_is_room() {
        let mut course = Course::<1>::new(4);
        (0..4).for_each(|moment| course.push(f64::from(moment), [Some(f64::from(moment))]));
        assert_eq!(course.buckets().iter().map(|bucket| bucket.time()).collect::<Vec<_>>(), [0.0, 1.0, 2.0, 3.0]);
        course.push(4.0, [None]);
        assert_eq!(course.buckets().iter().map(|bucket| bucket.moments).collect::<Vec<_>>(), [2, 2, 1]);
        assert_eq!(course.buckets()[2].values[0].mean_low_high(), None);
        let places = |range| course.within(range).iter().map(|bucket| bucket.from).collect::<Vec<_>>();
        assert_eq!(places([1.5, 2.0]), [2.0]);
        assert_eq!(places([9.0, 10.0]), [] as [f64; 0]);
        assert_eq!(places([5.0, 1.0]), [] as [f64; 0]);
        assert_eq!(course.overview([1.5, 2.0], 9).len(), 3, "with its neighbours");
        assert_eq!(course.overview([0.0, 9.0], 1).len(), 1);
    }
}
