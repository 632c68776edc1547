//! The command line of the demo.

use super::nodes::Nodes;

/// What the command line chooses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// None for nodes in memory.
    urls: Vec<String>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut urls = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let url = match word.strip_prefix("--node=") {
                Some(url) => url,
                None if *word == "--node" => words.next().ok_or("--node needs a URL")?,
                None => return Err(format!("demo has no option {word}")),
            };
            urls.push(url.to_owned());
        }
        if !urls.is_empty() {
            // Says what is wrong with an address or with their number, without any I/O.
            Nodes::Real(urls.clone()).manager().map_err(|error| error.to_string())?;
        }
        Ok(Self { urls })
    }

    pub(super) fn nodes(&self) -> Nodes {
        if self.urls.is_empty() { Nodes::memory() } else { Nodes::Real(self.urls.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().collect::<Vec<_>>())
    }

    #[test]
    fn without_options_the_nodes_are_in_memory() {
        let nodes = parse("").unwrap().nodes();
        assert!(matches!(nodes, Nodes::Memory(servers) if servers.len() == 5));
    }

    #[test]
    fn nodes_are_read_in_order() {
        let options = parse("--node redis://a --node=redis://b --node redis://c").unwrap();
        assert_eq!(options.urls, ["redis://a", "redis://b", "redis://c"]);
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        for (line, reason) in [
            ("--nodes redis://a", "demo has no option --nodes"),
            ("--node", "--node needs a URL"),
            ("--node a", "node a: not a Redis URL"),
            ("--node redis://a --node redis://b", "2 nodes: Redlock needs an odd number"),
            ("--node redis://a --node redis://b --node redis://a", "given twice"),
        ] {
            let refused = parse(line).unwrap_err();
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
