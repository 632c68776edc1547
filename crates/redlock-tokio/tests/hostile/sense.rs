//! What bytes on the wire say, judged without the client under test.

/// The bytes of one answer, and what a reader who knows the protocol may take them for.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) bytes: Vec<u8>,
}

impl Grant {
    /// A plain `OK`.
    pub(crate) fn is_ok(&self) -> bool {
        self.starts_with(b"+OK\r\n")
    }

    /// The number 1.
    pub(crate) fn is_one(&self) -> bool {
        self.number() == Some(1)
    }

    /// A fencing token, as an integer or as text.
    pub(crate) fn fenced(&self) -> Option<u64> {
        let number = self.number().or_else(|| self.text()).filter(|&number| number > 0)?;
        u64::try_from(number).ok()
    }

    fn starts_with(&self, line: &[u8]) -> bool {
        self.answer().starts_with(line)
    }

    /// Behind an attribute, which is about an answer and not part of it.
    fn answer(&self) -> &[u8] {
        self.bytes.strip_prefix(ATTRIBUTE).unwrap_or(&self.bytes)
    }

    /// `:number`
    fn number(&self) -> Option<i128> {
        let digits = line(self.answer().strip_prefix(b":")?)?.0;
        digits.parse().ok()
    }

    /// `$length`, and as many digits; or the same with `=` and a `txt:` before them.
    fn text(&self) -> Option<i128> {
        let (plain, rest) = match self.answer().split_first()? {
            (b'$', rest) => (true, rest),
            (b'=', rest) => (false, rest),
            _ => return None,
        };
        let (length, rest) = line(rest)?;
        let text = rest.get(..length.parse().ok()?)?;
        let digits =
            if plain { text } else { text.strip_prefix(b"txt:").or_else(|| text.strip_prefix(b"mkd:"))? };
        let canonical = digits.iter().all(u8::is_ascii_digit) && !digits.starts_with(b"0");
        std::str::from_utf8(digits).ok().filter(|_| canonical)?.parse().ok()
    }
}

/// Up to the end of the line, and behind it. Blanks around a number are forgiven, as the `redis` crate does.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?.trim(), &bytes[end + 2..]))
}

/// An attribute that the server may put in front.
pub(crate) const ATTRIBUTE: &[u8] = b"|1\r\n+ttl\r\n:3600\r\n";
