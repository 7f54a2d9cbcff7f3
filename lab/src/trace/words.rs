//! Descriptions of names in a trace.

/// The longest shown unknown name.
const LONGEST: usize = 40;

/// Returns the action of a controller, by its mode and phase (`ControllerState` of the engine).
pub(super) fn action(mode_and_phase: &str) -> String {
    known_action(mode_and_phase).map_or_else(|| shortened(mode_and_phase), str::to_owned)
}

/// Returns the action of a controller of the engine; `None` for an unknown mode or phase.
fn known_action(mode_and_phase: &str) -> Option<&'static str> {
    let (mode, phase) = mode_and_phase.split_once(' ').unwrap_or((mode_and_phase, ""));
    Some(match (mode, phase) {
        (_, "start") => "searching for the rate",
        ("fixed", _) => "fixed rate",
        ("compete", "cruise") => "full rate in a queue shared with other traffic",
        (_, "cruise") => "full rate with a short queue",
        (_, "down") => "slightly reduced rate, to measure the path's own loss",
        (_, "drain") => "far reduced rate, to empty the queue",
        _ => return None,
    })
}

/// Returns the action of a controller, and the limit of its rate when the action began.
pub(super) fn state(mode_and_phase: &str, constraint: &str) -> String {
    let Some(does) = known_action(mode_and_phase) else { return shortened(mode_and_phase) };
    let why = match constraint {
        "search" | "fixed-rate" | "" => return does.to_owned(),
        "path" => "limited by the path",
        "policer" => "limited by a policer",
        "neighbors" => "path shared with other traffic",
        "rate-limit" => "limited by the rate limit",
        "overload" => "fixed rate far above capacity",
        other => return format!("{does}: {}", shortened(other)),
    };
    format!("{does}: {why}")
}

/// Returns the bottleneck of a sender, as decided by its engine (`SendLimit` and `RateConstraint`).
pub(super) fn limit(limited_by: &str) -> String {
    let words = match limited_by {
        "search" => "limited by: search for the rate",
        "path" => "limited by: path",
        "policer" => "limited by: policer",
        "neighbors" => "limited by: shared path",
        "fixed-rate" => "limited by: fixed rate",
        "overload" => "limited by: fixed rate above capacity",
        "rate-limit" => "limited by: rate limit",
        // Traces of earlier releases.
        "window" => "limited by: window",
        "pacing" => "limited by: pacing",
        "source" => "waiting for the source",
        "receiver" => "waiting for the receiver",
        "nothing" => "nothing to send",
        other => return shortened(other),
    };
    words.to_owned()
}

/// Returns the bottleneck of a transfer, by the name that its program shows (`ForecastLimit`), which includes disks,
/// memory and sockets.
pub(super) fn bottleneck(name: &str) -> String {
    format!("limited by: {}", shortened(name))
}

/// Bounds the length of an unknown name from a file.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_described() {
        assert_eq!(state("default start", "search"), "searching for the rate");
        assert_eq!(state("default cruise", "path"), "full rate with a short queue: limited by the path");
        assert_eq!(state("fixed fixed", "fixed-rate"), "fixed rate");
        assert_eq!(state("own dance", "path"), "own dance");
        assert_eq!(state("default cruise", "rate-limit"), "full rate with a short queue: limited by the rate limit");
        assert_eq!(limit("window"), "limited by: window");
        assert_eq!(limit("rate-limit"), bottleneck("rate limit"));
        assert_eq!(limit(&"x".repeat(1000)).len(), 40);
    }
}
