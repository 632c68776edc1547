//! What the nodes' answers add up to.

use std::collections::BTreeMap;
use std::time::Duration;

use super::look::Sight;

/// Who holds a resource, as far as the nodes have said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A majority of the nodes has this token.
    Held {
        /// Whose it is.
        token: String,
        /// At how many nodes.
        nodes: usize,
        /// How long until it is no majority any more, if nobody renews it.
        left: Option<Duration>,
    },
    /// So many nodes are free that whoever comes gets a majority.
    Free,
    /// Nobody has a majority, and nobody can get one now.
    Split,
    /// Too few nodes have answered to tell.
    Unknown,
}

impl Verdict {
    /// Adds up what was seen.
    pub(crate) fn of(sights: &[Sight]) -> Self {
        let required = sights.len() / 2 + 1;
        let answers = || sights.iter().filter_map(|sight| sight.seen.as_ref().ok());
        let silent = sights.len() - answers().count();
        let mut holders: BTreeMap<&str, Vec<Option<Duration>>> = BTreeMap::new();
        for holding in answers().flatten() {
            holders.entry(&holding.token).or_default().push(holding.left);
        }
        let most = holders.values().map(Vec::len).max().unwrap_or(0);
        if most >= required {
            let majority = holders.into_iter().find(|(_, left)| left.len() >= required);
            return majority.map_or(Self::Unknown, |(token, mut left)| {
                // The longest first, and last of all those that never end: the majority goes with its last member.
                left.sort_by_key(|left| std::cmp::Reverse(left.unwrap_or(Duration::MAX)));
                let end = left.get(required - 1).copied().flatten();
                Self::Held { token: token.to_owned(), nodes: left.len(), left: end }
            });
        }
        if answers().filter(|seen| seen.is_none()).count() >= required {
            Self::Free
        } else if most + silent < required {
            Self::Split
        } else {
            Self::Unknown
        }
    }

    /// Its name.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::Free => "free",
            Self::Split => "split",
            Self::Unknown => "unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::Holding;
    use super::*;

    /// `a3` is a node that has the token `a` for three more seconds, `a` one that has it for ever, `-` a free
    /// one and `!` one that is silent.
    fn verdict(nodes: &str) -> Verdict {
        let sights: Vec<Sight> = nodes.split(' ').map(sight).collect();
        Verdict::of(&sights)
    }

    fn sight(node: &str) -> Sight {
        let seen = match node {
            "-" => Ok(None),
            "!" => Err("down".to_owned()),
            held => {
                let (token, left) = held.split_at(1);
                let left = left.parse().ok().map(Duration::from_secs);
                Ok(Some(Holding { token: token.to_owned(), left }))
            }
        };
        Sight { node: "redis".to_owned(), seen }
    }

    fn held(nodes: usize, left: Option<u64>) -> Verdict {
        Verdict::Held { token: "a".to_owned(), nodes, left: left.map(Duration::from_secs) }
    }

    #[test]
    fn a_majority_holds_until_its_last_member_goes() {
        assert_eq!(verdict("a5"), held(1, Some(5)));
        assert_eq!(verdict("a5 a3 a9"), held(3, Some(5)));
        assert_eq!(verdict("a5 a3 b9"), held(2, Some(3)));
        assert_eq!(verdict("a5 a3 !"), held(2, Some(3)));
        assert_eq!(verdict("a5 a -"), held(2, Some(5)));
        assert_eq!(verdict("a a -"), held(2, None));
    }

    #[test]
    fn free_is_what_somebody_could_get() {
        for nodes in ["-", "- - -", "a5 - -", "- - !", "a1 b1 - - -"] {
            assert_eq!(verdict(nodes), Verdict::Free, "{nodes}");
        }
    }

    #[test]
    fn split_is_what_nobody_has_and_nobody_could_get() {
        for nodes in ["a1 b1 -", "a1 b1 c1", "a1 a1 b1 b1 -", "a1 b1 c1 d1 !"] {
            assert_eq!(verdict(nodes), Verdict::Split, "{nodes}");
        }
    }

    #[test]
    fn silence_may_hide_anything() {
        for nodes in ["!", "! ! !", "a1 ! !", "a1 b1 !", "a1 - !", "- ! !", "a1 a1 b1 - !"] {
            assert_eq!(verdict(nodes), Verdict::Unknown, "{nodes}");
        }
    }
}
