//! No tokio runtime runs, or needs to, where leases are taken on async-std.

use redlock_async_std::AsyncStd;
use redlock_tests::suite::acquire;

/// Looks at the names that threads give themselves; tokio's are called after it.
#[cfg(target_os = "linux")]
#[test]
fn a_contended_lease_starts_no_tokio_thread() {
    async_std::task::block_on(acquire::a18_a_waiting_contender_gets_its_turn::<AsyncStd>());
    let threads: Vec<String> = std::fs::read_dir("/proc/self/task")
        .expect("this process' threads")
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok())
        .collect();
    assert!(threads.iter().any(|name| name.starts_with("async-std")), "{threads:?}");
    assert!(!threads.iter().any(|name| name.contains("tokio")), "{threads:?}");
}
