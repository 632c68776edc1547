//! How many commands were sent to servers, by their own count.

use redlock_tests::harness::Server;

use crate::Failure;

/// The commands that clients have sent to all these servers since they were started. Connecting counts, this
/// question does not.
pub(crate) fn sent(servers: &[Server]) -> Result<u64, Failure> {
    let mut sent = 0;
    for server in servers {
        let statistics: String = redis::cmd("INFO").arg("commandstats").query(&mut server.connection())?;
        sent += sent_by_clients(&statistics);
    }
    Ok(sent)
}

/// Servers count what a script calls like what a client sends. Each script of ours that runs looks at the key
/// once, and only scripts delete keys and set their time to live.
fn sent_by_clients(statistics: &str) -> u64 {
    let (mut all, mut in_scripts) = (0_u64, 0);
    for line in statistics.lines() {
        let Some((name, calls)) = calls(line) else { continue };
        match name {
            // Our own question, and what asking it takes.
            "info" | "client|setinfo" | "client|setname" | "hello" | "auth" | "select" => continue,
            "evalsha" | "eval" | "del" | "pexpire" => in_scripts += calls,
            _ => {}
        }
        all += calls;
    }
    all.saturating_sub(in_scripts)
}

/// Reads a line such as `cmdstat_set:calls=12,usec=34,...`.
fn calls(line: &str) -> Option<(&str, u64)> {
    let (name, statistics) = line.strip_prefix("cmdstat_")?.split_once(':')?;
    Some((name, statistics.strip_prefix("calls=")?.split(',').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_scripts_call_is_not_sent() {
        let statistics = "# Commandstats\r\n\
            cmdstat_set:calls=10,usec=1,usec_per_call=0.10,rejected_calls=0,failed_calls=0\r\n\
            cmdstat_evalsha:calls=4,usec=1\r\n\
            cmdstat_get:calls=7,usec=1\r\n\
            cmdstat_del:calls=3,usec=1\r\n\
            cmdstat_info:calls=2,usec=1\r\n";
        // Ten sets, four scripts with a get each, three gets by a client.
        assert_eq!(sent_by_clients(statistics), 10 + 4 + 3);
    }

    #[test]
    fn other_lines_are_not_counted() {
        assert_eq!(sent_by_clients("# Commandstats\r\n\r\nlatency_percentiles_usec_set:p50=1\r\n"), 0);
    }
}
