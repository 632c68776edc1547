//! What the driver asks of every runtime, asked of async-std.

use redlock_async_std::AsyncStd;
use redlock_driver::conformance;
use redlock_tests::harness::shared_primaries;

#[test]
fn async_std_conforms() {
    println!("{}", async_std::task::block_on(conformance::check(AsyncStd::default())).unwrap());
}

#[test]
fn async_std_dials_as_it_should() {
    let url = shared_primaries(1)[0].url();
    println!("{}", async_std::task::block_on(conformance::check_connect(AsyncStd::default(), &url)).unwrap());
}
