//! One task keeps the time of all leases on a runtime, and of no others.

use std::time::Duration;

use redlock_tests::harness::Server;
use redlock_tokio::{Config, LossReason, Manager, MemoryServer, Renewal, Tokio};
use tokio::runtime::{Handle, Runtime};
use tokio::time::sleep;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[tokio::test]
async fn leases_that_are_held_and_renewed_have_no_tasks() {
    let server = Server::start();
    let config = Config::builder().ttl(ms(600)).auto_renew(Renewal::ThirdOfTtl).build().unwrap();
    let manager = Manager::single(server.url(), config).unwrap();
    let tasks = || Handle::current().metrics().num_alive_tasks();
    // The first one waits for the connection, which takes a task for a moment.
    let mut leases = vec![manager.lock("r0").acquire().await.unwrap()];
    sleep(ms(50)).await;
    let with_one = tasks();
    for number in 1..200 {
        leases.push(manager.lock(format!("r{number}")).acquire().await.unwrap());
    }
    assert_eq!(tasks(), with_one);
    sleep(ms(1_200)).await;
    assert!(leases.iter().all(redlock_tokio::Lease::is_valid));
    assert!(manager.stats().renewed >= 800, "{:?}", manager.stats());
    assert_eq!(tasks(), with_one);
    for lease in leases {
        lease.release().await.unwrap();
    }
    // Once nobody has a lease nobody keeps the time either.
    sleep(ms(1_500)).await;
    assert_eq!(tasks(), with_one - 1);
    let lease = manager.lock("r").acquire().await.unwrap();
    sleep(ms(1_000)).await;
    assert!(lease.is_valid(), "renewed by one who has started anew");
}

#[test]
fn a_runtime_takes_its_own_leases_with_it_and_no_others() {
    let server = MemoryServer::new(Tokio::default());
    let config = Config::builder().ttl(ms(600)).auto_renew(Renewal::ThirdOfTtl).build().unwrap();
    let manager = Manager::single(&server, config).unwrap();
    let (first, second) = (Runtime::new().unwrap(), Runtime::new().unwrap());
    let goes = first.block_on(manager.lock("goes").acquire()).unwrap();
    let stays = second.block_on(manager.lock("stays").acquire()).unwrap();
    assert_eq!(manager.stats().running, 2);
    drop(first);
    assert_eq!(second.block_on(goes.lost()), LossReason::Closed);
    second.block_on(async { sleep(ms(1_500)).await });
    assert!(stays.is_valid(), "renewed where it was acquired");
    second.block_on(stays.release()).unwrap();
}
