//! See [`redlock_fuzz::lease_events`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| redlock_fuzz::lease_events(data));
