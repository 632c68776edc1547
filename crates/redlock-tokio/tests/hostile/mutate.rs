//! From a right answer to a wrong one.

use redlock_tests::harness::Random;

use super::sense::ATTRIBUTE;

/// `right`, or something more or less like it.
pub(crate) fn mutate(right: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = right.to_vec();
    match random.below(10) {
        // As it should be.
        0 | 1 => {}
        2 => bytes.truncate(random.below(right.len())),
        // A byte or two are others.
        3 => {
            for _ in 0..=random.below(2) {
                let at = random.below(bytes.len());
                bytes[at] = random.byte();
            }
        }
        // Something is put in, or taken out.
        4 => bytes.insert(random.below(right.len() + 1), random.byte()),
        5 => drop(bytes.remove(random.below(right.len()))),
        // Another type, with the same text.
        6 => bytes[0] = *random.one_of(b"+-:$*_#,(!=%~>|"),
        7 => bytes = random.one_of(ODD).to_vec(),
        8 => bytes = [random.one_of(WRAPPERS), right].concat(),
        _ => bytes = (0..random.below(40)).map(|_| random.byte()).collect(),
    }
    bytes
}

/// Well formed or not, none of them is an answer to anything that a lease asks.
const ODD: &[&[u8]] = &[
    b"",
    b"\r\n",
    b"+\r\n",
    b"+ok\r\n",
    b"+OK \r\n",
    b"+OK\n",
    b"+QUEUED\r\n",
    b"-\r\n",
    b"-OK\r\n",
    b"-MOVED 1 127.0.0.1:1\r\n",
    b"-ASK 1 :\r\n",
    b"-NOSCRIPT no\r\n",
    b":\r\n",
    b":-1\r\n",
    b":2\r\n",
    b":01\r\n",
    b":1.0\r\n",
    b":9223372036854775807\r\n",
    b":9223372036854775808\r\n",
    b":-9223372036854775808\r\n",
    b"$0\r\n\r\n",
    b"$-2\r\n",
    b"$2\r\nOK\r\n",
    b"$1\r\n12\r\n",
    b"$2147483647\r\nx",
    b"$18446744073709551616\r\n",
    b"*0\r\n",
    b"*-1\r\n",
    b"*-5\r\n",
    b"*2147483647\r\n",
    b"*2\r\n:1\r\n",
    b"=-5\r\n",
    b"=6\r\ntxt:OK\r\n",
    b"!-5\r\n",
    b"!5\r\nOK no\r\n",
    b"%-5\r\n",
    b"%1\r\n+OK\r\n+OK\r\n",
    b"~1\r\n+OK\r\n",
    b">2\r\n+message\r\n+OK\r\n",
    b"#t\r\n",
    b"#x\r\n",
    b",1\r\n",
    b",nan\r\n",
    b"(1\r\n",
    b"_\r\n",
];

/// What stands in front of an answer.
const WRAPPERS: &[&[u8]] = &[
    b"*1\r\n",
    b"~1\r\n",
    b">1\r\n",
    b"%1\r\n+OK\r\n",
    b"*2\r\n:1\r\n",
    b"$5\r\n",
    b" ",
    b"\r\n",
    ATTRIBUTE,
];
