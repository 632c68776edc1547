//! See [`redlock_fuzz::reply_bytes`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| redlock_fuzz::reply_bytes(data));
