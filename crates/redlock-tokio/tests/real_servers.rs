//! The suite that every adapter passes, on real servers through tokio's runtime with several threads.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::future::Future;

fn block_on(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(test);
}

redlock_tests::suite!(redlock_tokio::Tokio, block_on);
