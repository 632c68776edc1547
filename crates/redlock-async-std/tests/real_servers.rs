//! The suite that every adapter passes, on real servers through async-std.

redlock_tests::suite!(redlock_async_std::AsyncStd, async_std::task::block_on);
