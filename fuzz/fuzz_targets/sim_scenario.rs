//! See [`redlock_fuzz::sim_scenario`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| redlock_fuzz::sim_scenario(data));
