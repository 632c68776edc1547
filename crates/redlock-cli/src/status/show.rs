//! What was seen, for people and for programs.

use std::time::Duration;

use serde_json::{Value, json};

use super::look::Sight;
use super::verdict::Verdict;

/// What was seen of one resource.
pub(super) struct View<'a> {
    pub(super) resource: &'a str,
    pub(super) sights: &'a [Sight],
    /// Whether tokens are shown whole.
    pub(super) full: bool,
}

impl View<'_> {
    /// A table, and the verdict below.
    pub(super) fn table(&self, verdict: &Verdict) -> String {
        let rows: Vec<[String; 3]> = [["node", "holder", "left"].map(str::to_owned)]
            .into_iter()
            .chain(self.sights.iter().map(|sight| self.row(sight)))
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (first, second) = (width(0), width(1));
        let mut text = String::new();
        for [node, holder, left] in &rows {
            let row = format!("{node:first$}  {holder:second$}  {left}");
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text + &self.sentence(verdict) + "\n"
    }

    /// One object.
    pub(super) fn json(&self, verdict: &Verdict) -> Value {
        let nodes: Vec<Value> = self
            .sights
            .iter()
            .map(|sight| match &sight.seen {
                Ok(Some(holding)) => json!({
                    "node": sight.node,
                    "holder": self.token(&holding.token),
                    "left_ms": holding.left.map(millis),
                }),
                Ok(None) => json!({ "node": sight.node, "holder": null }),
                Err(reason) => json!({ "node": sight.node, "error": reason }),
            })
            .collect();
        let mut view = json!({ "resource": self.resource, "verdict": verdict.name(), "nodes": nodes });
        if let Verdict::Held { token, nodes, left } = verdict {
            view["holder"] = json!(self.token(token));
            view["held_at"] = json!(nodes);
            view["left_ms"] = json!(left.map(millis));
        }
        view
    }

    fn row(&self, sight: &Sight) -> [String; 3] {
        let (holder, left) = match &sight.seen {
            Ok(Some(holding)) => (self.token(&holding.token), left(holding.left)),
            Ok(None) => ("free".to_owned(), String::new()),
            Err(reason) => (reason.clone(), String::new()),
        };
        [sight.node.clone(), holder, left]
    }

    fn sentence(&self, verdict: &Verdict) -> String {
        let resource = self.resource.escape_debug();
        let of = self.sights.len();
        match verdict {
            Verdict::Held { token, nodes, left: end } => {
                format!(
                    "{resource} is held by {} at {nodes} of {of} nodes: {}",
                    self.token(token),
                    left(*end)
                )
            }
            Verdict::Free => format!("{resource} is free"),
            Verdict::Split => format!("{resource} is split: nobody holds a majority of the {of} nodes"),
            Verdict::Unknown => format!("{resource}: too few of the {of} nodes answer to tell"),
        }
    }

    fn token(&self, token: &str) -> String {
        if self.full { token.to_owned() } else { short(token) }
    }
}

/// A token by which a holder is recognised, and which does not release the lease.
pub(crate) fn short(token: &str) -> String {
    let mut letters = token.chars();
    let mut short: String = letters.by_ref().take(SHORT).collect();
    if letters.next().is_some() {
        short.push('…');
    }
    short
}

/// The time a key has left, for people.
pub(crate) fn left(left: Option<Duration>) -> String {
    left.map_or_else(|| "never ends".to_owned(), |left| format!("{left:.1?} left"))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How much of a token is shown: enough to tell holders apart, and too little to guess the rest.
const SHORT: usize = 8;

#[cfg(test)]
mod tests {
    use super::super::look::Holding;
    use super::*;

    const TOKEN: &str = "3f2a9c1b00112233445566778899aabbccddeeff";

    fn sights() -> Vec<Sight> {
        let holding = |left| Ok(Some(Holding { token: TOKEN.to_owned(), left }));
        let sight = |node: &str, seen| Sight { node: node.to_owned(), seen };
        vec![
            sight("redis-a:6379", holding(Some(Duration::from_millis(8_240)))),
            sight("redis-b:6379", holding(None)),
            sight("c:6379", Err("connection refused".to_owned())),
        ]
    }

    #[test]
    fn a_table_is_aligned_and_tokens_are_short() {
        let sights = sights();
        let verdict = Verdict::of(&sights);
        let view = View { resource: "orders", sights: &sights, full: false };
        let table = "\
node          holder              left
redis-a:6379  3f2a9c1b…           8.2s left
redis-b:6379  3f2a9c1b…           never ends
c:6379        connection refused
orders is held by 3f2a9c1b… at 2 of 3 nodes: 8.2s left
";
        assert_eq!(view.table(&verdict), table);
        let full = View { full: true, ..view }.table(&verdict);
        assert_eq!(full.matches(TOKEN).count(), 3);
    }

    #[test]
    fn json_says_the_same() {
        let sights = sights();
        let view = View { resource: "orders", sights: &sights, full: false };
        let expected = json!({
            "resource": "orders", "verdict": "held", "holder": "3f2a9c1b…", "held_at": 2, "left_ms": 8240,
            "nodes": [
                { "node": "redis-a:6379", "holder": "3f2a9c1b…", "left_ms": 8240 },
                { "node": "redis-b:6379", "holder": "3f2a9c1b…", "left_ms": null },
                { "node": "c:6379", "error": "connection refused" },
            ],
        });
        assert_eq!(view.json(&Verdict::of(&sights)), expected);
    }

    #[test]
    fn short_values_are_shown_whole() {
        assert_eq!(short("abc"), "abc");
        assert_eq!(short("abcdefgh"), "abcdefgh");
        assert_eq!(short("abcdefghi"), "abcdefgh…");
        assert_eq!(short(""), "");
    }
}
