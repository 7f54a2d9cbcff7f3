//! The plans in `experiments/` run as they are.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::codes::CodePlan;
use lab::plan::{Axis, LinkPlan, Writes};
use lab::runner::{Agenda, Estimate};
use lab::simulated::SimPlan;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("experiments/{name}.toml"))
}

fn plan(name: &str) -> LinkPlan {
    let file = file(name);
    let peers: Vec<String> = lab::peers::all().map(|peer| peer.name().to_owned()).collect();
    LinkPlan::read(&file, &peers).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn plans_match_papers() {
    let places = |name: &str| -> Vec<(Axis, Vec<f64>)> {
        let sweeps = plan(name).sweeps;
        sweeps.iter().map(|sweep| (sweep.axis, sweep.points.iter().map(|point| point.x).collect())).collect()
    };
    assert_eq!(places("tornado-transfer/fig1"), [(Axis::Loss, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0])]);
    assert_eq!(places("tornado-transfer/fig2"), [(Axis::Delay, vec![0.0, 20.0, 40.0, 60.0, 80.0, 100.0])]);
    assert_eq!(places("tornado-transfer/fig3"), [(Axis::Size, vec![10.0, 20.0, 30.0, 40.0, 50.0])]);
    // Table II.
    for (name, size) in [("rc-udp/fig10", 1_000_000), ("rc-udp/fig11", 10_000_000)] {
        let expected = [
            (Axis::Loss, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0]),
            (Axis::Delay, vec![0.5, 5.0, 50.0, 100.0, 250.0, 500.0]),
            (Axis::Rate, vec![5.0, 10.0, 25.0, 50.0, 75.0, 100.0]),
        ];
        // The document's own sweeps are first, followed by those for another reading of the table.
        assert_eq!(places(name)[..3], expected);
        let sweeps = plan(name).sweeps;
        assert!(sweeps.iter().flat_map(|sweep| &sweep.points).all(|point| point.size == size));
        let nominal = &sweeps[0].points[1].link.duplex.forward;
        let bytes = (nominal.queue_bytes, nominal.bucket_bytes);
        assert_eq!((nominal.loss.mean(), bytes), (0.01, (Some(130_000), Some(10_000))));
    }
}

/// Plans that time codes: figure 3 of rc-udp over sizes, symbols and blocks, figure 3 of ttp over chunks.
#[test]
fn plans_of_codes_match_papers() {
    for (name, points, largest) in [("rc-udp/fig3", 24, 10_000_000), ("ttp/fig3", 19, 10_000_000)] {
        let plan = CodePlan::read(&file(name)).unwrap_or_else(|error| panic!("{error}")).expect("it names codes");
        assert_eq!(plan.name, name);
        let settings: Vec<_> = plan.sweeps.iter().flat_map(|sweep| &sweep.points).map(|(_, setting)| setting).collect();
        assert_eq!(settings.len(), points, "{name}");
        assert_eq!(settings.iter().map(|setting| setting.size).max(), Some(largest), "{name}");
        assert!(settings.iter().all(|setting| (128..=1024).contains(&setting.symbol)), "{name}");
    }
}

