//! Surveys of made-up lines.

use super::*;

/// A line with a base delay of 50 ms.
#[derive(Clone, Copy)]
struct Made {
    /// Bits per second.
    rate: f64,
    /// What a short burst passes at, if that shows.
    bursts: Option<f64>,
    /// Share that is lost at any rate.
    own: f64,
    /// Whether what exceeds the rate waits.
    queues: bool,
    /// Bits per second that the profile's control and `auto` send.
    usual: f64,
    auto: f64,
}

const LINE: Made = Made { rate: 100e6, bursts: Some(103e6), own: 0.0, queues: true, usual: 96e6, auto: 96e6 };

const RTT: f64 = 0.05;

impl Made {
    /// Measures a probe that sends so many bits per second.
    fn probe(&self, congestion: &CongestionConfig, sent: f64) -> Traffic {
        let config = match congestion {
            CongestionConfig::FixedRate(config) => Some(config),
            _ => None,
        };
        let passing = sent.min(self.rate);
        let arrived = passing * (1.0 - self.own);
        let is_over = sent > self.rate;
        Traffic {
            control: "some".into(),
            set_bits_per_second: config.map(|config| config.rate.bits_per_second()),
            sent_bits_per_second: Some(sent as u64),
            rate_bits_per_second: arrived as u64,
            goodput: (arrived / 8.0) as u64,
            // The queue has not overflowed yet.
            loss: if self.queues { self.own } else { 1.0 - arrived / sent },
            packets: 3000,
            marked: 0.0,
            ecn: None,
            loaded_rtt: Some(if is_over && self.queues { 2.0 * RTT } else { RTT }),
            limited_by: LimitedBy::Pacing,
            sender: None,
            receiver: None,
            trains: config
                .filter(|config| config.train > 1)
                .and(self.bursts)
                .map(|rate| LinkRate { rate: Rate::from_bits_per_second(rate as u64), reports: 30 }),
            bytes_sent: 1_000_000,
        }
    }

    /// Surveys the line; returns the megabits per second of the trials, too.
    fn survey(&self, profile: &CongestionConfig) -> (Survey, Vec<u64>) {
        let rate = |congestion: &CongestionConfig| match congestion {
            CongestionConfig::FixedRate(config) => config.rate.bits_per_second() as f64,
            _ => self.auto,
        };
        let first = if matches!(profile, CongestionConfig::FixedRate(_)) { rate(profile) } else { self.usual };
        let mut survey = Survey::new(self.probe(profile, first));
        while let Some(congestion) = survey.next(profile, RTT) {
            survey.add(&congestion, self.probe(&congestion, rate(&congestion)), RTT);
        }
        survey.conclude(RTT);
        let tried = survey.trials.iter().filter_map(|trial| trial.traffic.set_bits_per_second);
        let tried = tried.map(|rate| rate / 1_000_000).collect();
        (survey, tried)
    }
}

fn auto() -> CongestionConfig {
    CongestionConfig::default()
}

/// What was found of the line, in megabits per second.
fn line(survey: &Survey) -> Option<(u64, Method)> {
    survey.line.map(|line| ((line.rate_bits_per_second + 500_000) / 1_000_000, line.method))
}

#[test]
fn nothing_needs_to_be_set_where_auto_does_well() {
    for own in [0.0, 0.01, 0.05, 0.2] {
        let (survey, tried) = Made { own, ..LINE }.survey(&auto());
        assert_eq!((line(&survey), tried), (Some((103, Method::Trains)), vec![92]), "{own}");
        assert_eq!((survey.trials[0].shows, survey.best), (Shown::Carried, Best::Nothing), "{own}");
    }
}

#[test]
fn a_rate_is_recommended_that_was_tried_and_is_much_faster() {
    let slow = Made { own: 0.01, usual: 40e6, auto: 40e6, ..LINE };
    let (survey, tried) = slow.survey(&auto());
    assert_eq!((survey.best, tried), (Best::Rate(92_000_000), vec![92]));
    // Without trains: half as much again is carried, and the next trial exceeds the line.
    let (survey, tried) = Made { bursts: None, usual: 60e6, ..slow }.survey(&auto());
    assert_eq!((line(&survey), tried), (Some((100, Method::Exceeded)), vec![89, 133]));
    assert_eq!(survey.best, Best::Rate(89_000_000));
    // The line takes both, and perhaps more: nobody knows what is right.
    let (survey, tried) = Made { bursts: None, usual: 20e6, ..slow }.survey(&auto());
    assert_eq!((line(&survey), tried), (Some((43, Method::AtLeast)), vec![29, 43]));
    assert_eq!(survey.best, Best::Unclear);
}

