//! How many nodes make a majority.

/// The smallest number of nodes that any two majorities of `nodes` must share a member of:
/// `nodes / 2 + 1`.
///
/// This is the whole safety argument of Redlock in one line. Two clients that each hold a key on
/// that many of the same nodes hold it on at least one node in common, and one node gives a key to
/// one client only (source: the Redlock description in the Redis documentation).
///
/// ```
/// use redlock_core::quorum;
///
/// assert_eq!(quorum(1), 1);
/// assert_eq!(quorum(3), 2);
/// assert_eq!(quorum(5), 3);
/// ```
#[must_use]
pub const fn quorum(nodes: usize) -> usize {
    nodes / 2 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn any_two_majorities_share_a_node() {
        for nodes in 1..=9_usize {
            let majorities: Vec<u32> =
                (0_u32..1 << nodes).filter(|set| set.count_ones() as usize >= quorum(nodes)).collect();
            for a in &majorities {
                assert!(majorities.iter().all(|b| a & b != 0), "{nodes} nodes");
            }
        }
    }

    #[test]
    fn one_node_fewer_is_not_a_majority() {
        for nodes in 1..=255_usize {
            assert!(quorum(nodes) * 2 > nodes);
            assert!((quorum(nodes) - 1) * 2 <= nodes);
        }
    }
}
