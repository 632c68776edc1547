//! `redlock status`: who holds a resource, at which nodes, for how long.

mod look;
mod show;
mod verdict;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

pub(crate) use look::{Observer, connect};
use show::View;
pub(crate) use show::{left, short};
pub(crate) use verdict::Verdict;

use crate::args::StatusArgs;
use crate::exit::{Code, Failure};
use crate::nodes;
use crate::print::{block_on, print};

/// Looks once, or, with `--watch`, until nobody watches any more.
pub(crate) fn run(args: &StatusArgs) -> Result<Code, Failure> {
    let targets = nodes::targets(&args.nodes)?;
    nodes::manager(&targets, redlock_tokio::Config::default())?;
    if args.resource.is_empty() {
        return Err(Failure::usage("--resource is empty: name a key"));
    }
    let mut observer = Observer::new(&targets, args.nodes.timeout.unwrap_or(TIMEOUT));
    block_on(async move {
        loop {
            let sights = observer.look(&args.resource).await;
            let verdict = Verdict::of(&sights);
            let view = View { resource: &args.resource, sights: &sights, full: args.full };
            let text = match (args.json, args.watch) {
                (true, true) => format!("{}\n", view.json(&verdict)),
                (true, false) => format!("{:#}\n", view.json(&verdict)),
                (false, true) if io::stdout().is_terminal() => in_place(&view.table(&verdict)),
                (false, true) => format!("{}\n", view.table(&verdict)),
                (false, false) => view.table(&verdict),
            };
            let code = if verdict == Verdict::Unknown { Code::UNREACHABLE } else { Code::OK };
            if !print(&text) || !args.watch {
                return Ok(code);
            }
            tokio::time::sleep(args.interval.max(SHORTEST_INTERVAL)).await;
        }
    })
}

/// A text that overwrites the screen from its upper left corner, and erases what is left of an earlier one.
fn in_place(text: &str) -> String {
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// How long to wait for a node that may be far away.
const TIMEOUT: Duration = Duration::from_secs(1);

const SHORTEST_INTERVAL: Duration = Duration::from_millis(50);
