//! The suite that every adapter passes, on real servers through tokio's runtime with a single thread.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::future::Future;

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

redlock_tests::suite!(redlock_tokio::Tokio, block_on);
