//! What names in a trace mean, in words.

/// The longest name that is passed on without being known.
const LONGEST: usize = 40;

/// Returns what a controller does, by its mode and phase (`ControllerState` of the engine).
pub(super) fn doing(mode_and_phase: &str) -> String {
    known(mode_and_phase).map_or_else(|| shortened(mode_and_phase), str::to_owned)
}

/// Returns what a controller of the engine does; `None` for a mode or phase that no controller here has.
fn known(mode_and_phase: &str) -> Option<&'static str> {
    let (mode, phase) = mode_and_phase.split_once(' ').unwrap_or((mode_and_phase, ""));
    Some(match (mode, phase) {
        (_, "start") => "searches for the path's rate",
        ("fixed", _) => "keeps the rate that it was given",
        ("compete", "cruise") => "fills the pipe beside others, whose queue it shares",
        (_, "cruise") => "fills the pipe and keeps the queue short",
        (_, "down") => "sends a little less, to learn the path's own loss",
        (_, "drain") => "sends far less, to let the queue run empty",
        _ => return None,
    })
}

/// Returns what a controller does, and what kept it from sending faster when it began to.
pub(super) fn state(mode_and_phase: &str, constraint: &str) -> String {
    let Some(does) = known(mode_and_phase) else { return shortened(mode_and_phase) };
    let why = match constraint {
        "search" | "fixed-rate" | "" => return does.to_owned(),
        "path" => "the path carries no more",
        "policer" => "a policer drops what exceeds its rate",
        "neighbors" => "others take their share of the path",
        "rate-limit" => "no faster than the limit that was set",
        "overload" => "the path carries far less than that",
        other => return format!("{does}: {}", shortened(other)),
    };
    format!("{does}: {why}")
}

/// Returns what holds a sender back, as its engine has decided (`SendLimit` and `RateConstraint`).
pub(super) fn limit(limited_by: &str) -> String {
    let words = match limited_by {
        "search" => "limited by: finding the rate",
        "path" => "limited by: path",
        "policer" => "limited by: policer",
        "neighbors" => "limited by: shared path",
        "fixed-rate" => "limited by: set rate",
        "overload" => "limited by: set rate above the path",
        "rate-limit" => "limited by: rate limit",
        // Traces of earlier releases.
        "window" => "limited by the window",
        "pacing" => "limited by the pace of the rate",
        "source" => "waits for the bytes of the source",
        "receiver" => "waits for the receiver",
        "nothing" => "has nothing to send",
        other => return shortened(other),
    };
    words.to_owned()
}

/// Returns what holds a transfer back, by the name that its program has for it (`ForecastLimit`): it knows of disks, memory
/// and sockets as well, and shows the same name itself.
pub(super) fn bottleneck(name: &str) -> String {
    format!("limited by: {}", shortened(name))
}

/// Bounds a name that a file has made up.
pub(super) fn shortened(name: &str) -> String {
    name.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_words() {
        assert_eq!(state("default start", "search"), "searches for the path's rate");
        assert_eq!(
            state("default cruise", "path"),
            "fills the pipe and keeps the queue short: the path carries no more"
        );
        assert_eq!(state("fixed fixed", "fixed-rate"), "keeps the rate that it was given");
        assert_eq!(state("own dance", "path"), "own dance");
        assert_eq!(
            state("default cruise", "rate-limit"),
            "fills the pipe and keeps the queue short: no faster than the limit that was set"
        );
        assert_eq!(limit("window"), "limited by the window");
        assert_eq!(limit("rate-limit"), bottleneck("rate limit"));
        assert_eq!(limit(&"x".repeat(1000)).len(), 40);
    }
}
