//! Who holds a key: the token in it. In which order holders came: the fencing token.

use core::fmt;
use core::num::NonZeroU64;

/// The value that marks a key as ours: 20 bytes, 40 lower-case hexadecimal characters on the wire.
///
/// Every ATTEMPT to acquire has a token of its own. With one token for several attempts a delayed
/// delete of the first attempt can meet the key of the second, and a third party gets in while the
/// second attempt counts as held.
///
/// `Debug` shows only the last two bytes: whoever knows a token can release the lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token([u8; Self::LEN]);

impl Token {
    /// Length in bytes: 160 bits, as the Redlock description asks for.
    pub const LEN: usize = 20;

    /// A token made of these bytes. They must come from a cryptographic random source; the machine
    /// derives the token of each attempt from one such base with [`for_attempt`](Self::for_attempt).
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The token of attempt number `attempt` for a handle with this random base: the number is added,
    /// wrapping, to the last four bytes. Distinct attempts of one handle never share a token, and two
    /// handles collide only if their first 128 random bits do.
    #[must_use]
    pub const fn for_attempt(mut self, attempt: u32) -> Self {
        let [.., a, b, c, d] = self.0;
        let [a, b, c, d] = u32::from_be_bytes([a, b, c, d]).wrapping_add(attempt).to_be_bytes();
        self.0[Self::LEN - 4] = a;
        self.0[Self::LEN - 3] = b;
        self.0[Self::LEN - 2] = c;
        self.0[Self::LEN - 1] = d;
        self
    }

    /// The text that stands in Redis.
    #[must_use]
    pub fn to_hex(&self) -> TokenHex {
        let mut text = [0_u8; Self::LEN * 2];
        let (pairs, _) = text.as_chunks_mut();
        for (pair, byte) in pairs.iter_mut().zip(self.0) {
            *pair = PAIRS[usize::from(byte)];
        }
        TokenHex(text)
    }
}

/// Both digits of each byte: the text is made for every command.
const PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 0x0f]];
        byte += 1;
    }
    pairs
};

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(..{:02x}{:02x})", self.0[Self::LEN - 2], self.0[Self::LEN - 1])
    }
}

/// A [`Token`] as the 40 lower-case hexadecimal characters that stand in Redis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHex([u8; Token::LEN * 2]);

impl TokenHex {
    /// The characters as bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The characters as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only hexadecimal digits are ever written.
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for TokenHex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHex(..{})", &self.as_str()[Token::LEN * 2 - 4..])
    }
}

/// A number that grows with every acquisition of a fenced lease, for the protected resource to check.
///
/// A lease can end without its holder noticing in time: the process was paused, the machine was
/// suspended, a clock jumped. The resource that remembers the highest fencing token it has seen, and
/// refuses lower ones, stays safe even then. The counter lives beside the lock on one logical Redis,
/// so it is strictly increasing as long as that Redis keeps its data.
///
/// ```
/// use redlock_core::FencingToken;
///
/// let first = FencingToken::new(1).unwrap();
/// let second = FencingToken::new(2).unwrap();
/// assert!(second > first);
/// assert!(FencingToken::new(0).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroU64);

impl FencingToken {
    /// The fencing token with this number; `None` for zero, which no acquisition ever gets.
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number, to be handed to the protected resource.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fencing_token_is_its_number() {
        assert_eq!(
            [0, 1, 42, u64::MAX].map(|number| FencingToken::new(number).map(FencingToken::get)),
            [None, Some(1), Some(42), Some(u64::MAX),]
        );
    }

    #[test]
    fn each_attempt_has_its_own_token_and_keeps_the_random_part() {
        let base = Token::from_bytes([0xff; Token::LEN]);
        let first = base.for_attempt(1);
        assert_eq!(first.as_bytes()[..16], base.as_bytes()[..16]);
        assert_eq!(first.as_bytes()[16..], [0, 0, 0, 0]);
        assert_ne!(first, base.for_attempt(2));
        assert_eq!(base.for_attempt(0), base);
    }

    #[test]
    fn the_wire_form_is_forty_lower_case_hex_characters() {
        let mut bytes = [0; Token::LEN];
        bytes[0] = 0xAB;
        bytes[19] = 0x0F;
        let hex = Token::from_bytes(bytes).to_hex();
        assert_eq!(hex.as_str(), "ab0000000000000000000000000000000000000f");
        for byte in 0..=u8::MAX {
            let hex = Token::from_bytes([byte; Token::LEN]).to_hex();
            assert_eq!(hex.as_str(), alloc::format!("{byte:02x}").repeat(Token::LEN));
        }
    }

    #[test]
    fn debug_does_not_give_the_token_away() {
        let token = Token::from_bytes([0xaa; Token::LEN]);
        assert_eq!(alloc::format!("{token:?}"), "Token(..aaaa)");
        assert_eq!(alloc::format!("{:?}", token.to_hex()), "TokenHex(..aaaa)");
    }
}
