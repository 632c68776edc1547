//! What the driver asks of every runtime, asked of smol.

use redlock_driver::conformance;
use redlock_smol::Smol;
use redlock_tests::harness::shared_primaries;

#[test]
fn smol_conforms() {
    println!("{}", smol::block_on(conformance::check(Smol::default())).unwrap());
}

#[test]
fn smol_dials_as_it_should() {
    let url = shared_primaries(1)[0].url();
    println!("{}", smol::block_on(conformance::check_connect(Smol::default(), &url)).unwrap());
}
