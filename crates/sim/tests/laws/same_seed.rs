//! Law 1: the same seed gives the same run.

#[test]
fn the_same_seed_gives_the_same_run() {
    let link = "rate=50M,delay=20ms,queue=100KB,loss=3%,jitter=2ms,reorder=1%:5ms,duplicate=1%,corrupt=0.5%";
    let case = downpour_sim::Case { size: 1_000_000, ..downpour_sim::Case::new(link.parse().expect("a link")) };
    for seed in 1..=5 {
        assert_eq!(format!("{:?}", case.run(seed)), format!("{:?}", case.run(seed)), "seed {seed}");
    }
    assert_ne!(format!("{:?}", case.run(1)), format!("{:?}", case.run(2)), "the seed makes no difference");
}
