//! The server: mutated answers, and a record of what it said to whom.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use redlock_tests::harness::{FakeServer, Played, Random};

use super::mutate::mutate;
use super::sense::Grant;

/// A server that lies by chance, and the same way again for the same seed and the same questions.
pub(crate) struct Hostile {
    server: FakeServer,
    record: Arc<Mutex<Record>>,
}

#[derive(Default)]
struct Record {
    compares: bool,
    answers: usize,
    /// The connections that have had an answer.
    met: BTreeSet<usize>,
    /// The connections that were left in the middle of something. Nothing more is said there: together with
    /// what was said it might make sense.
    left: BTreeSet<usize>,
    /// By token.
    grants: BTreeMap<String, Grant>,
    extensions: BTreeMap<String, Grant>,
}

impl Hostile {
    /// `compares`: whether it has the commands that compare, and no scripts with one key; or these, and none
    /// of those.
    pub(crate) fn start(seed: u64, compares: bool) -> Self {
        let record = Arc::new(Mutex::new(Record { compares, ..Record::default() }));
        let (kept, mut random) = (Arc::clone(&record), Random::new(seed));
        let server = FakeServer::play(move |connection, words| {
            kept.lock().unwrap().answer(connection, words, &mut random)
        });
        Self { server, record }
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// How many answers it gave that may have been mutated.
    pub(crate) fn answers(&self) -> usize {
        self.record.lock().unwrap().answers
    }

    /// What it said when it was asked for a lease with this token.
    pub(crate) fn grant_of(&self, token: &str) -> Option<Grant> {
        self.record.lock().unwrap().grants.get(token).cloned()
    }

    /// What it said when it was last asked to extend it.
    pub(crate) fn extension_of(&self, token: &str) -> Option<Grant> {
        self.record.lock().unwrap().extensions.get(token).cloned()
    }
}

impl Record {
    fn answer(&mut self, connection: usize, words: &[Vec<u8>], random: &mut Random) -> Played {
        let acquires =
            words.iter().any(|word| word == b"NX") || words.get(2).is_some_and(|keys| keys == b"2");
        let extends = !acquires && words.iter().any(|word| word == b"60000");
        if self.met.insert(connection) {
            // A connection that never answers properly would count as a failed dial, and be waited for.
            return Played::Bytes(b"-NOPERM not yet\r\n".to_vec());
        }
        if self.left.contains(&connection) {
            return Played::Bytes(Vec::new());
        }
        let compares =
            words[0] == b"DELIFEQ" || words[0] == b"DELEX" || words.iter().any(|word| word == b"IFEQ");
        if !acquires && compares != self.compares {
            let refusal: &[u8] = match &words[0][..] {
                b"SET" => b"-ERR syntax error\r\n",
                b"DELIFEQ" | b"DELEX" => b"-ERR unknown command\r\n",
                _ => b"-NOPERM no scripts\r\n",
            };
            return Played::Bytes(refusal.to_vec());
        }
        if words.len() == 1 {
            // Asked for without arguments, to be known.
            return Played::Bytes(b"-ERR wrong number of arguments\r\n".to_vec());
        }
        self.answers += 1;
        let right: &[u8] = match words.get(2) {
            Some(keys) if keys == b"2" => b"$2\r\n42\r\n",
            _ if acquires || words[0] == b"SET" => b"+OK\r\n",
            _ => b":1\r\n",
        };
        let bytes = mutate(right, random);
        if let Some(token) = words.iter().find(|word| word.len() == 40 && *word != &words[1]) {
            let token = String::from_utf8(token.clone()).unwrap();
            let grant = Grant { bytes: bytes.clone() };
            if acquires {
                self.grants.insert(token, grant);
            } else if extends {
                self.extensions.insert(token, grant);
            }
        }
        // What is more or less than one answer must not meet the next question. Most of it ends with the
        // connection; some of it is waited for until the deadline.
        if bytes == right {
            return Played::Bytes(bytes);
        }
        if random.below(8) > 0 {
            return Played::Last(bytes);
        }
        self.left.insert(connection);
        Played::Bytes(bytes)
    }
}

/// Bytes to read in a failure.
pub(crate) fn said(bytes: &[u8]) -> String {
    format!("{:?}", bytes.escape_ascii().to_string())
}