/// Simulated plans: figure 6 of arq over 0 to 100 ms in addition to the access link's own delay.
#[test]
fn plans_of_flows_match_papers() {
    let plan = SimPlan::read(&file("arq/fig6")).unwrap_or_else(|error| panic!("{error}")).expect("it has flows");
    assert_eq!((plan.name.as_str(), plan.seeds.len()), ("arq/fig6", 5), "five runs for each setting");
    for sweep in &plan.sweeps {
        let places: Vec<f64> = sweep.points.iter().map(|point| point.x - 2.0).collect();
        assert_eq!(places, [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
    }
    // Its sweeps show the same runs: three series, five seeds.
    assert_eq!(plan.cases().len(), 6 * 3 * 5);
}

/// rc-udp, section V-A and table I, with the capacities of the text: three pairs at once over random graphs of 50
/// nodes, and over ESnet.
#[test]
fn topologies_match_papers() {
    let second = Duration::from_secs(1);
    for name in ["rc-udp/fig5", "rc-udp/fig6"] {
        let plan = simulated(name);
        assert_eq!(plan.seeds.len(), 10, "{name}: ten runs");
        for (sweep, megabytes) in [(&plan.sweeps[0], 1), (&plan.sweeps[1], 30)] {
            let links: Vec<f64> = sweep.points.iter().map(|point| point.x).collect();
            assert_eq!(links, (100..=280).step_by(20).map(f64::from).collect::<Vec<_>>(), "{name}");
            let case = sweep.points[2].scenarios[0].case(7, second, second).expect("it was checked");
            let (network, sizes) = (&case.topology, case.flows.iter().map(|flow| flow.size).collect::<Vec<_>>());
            assert_eq!((network.routers().len(), network.links().len()), (50, 140 + 6), "{name}");
            let link = &network.links()[0].link.forward;
            let rate = link.rate.map(netsim::Rate::bits_per_second);
            assert_eq!((rate, link.queue_packets), (Some(5_000_000), Some(100)), "{name}");
            assert_eq!(sizes, [Some(megabytes * 1_000_000); 3], "{name}");
            let dropping = network.links().iter().filter(|link| link.link.forward.loss.mean() == 0.03).count();
            assert_eq!(dropping, if name == "rc-udp/fig6" { 70 } else { 0 }, "{name}");
        }
    }
    let case = simulated("rc-udp/fig7-highspeed").base.case(1, second, second).expect("it was checked");
    let network = &case.topology;
    assert_eq!((network.routers().len(), network.links().len(), case.flows.len()), (16, 20 + 6, 3));
    for link in &network.links()[..20] {
        let ends = [link.from, link.to].map(|end| network.name(end).expect("it has a name"));
        let is_slow = ends.iter().any(|end| ["boston", "boise"].contains(end));
        let rate = link.link.forward.rate.expect("a rate").bits_per_second();
        assert_eq!(rate, if is_slow { 10_000_000_000 } else { 100_000_000_000 }, "{ends:?}");
        assert_eq!(link.link.forward.queue_packets, Some(10_000), "{ends:?}");
    }
}

/// The goals for tunnels: each work, its round trip, and the compared peers.
#[test]
fn tunnel_plans_match_goals() {
    for (name, millis, size, beside) in [
        ("tunnel/keys", 300, 1, &["ssh-forward-cubic", "kcptun"][..]),
        ("tunnel/keys-beside", 300, 1, &["ssh-forward-cubic"]),
        ("tunnel/writes", 50, 1000, &["kcptun"]),
        ("tunnel/bulk", 25, 10_000_000, &["ssh-forward-cubic", "kcptun", "hysteria-bbr"]),
    ] {
        let plan = plan(name);
        let point = plan.sweeps[0].points.last().expect("a point");
        let link = &point.link.duplex;
        assert_eq!(
            (link.forward.delay, link.backward.delay),
            (Duration::from_millis(millis), link.forward.delay),
            "{name}"
        );
        assert_eq!((link.forward.loss.mean(), link.backward.loss.mean(), point.size), (0.05, 0.05, size), "{name}");
        assert_eq!(plan.seeds.len(), 5, "{name}");
        let has = |peer: &str| plan.peers.iter().any(|other| other == peer);
        assert!(beside.iter().chain(&["tunnel", "tunnel-told"]).all(|peer| has(peer)), "{name}: {:?}", plan.peers);
    }
    let keys = plan("tunnel/keys").writes.expect("writes");
    assert_eq!((keys.every_seconds, keys.poisson, keys.echo, keys.beside), (0.2, true, true, None));
    let beside = plan("tunnel/keys-beside").writes;
    assert_eq!(beside, Some(Writes { beside: Some(100_000_000), ..keys }));
    let writes = plan("tunnel/writes").writes.expect("writes");
    assert_eq!((writes.every_seconds, writes.poisson, writes.echo), (0.02, false, false));
}

#[test]
fn plans_take_at_most_two_days() {
    let names =
        ["tornado-transfer/fig1", "tornado-transfer/fig2", "tornado-transfer/fig3", "rc-udp/fig10", "rc-udp/fig11"];
    let names =
        names.into_iter().chain(["peers/table", "peers/bursts", "peers/reordering", "peers/fast", "kernel/tcp"]);
    let names = names.chain(["tunnel/keys", "tunnel/keys-beside", "tunnel/writes", "tunnel/bulk"]);
    for name in names {
        let plan = plan(name);
        assert_eq!(plan.name, name);
        let estimate = Estimate::of(&plan, &Agenda::new(&plan, &[], None, false), std::num::NonZeroUsize::MIN);
        println!(
            "{name}: {} cases, {:.2} to {:.2} h",
            plan.cases().len(),
            estimate.least / 3600.0,
            estimate.most / 3600.0
        );
        assert!(estimate.most < 48.0 * 3600.0, "{name}: {estimate:?}");
    }
}

/// Returns the cases of a simulated plan.
fn simulated(name: &str) -> SimPlan {
    let plan = SimPlan::read(&file(name)).unwrap_or_else(|error| panic!("{error}")).expect("it has flows");
    assert_eq!(plan.name, name);
    plan
}

/// Figures 5 to 14 and 16 to 20 of ttp: five losses, at least five sizes, ten runs at each point.
#[test]
fn ttp_plans_have_all_points() {
    for (name, figures, series) in
        [("ttp/short-slim", 5..=9, 6), ("ttp/long-fat", 10..=14, 9), ("ttp/friendliness", 16..=20, 3)]
    {
        let plan = simulated(name);
        assert_eq!((plan.seeds.len(), plan.series.len()), (10, series), "{name}");
        for (figure, loss) in figures.zip([0.0, 0.0001, 0.001, 0.01, 0.02]) {
            let sweep = plan.sweeps.iter().find(|sweep| sweep.name == format!("fig{figure}")).expect("its figure");
            assert!(sweep.points.len() >= 5, "{name}: {figure}");
            for scenario in sweep.points.iter().flat_map(|point| &point.scenarios) {
                let link: netsim::Duplex = scenario.link.parse().expect("a link");
                assert_eq!((link.forward.loss.mean(), link.backward.loss.mean()), (loss, 0.0), "{name}: {figure}");
            }
        }
    }
}

/// The held-out plan has twice as many cells as the tuning plan, and none of its links and seeds.
#[test]
fn tuning_and_held_out_cases_disjoint() {
    let (tune, held) = (simulated("auto/tune").cases(), simulated("auto/held").cases());
    assert!(held.len() >= 2 * tune.len(), "{} and {}", held.len(), tune.len());
    assert!(held.iter().all(|held| tune.iter().all(|tune| held.seed != tune.seed)));
    assert!(held.iter().all(|held| tune.iter().all(|tune| held.scenario.link != tune.scenario.link)));
}

/// The simulator's neighbour is calibrated in the cells in which the kernel's was measured.
#[test]
fn neighbour_plans_have_equal_cells() {
    let cells = |plan: &SimPlan| -> Vec<_> {
        let queues = |sweep: &lab::simulated::SimSweep| sweep.points.iter().map(|point| point.x).collect::<Vec<_>>();
        plan.sweeps.iter().map(|sweep| (sweep.name.clone(), queues(sweep))).collect()
    };
    let (kernel, model) = (cells(&simulated("neighbours/cubic")), cells(&simulated("neighbours/linux-tcp")));
    // The kernel's plan has further sweeps.
    assert_eq!(kernel[..4], model);
}

/// The directories of results: those with records.
fn results() -> Vec<PathBuf> {
    let directories = |directory: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let papers = directories(&file("x").with_file_name(""));
    let mut found: Vec<PathBuf> = papers.iter().flat_map(|paper| directories(paper)).collect();
    found.retain(|directory| directory.join(lab::results::PACKED).exists());
    found.sort();
    found
}

/// `cargo xtask figures --draw` writes them.
#[test]
fn verdicts_match_results() {
    let mut wrong = Vec::new();
    for directory in results() {
        let text = lab::commands::verdict_text(&directory).unwrap_or_else(|failure| panic!("{}", failure.message));
        let text = text.unwrap_or_else(|| panic!("{} is not judged", directory.display()));
        let stored = std::fs::read_to_string(directory.join("verdict.txt")).unwrap_or_default();
        wrong.extend((stored != text).then(|| directory.display().to_string()));
    }
    assert!(wrong.is_empty(), "stale verdict.txt: {wrong:#?}");
}

/// Returns the text of a file, or nothing.
fn text(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// A picture that differs from its records, or is empty, is stale: `cargo xtask figures --draw` writes them.
#[test]
fn pictures_match_results() {
    let mut wrong = Vec::new();
    for directory in results() {
        let drawn = lab::commands::pictures(&directory).unwrap_or_else(|failure| panic!("{}", failure.message));
        for (name, picture) in &drawn {
            let svg = directory.join(format!("{name}.svg"));
            let is_it = picture.as_ref().map_or_else(|| !svg.exists(), |picture| text(&svg) == *picture);
            wrong.extend((!is_it).then_some(svg));
        }
        let entries = std::fs::read_dir(&directory).expect("a directory").map(|entry| entry.expect("an entry").path());
        let is_picture = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "svg");
        let of_a_sweep = |path: &PathBuf| drawn.iter().any(|(name, _)| path.file_stem() == Some(name.as_ref()));
        wrong.extend(entries.filter(|path| is_picture(path) && !of_a_sweep(path)));
    }
    assert!(wrong.is_empty(), "stale pictures: {wrong:#?}");
    for (shown, of) in
        [("time-over-loss", "auto/untold/10mb-50ms.svg"), ("delay-of-small-writes", "tunnel/keys/loss.svg")]
    {
        let (shown, drawn) =
            (root().join(format!("docs/pictures/{shown}.svg")), root().join("lab/experiments").join(of));
        assert_eq!(text(&shown), text(&drawn), "the picture of {of} in docs/pictures differs");
    }
}

/// The directory of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns a text with one space in place of every run of white space.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Passages about measurements have their numbers from the records, and their paragraphs have no others.
#[test]
fn passages_match_results() {
    let passages = lab::commands::passages(&root().join("lab/experiments"));
    let passages = passages.unwrap_or_else(|failure| panic!("{}", failure.message));
    let documents: std::collections::BTreeSet<&PathBuf> = passages.iter().map(|(document, _)| document).collect();
    assert!(documents.contains(&PathBuf::from("README.md")));
    for document in documents {
        let of_it = || passages.iter().filter(|(other, _)| other == document).map(|(_, passage)| flowing(passage));
        let read = std::fs::read_to_string(root().join(document)).expect("the document");
        let whole = flowing(&read);
        for passage in of_it() {
            assert!(whole.contains(&passage), "{} lacks the passage: {passage}", document.display());
        }
        // A link to results marks a paragraph, or an item of a list, about measurements.
        for paragraph in read.replace("\n- ", "\n\n- ").split("\n\n").map(flowing) {
            if paragraph.contains("experiments/") && paragraph.contains("verdict.txt)") {
                let rest = of_it().fold(paragraph, |rest, passage| rest.replace(&passage, ""));
                assert!(!rest.contains(|char: char| char.is_ascii_digit()), "numbers without a record: {rest}");
            }
        }
    }
}

/// Every figure and table of the five documents that shows a measurement.
#[test]
fn every_paper_item_has_a_verdict() {
    let documents = [
        ("rc-udp", &["3", "5", "6", "7", "8", "10", "11"][..]),
        ("tornado-transfer", &["1", "2", "3"]),
        ("lt-tcp", &["2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "3.1", "3.2"]),
        ("arq", &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]),
        (
            "ttp",
            &["3", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19", "20", "21"],
        ),
    ];
    let table = std::fs::read_to_string(file("x").with_file_name("VERDICTS.md")).expect("the table of all verdicts");
    let items = documents.iter().flat_map(|(name, items)| items.iter().map(move |item| format!("{name} {item}")));
    let items: Vec<String> = items.collect();
    assert_eq!(items.len(), 49);
    let missing: Vec<_> = items.iter().filter(|item| !table.contains(&format!("| [{item}]("))).collect();
    assert!(missing.is_empty(), "not judged: {missing:?}");
}