#[test]
fn a_control_that_takes_all_loss_for_congestion_is_not_the_line() {
    let cubic: CongestionConfig = "cubic".parse().unwrap();
    let (survey, tried) = Made { own: 0.01, usual: 2.6e6, ..LINE }.survey(&cubic);
    assert_eq!((line(&survey), tried), (Some((103, Method::Trains)), vec![92]));
    assert_eq!(survey.best, Best::Auto, "without any rate");
    let (survey, tried) = Made { own: 0.01, usual: 2.6e6, auto: 20e6, ..LINE }.survey(&cubic);
    assert_eq!((survey.best, tried), (Best::Rate(79_000_000), vec![79]), "no more than four times what has arrived");
}

#[test]
fn bursts_pass_a_policer_and_more_does_not() {
    let policer = Made { rate: 50e6, queues: false, usual: 48e6, auto: 48e6, ..LINE };
    let (survey, tried) = policer.survey(&auto());
    assert_eq!((line(&survey), tried), (Some((50, Method::Exceeded)), vec![92]));
    assert_eq!((survey.trials[0].shows, survey.best), (Shown::Exceeded, Best::Nothing));
    assert_eq!(survey.link().map(|link| link.rate.bits_per_second()), Some(103_000_000), "as bursts");
    let (survey, tried) = Made { usual: 30e6, ..policer }.survey(&auto());
    assert_eq!((survey.best, tried), (Best::Rate(47_000_000), vec![92, 47]), "tries what has passed");
}

#[test]
fn a_queue_that_grows_shows_too_high_a_rate_before_it_overflows() {
    let (survey, tried) = Made { bursts: Some(130e6), ..LINE }.survey(&auto());
    assert_eq!((line(&survey), tried), (Some((100, Method::Exceeded)), vec![117]));
    assert_eq!(survey.best, Best::Nothing);
}

#[test]
fn trains_are_wrong_if_more_arrives() {
    let (survey, tried) = Made { bursts: Some(50e6), ..LINE }.survey(&auto());
    assert_eq!((survey.link(), line(&survey), tried), (None, Some((100, Method::Exceeded)), vec![144]));
}

#[test]
fn a_set_rate_is_lowered_only_if_less_is_lost_then() {
    let set = |rate: u64| at_rate(rate as f64, 1);
    let (survey, tried) = Made { own: 0.05, ..LINE }.survey(&set(80_000_000));
    assert_eq!((survey.best, tried), (Best::Nothing, vec![38]), "half as fast loses as much");
    let (survey, tried) = LINE.survey(&set(80_000_000));
    assert_eq!((survey.best, tried), (Best::Nothing, vec![]), "nothing is lost");
    let (survey, tried) = Made { queues: false, own: 0.01, ..LINE }.survey(&set(200_000_000));
    assert_eq!((survey.best, tried), (Best::LowerRate(95_000_000), vec![49, 95]));
    assert_eq!(line(&survey), Some((100, Method::Exceeded)));
}

#[test]
fn chance_is_no_congestion_and_busy_machines_are_no_line() {
    let (mut survey, _) = LINE.survey(&auto());
    let mut lossy = LINE.probe(&auto(), 96e6);
    (lossy.loss, lossy.packets) = (0.02, 100);
    assert_eq!(survey.shown(&lossy, RTT), Shown::Carried, "two of a hundred");
    (lossy.loss, lossy.packets) = (0.02, 3000);
    assert_eq!(survey.shown(&lossy, RTT), Shown::Exceeded, "sixty of 3000 beside none");
    lossy.set_bits_per_second = Some(110_000_000);
    assert_eq!(survey.shown(&lossy, RTT), Shown::NotSent);
    survey = Survey::new(Traffic { limited_by: LimitedBy::Receiver, ..LINE.probe(&auto(), 96e6) });
    assert_eq!(survey.next(&auto(), RTT), None);
    survey = Survey::new(LINE.probe(&auto(), 0.0));
    assert_eq!(survey.next(&auto(), RTT), None, "nothing has arrived");
}

#[test]
fn nothing_that_the_other_side_says_makes_this_side_send_without_bound() {
    let hostile = Traffic {
        rate_bits_per_second: u64::MAX,
        trains: Some(LinkRate { rate: Rate::from_bits_per_second(u64::MAX), reports: u32::MAX }),
        loss: 1.0,
        packets: 0,
        loaded_rtt: Some(f64::MAX),
        ..LINE.probe(&auto(), 1e6)
    };
    let mut survey = Survey::new(hostile.clone());
    let mut probes = 0;
    while let Some(congestion) = survey.next(&auto(), RTT) {
        survey.add(&congestion, hostile.clone(), RTT);
        probes += 1;
    }
    survey.conclude(RTT);
    assert!(probes <= 1 + MOST_TRIALS, "{probes}");
    let mut survey = Survey::new(LINE.probe(&auto(), 10e6));
    survey.trains = Some(hostile);
    survey.trains.as_mut().unwrap().rate_bits_per_second = 1_000_000;
    let Some(CongestionConfig::FixedRate(config)) = survey.next(&auto(), RTT) else { panic!("{survey:?}") };
    assert_eq!(config.rate.bits_per_second(), 40_000_000, "four times what has arrived");
}
