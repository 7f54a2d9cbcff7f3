//! Records as a table for other programs.

use super::{Ending, Record};

const COLUMNS: &str = "id,experiment,sweep,peer,link,topology,size,seed,repeat,told,cap_seconds,attempt,date,end,seconds,reason,bytes_there,\
equal,wire_bytes,model_drops,valid,reasons,lateness_p50_us,lateness_p99_us,lateness_max_us,ring_drops,unexplained_drops,\
cpu_share,kernel,versions,congestion,offloads,back_end,encrypted,clock_starts,clock_ends";

/// Further columns, if any of the records is of small writes.
const OF_WRITES: &str = ",writes,every_seconds,poisson,writes_seconds,echo,beside,count,delay_p50_ms,delay_p90_ms,delay_p99_ms,\
delay_max_ms,timed_wire_bytes,timed_wire_bytes_there";

/// Returns one line for each record below a line of names, in the format of RFC 4180 but with plain line ends. Unknown
/// values are empty.
pub fn csv(records: &[Record]) -> String {
    let are_writes = records.iter().any(|record| record.case.writes.is_some());
    let mut text = format!("{COLUMNS}{}\n", if are_writes { OF_WRITES } else { "" });
    for record in records {
        let further = if are_writes { of_writes(record) } else { Vec::new() };
        let fields: Vec<String> = fields(record).iter().chain(&further).map(|field| quoted(field)).collect();
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn fields(record: &Record) -> Vec<String> {
    let Record { case, outcome, .. } = record;
    let (verdict, environment) = (&outcome.verdict, &outcome.environment);
    let (end, seconds, reason) = match &outcome.ending {
        Ending::Finished { seconds } => ("finished", seconds.to_string(), String::new()),
        Ending::NotFinished => ("not-finished", String::new(), String::new()),
        Ending::Failed { reason } => ("failed", String::new(), reason.clone()),
    };
    let versions: Vec<String> =
        environment.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    vec![
        record.id.clone(),
        case.experiment.clone(),
        case.sweep.clone(),
        case.peer.clone(),
        case.link.clone(),
        case.topology.as_ref().map_or_else(String::new, |topology| topology.file.display().to_string()),
        case.size.to_string(),
        case.seed.to_string(),
        case.repeat.to_string(),
        case.fixed_rate.map_or_else(String::new, |rate| rate.to_string()),
        case.cap_seconds.to_string(),
        record.attempt.to_string(),
        record.date.clone(),
        end.to_owned(),
        seconds,
        reason,
        outcome.bytes_there.to_string(),
        outcome.equal.map_or_else(String::new, |equal| equal.to_string()),
        outcome.wire_bytes.to_string(),
        outcome.model_drops.to_string(),
        verdict.is_valid().to_string(),
        verdict.reasons.join("; "),
        verdict.lateness.p50_us.to_string(),
        verdict.lateness.p99_us.to_string(),
        verdict.lateness.max_us.to_string(),
        verdict.ring_drops.to_string(),
        verdict.unexplained_drops.to_string(),
        verdict.cpu_share.to_string(),
        record.kernel.clone(),
        versions.join("; "),
        environment.congestion.clone().unwrap_or_default(),
        environment.offloads.clone(),
        environment.back_end.clone(),
        environment.encrypted.to_string(),
        outcome.clock.starts.clone(),
        outcome.clock.ends.clone(),
    ]
}

fn of_writes(record: &Record) -> Vec<String> {
    let text = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
    let whole = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let (writes, written) = (record.case.writes, record.outcome.written);
    let delays = written.map(|written| written.delays);
    vec![
        writes.is_some().to_string(),
        text(writes.map(|writes| writes.every_seconds)),
        writes.map_or_else(String::new, |writes| writes.poisson.to_string()),
        text(writes.map(|writes| writes.seconds)),
        writes.map_or_else(String::new, |writes| writes.echo.to_string()),
        whole(writes.and_then(|writes| writes.beside)),
        whole(delays.map(|delays| delays.count)),
        text(delays.map(|delays| delays.p50_ms)),
        text(delays.map(|delays| delays.p90_ms)),
        text(delays.map(|delays| delays.p99_ms)),
        text(delays.map(|delays| delays.max_ms)),
        whole(written.map(|written| written.wire_bytes)),
        whole(written.map(|written| written.wire_bytes_there)),
    ]
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::{record, written};
    use super::*;

    #[test]
    fn csv_has_a_line_for_each_record() {
        let mut late = record(0.0);
        late.outcome.ending = Ending::Failed { reason: "said \"no\", twice".into() };
        late.outcome.verdict.reasons = vec!["late".into(), "ring".into()];
        late.case.fixed_rate = None;
        let text = csv(&[record(1.25), late]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let id = record(1.25).id;
        assert_eq!(
            lines[1],
            format!(
                "{id},e,s,tcp-cubic,\"rate=10M,seed=1\",,1000000,1,0,9500000,60,1,2026-01-02T03:04:05Z,finished,1.25,,1000000,true,\
                 1100000,7,true,,0,0,0,0,0,0,6.18.0,tcp 1,cubic,off,veth,false,connect,last byte"
            )
        );
        assert!(lines[2].contains(",failed,,\"said \"\"no\"\", twice\",") && lines[2].contains(",false,late; ring,"));
        assert_eq!(COLUMNS.split(',').count(), fields(&record(1.0)).len());
    }

    #[test]
    fn csv_writes_have_further_columns() {
        let text = csv(&[written(50.0, 80.5), record(1.0)]);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[1].ends_with(",true,0.02,false,2,true,1000000,100,50,50,80.5,80.5,2500,2000"), "{}", lines[1]);
        assert!(lines[2].ends_with(",false,,,,,,,,,,,,"), "{}", lines[2]);
        assert_eq!(lines[0].split(',').count(), lines[2].replace("\"rate=10M,seed=1\"", "").split(',').count());
    }
}
