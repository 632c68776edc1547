//! A second opinion on a server's answer: a small reader of the protocol that shares nothing with what is
//! tested.
//!
//! It is written from the protocol's description, except where the parser of the `redis` crate is known to
//! take more than that. None of this makes a yes out of something else:
//! - white space around a number;
//! - any negative length for the length -1;
//! - anything at all after the `_` of a nil;
//! - a format of any length before the colon of a verbatim string.

use std::borrow::Cow;
use std::str;

use redlock_core::Intent;

/// What the answer is, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape<'a> {
    Ok,
    Nil,
    Int(i64),
    Text(&'a [u8]),
    /// An error: its code word, and what follows.
    Error(Cow<'a, str>, Cow<'a, str>),
    Other,
    /// Not an answer, or not all of one.
    Broken,
}

/// What the answer means for an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Yes(Option<u64>),
    No,
    NotExecuted,
    Unknown,
}

/// `set`: whether it answers a `SET` that is to extend, instead of a script.
pub(super) fn meaning(shape: &Shape<'_>, intent: &Intent, set: bool) -> Meaning {
    let script = !matches!(intent, Intent::SetNxPx { .. });
    match (intent, shape) {
        (_, Shape::Error(code, _)) => match &**code {
            "ASK" | "BUSY" | "CLUSTERDOWN" | "CROSSSLOT" | "LOADING" | "MASTERDOWN" | "MOVED" | "NOAUTH"
            | "NOPERM" | "NOSCRIPT" | "READONLY" | "TRYAGAIN" | "WRONGPASS" => Meaning::NotExecuted,
            "MISCONF" | "NOREPLICAS" | "OOM" | "WRONGTYPE" if !script => Meaning::NotExecuted,
            _ => Meaning::Unknown,
        },
        (Intent::SetNxPx { .. }, Shape::Ok) => Meaning::Yes(None),
        (Intent::SetNxPx { .. }, Shape::Nil) => Meaning::No,
        (Intent::SetNxPx { .. }, _) => Meaning::Unknown,
        (Intent::CompareAndPexpire { .. }, shape) if set => match shape {
            Shape::Ok => Meaning::Yes(None),
            Shape::Nil => Meaning::No,
            _ => Meaning::Unknown,
        },
        (_, Shape::Int(0)) => Meaning::No,
        (Intent::FencedAcquire { .. }, Shape::Int(number)) if *number > 0 => {
            Meaning::Yes(Some(number.unsigned_abs()))
        }
        (Intent::FencedAcquire { .. }, Shape::Text(text)) => {
            counter(text).map_or(Meaning::Unknown, |number| Meaning::Yes(Some(number)))
        }
        (Intent::CompareAndDelete { .. } | Intent::CompareAndPexpire { .. }, Shape::Int(1)) => {
            Meaning::Yes(None)
        }
        _ => Meaning::Unknown,
    }
}

/// What an error says about the command, by itself: that it was not begun with, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    NoRight,
    NoMemory,
    NoSuchCommand,
    NoSuchOption,
    TooFewArguments,
    NoScript,
    Else,
}

pub(super) fn says(shape: &Shape<'_>) -> Says {
    let Shape::Error(code, text) = shape else { return Says::Else };
    let text = text.to_ascii_lowercase();
    match &**code {
        "NOPERM" => Says::NoRight,
        "OOM" => Says::NoMemory,
        "NOSCRIPT" => Says::NoScript,
        "ERR" if text.starts_with("unknown command") => Says::NoSuchCommand,
        "ERR" if text.starts_with("syntax error") => Says::NoSuchOption,
        "ERR" if text.starts_with("wrong number of arguments") => Says::TooFewArguments,
        _ => Says::Else,
    }
}

/// Digits that do not begin with a zero, and not too many of them.
fn counter(text: &[u8]) -> Option<u64> {
    let digits = !text.is_empty() && text[0] != b'0' && text.iter().all(u8::is_ascii_digit);
    let sum = |sum: u64, digit: &u8| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    if digits { text.iter().try_fold(0, sum) } else { None }
}

/// Reads the first value in `data`.
pub(super) fn read(data: &[u8]) -> Shape<'_> {
    Reader { rest: data }.value(DEEPEST).unwrap_or(Shape::Broken)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: u8) -> Option<Shape<'a>> {
        let depth = depth.checked_sub(1)?;
        Some(match self.take(1)?[0] {
            b'+' if self.line()? == b"OK" => Shape::Ok,
            b'+' => Shape::Other,
            b':' => Shape::Int(number(self.line()?)?),
            b'_' => self.line().map(|_| Shape::Nil)?,
            b'-' => error(self.line()?),
            b'!' => error(self.blob()??),
            b'$' => self.blob()?.map_or(Shape::Nil, Shape::Text),
            b'=' => {
                let text = self.blob()??;
                let colon = text.iter().position(|byte| *byte == b':')?;
                Shape::Text(&text[colon + 1..])
            }
            b'*' | b'~' => match self.count()? {
                Some(count) => self.skip(count, depth)?,
                None => Shape::Nil,
            },
            b'>' => {
                let count = self.count()?.unwrap_or_default();
                self.skip(count, depth)?
            }
            b'%' => self.count()?.and_then(|count| self.skip(count.checked_mul(2)?, depth))?,
            // Said about the value that follows.
            b'|' => {
                self.count()?.and_then(|count| self.skip(count.checked_mul(2)?, depth))?;
                self.value(depth)?
            }
            b',' | b'#' | b'(' => {
                self.line()?;
                Shape::Other
            }
            _ => return None,
        })
    }

    fn skip(&mut self, count: usize, depth: u8) -> Option<Shape<'a>> {
        (0..count).try_for_each(|_| self.value(depth).map(drop))?;
        Some(Shape::Other)
    }

    /// A length and so many bytes; `Some(None)` for a negative length.
    fn blob(&mut self) -> Option<Option<&'a [u8]>> {
        let Some(length) = self.count()? else { return Some(None) };
        let text = self.take(length)?;
        (self.take(2)? == b"\r\n").then_some(Some(text))
    }

    /// A length; `Some(None)` for a negative one.
    fn count(&mut self) -> Option<Option<usize>> {
        Some(usize::try_from(number(self.line()?)?).ok())
    }

    fn line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.windows(2).position(|pair| pair == b"\r\n")?;
        let line = self.take(end)?;
        self.take(2)?;
        Some(line)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

fn number(text: &[u8]) -> Option<i64> {
    str::from_utf8(text).ok()?.trim().parse().ok()
}

fn error(line: &[u8]) -> Shape<'_> {
    let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    let text = line.get(space + 1..).unwrap_or_default();
    Shape::Error(String::from_utf8_lossy(&line[..space]), String::from_utf8_lossy(text))
}

/// Deeper than the parser goes.
const DEEPEST: u8 = 120;
