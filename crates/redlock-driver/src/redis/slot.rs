//! Where a Redis Cluster keeps a key.

use crc16::{State, XMODEM};

/// The hash slot of `key` in a Redis Cluster, from 0 to 16383.
///
/// If the key contains `{...}` with something between its first `{` and the next `}`, only that tag is
/// hashed, so that keys with one tag share a slot. Otherwise the whole key is.
#[must_use]
pub(crate) fn hash_slot(key: &[u8]) -> u16 {
    State::<XMODEM>::calculate(tag(key)) % SLOTS
}

fn tag(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|&byte| byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    });
    tag.unwrap_or(key)
}

const SLOTS: u16 = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    /// What `CLUSTER KEYSLOT` of a Redis 7.0 server answers.
    #[test]
    fn agrees_with_a_server() {
        let table = [
            ("", 0),
            ("foo", 12_182),
            ("bar", 5_061),
            ("hello", 866),
            ("123456789", 12_739),
            ("user1000", 3_443),
            ("{user1000}.following", 3_443),
            ("42", 8_000),
            ("orders:{42}:lock", 8_000),
            ("{a}x", 15_495),
            ("foo{bar}{zap}", 5_061),
            ("foo{{bar}}zap", 4_015),
            ("foo{}{bar}", 8_363),
            ("{}", 15_257),
            ("foo{", 7_673),
            ("foo}x{", 14_261),
            ("a}b{c}d", 7_365),
        ];
        for (key, slot) in table {
            assert_eq!(hash_slot(key.as_bytes()), slot, "{key:?}");
        }
    }

    #[test]
    fn keys_with_one_tag_share_a_slot() {
        assert_eq!(hash_slot(b"{order}:lock"), hash_slot(b"{order}:fence"));
        assert_ne!(hash_slot(b"order:lock"), hash_slot(b"order:fence"));
    }
}
