//! Links of a plan: the base, with values inserted.

use netsim::{Duplex, TextError};

use super::LinkText;

/// The separator of the two directions of a link.
pub(super) const BETWEEN: &str = " / ";
const PERFECT: &str = "perfect";

/// Returns the base link with other `parts` (`loss=5%,burst=5`) in both directions, or one half of `loss=5% / loss=0%`
/// in each, which replace those with the same key or are added. Without loss there are no bursts: no loss removes them.
///
/// # Errors
/// An invalid link.
pub(super) fn with(base: &str, parts: &str) -> Result<LinkText, TextError> {
    let text = put(base, parts);
    let duplex = text.parse()?;
    Ok(LinkText { text, duplex })
}

/// Returns its text, valid or not.
pub(crate) fn put(base: &str, parts: &str) -> String {
    match (base.split_once(BETWEEN), parts.split_once(BETWEEN)) {
        (None, None) => merged(base, parts),
        (base_ways, part_ways) => {
            let (forward, backward) = base_ways.unwrap_or((base, base));
            let (forward_parts, backward_parts) = part_ways.unwrap_or((parts, parts));
            [merged(forward, forward_parts), merged(backward, backward_parts)].join(BETWEEN)
        }
    }
}

/// Returns the same link with the random streams of a seed, as printed by the model, which gives a link only one text
/// in records.
pub(super) fn seeded(text: &str, seed: u64) -> String {
    let directions: Vec<String> =
        text.split(BETWEEN).map(|direction| merged(direction, &format!("seed={seed}"))).collect();
    let text = directions.join(BETWEEN);
    text.parse::<Duplex>().map_or(text, |duplex| duplex.to_string())
}

fn merged(direction: &str, parts: &str) -> String {
    let of = |text: &str| -> Vec<String> {
        let parts = text.trim().split(',').map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty() && part != PERFECT).collect()
    };
    let mut all = of(direction);
    for part in of(parts) {
        match all.iter_mut().find(|other| key(other) == key(&part)) {
            Some(other) => *other = part,
            None => all.push(part),
        }
    }
    let lossless = |part: &String| key(part) == "loss" && matches!(value(part), "0" | "0%");
    if all.iter().any(lossless) {
        all.retain(|part| key(part) != "burst");
    }
    if all.is_empty() { PERFECT.to_owned() } else { all.join(",") }
}

fn key(part: &str) -> &str {
    part.split_once('=').map_or(part, |(key, _)| key.trim())
}

fn value(part: &str) -> &str {
    part.split_once('=').map_or("", |(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_replace_the_base_in_both_directions() {
        for (base, parts, text) in [
            ("rate=10M,delay=5ms", "loss=1%", "rate=10M,delay=5ms,loss=1%"),
            ("rate=10M,loss=3%", "rate=5M", "rate=5M,loss=3%"),
            ("rate=10M / rate=1M,loss=2%", "loss=1%", "rate=10M,loss=1% / rate=1M,loss=1%"),
            ("rate=10M", "loss=1% / loss=0%", "rate=10M,loss=1% / rate=10M,loss=0%"),
            ("rate=10M / rate=1M", "loss=1% / perfect", "rate=10M,loss=1% / rate=1M"),
            ("perfect", "delay=5ms", "delay=5ms"),
            ("perfect", "", "perfect"),
            ("loss=5%,burst=5", "loss=0%", "loss=0%"),
            ("delay=1ms", "loss=5%, burst=5", "delay=1ms,loss=5%,burst=5"),
        ] {
            assert_eq!(with(base, parts).map(|link| link.text), Ok(text.to_owned()), "{base} with {parts}");
        }
        assert!(with("rate=10M", "loss=120%").is_err());
    }

    #[test]
    fn seeded_sets_the_seed_of_both_directions() {
        let link = seeded("rate=10M,delay=5ms", 7);
        assert_eq!(link, "rate=10M,delay=5ms,seed=7");
        let link = seeded("rate=10M / rate=1M", 7);
        assert_eq!(link, "rate=10M,seed=7 / rate=1M,seed=7");
        assert_eq!(seeded("rate=10000k,seed=3", 0), "rate=10M");
    }
}
