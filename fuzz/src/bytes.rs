//! An input as an endless row of small numbers.

/// Reads bytes from the front. When there are none left, they are all zero.
///
/// One byte is one decision, so that a fuzzer that changes a byte changes one thing, and one that cuts a piece
/// out leaves the rest as it was.
#[derive(Debug)]
pub(crate) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) const fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    /// A number below `count`, which must not be zero.
    pub(crate) fn below(&mut self, count: u8) -> u8 {
        self.byte() % count
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }
}
