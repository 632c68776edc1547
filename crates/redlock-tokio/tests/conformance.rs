//! What the driver asks of every runtime, asked of tokio: with several threads, with one, and in paused time.

use redlock_driver::conformance;
use redlock_tests::harness::shared_primaries;
use redlock_tokio::Tokio;

#[tokio::test(flavor = "multi_thread")]
async fn tokio_conforms() {
    println!("{}", conformance::check(Tokio::default()).await.unwrap());
}

#[tokio::test]
async fn tokio_conforms_on_one_thread() {
    println!("{}", conformance::check(Tokio::default()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn tokio_conforms_in_paused_time() {
    println!("{}", conformance::check(Tokio::default()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokio_dials_as_it_should() {
    let url = shared_primaries(1)[0].url();
    println!("{}", conformance::check_connect(Tokio::default(), &url).await.unwrap());
}
