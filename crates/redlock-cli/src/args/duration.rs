//! Durations as people write them.

use std::time::Duration;

/// How long to wait for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// One try.
    Once,
    /// So long.
    For(Duration),
    /// Until it is there.
    Forever,
}

/// Reads `10s`, `1m 30s`, `200ms`; zero needs no unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match text.parse::<u64>() {
            Ok(0) => Ok(Duration::ZERO),
            _ => Err(format!("the unit is missing: write {text}s for seconds, {text}ms, {text}m, {text}h")),
        };
    }
    humantime::parse_duration(text)
        .map_err(|_| "not a duration: write a number and a unit, such as 500ms, 10s, 5m or 1h 30m".to_owned())
}

/// A [`duration`], or `forever`. Zero is one try.
pub(crate) fn patience(text: &str) -> Result<Patience, String> {
    if text.trim().eq_ignore_ascii_case("forever") {
        return Ok(Patience::Forever);
    }
    match duration(text) {
        Ok(Duration::ZERO) => Ok(Patience::Once),
        Ok(duration) => Ok(Patience::For(duration)),
        Err(reason) => Err(format!("{reason}; 0 for one try, or forever")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, expected) in [
            ("0", Duration::ZERO),
            ("0s", Duration::ZERO),
            ("200ms", Duration::from_millis(200)),
            ("10s", Duration::from_secs(10)),
            (" 1m 30s ", Duration::from_secs(90)),
            ("1h", Duration::from_secs(3600)),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        assert!(duration("30").unwrap_err().contains("write 30s"));
        for text in ["", "s", "-1s", "10 parsecs", "1.5.s", "999999999999999999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn patience_may_be_nothing_or_endless() {
        assert_eq!(patience("0"), Ok(Patience::Once));
        assert_eq!(patience("0ms"), Ok(Patience::Once));
        assert_eq!(patience("Forever"), Ok(Patience::Forever));
        assert_eq!(patience("5m"), Ok(Patience::For(Duration::from_secs(300))));
        assert!(patience("ever").unwrap_err().ends_with("0 for one try, or forever"));
    }
}
