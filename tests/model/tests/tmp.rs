//! tmp
use redlock_model::{Grain, Plan, Setup, verify};
#[test]
fn t3() {
    verify(&Setup { grain: Grain::Coarse, behind: 3, ..Setup::new(3, 3, [Plan::once(), Plan::once()]) }, 0);
}
#[test]
fn t4() {
    verify(&Setup { grain: Grain::Coarse, behind: 4, ..Setup::new(3, 2, [Plan::once(), Plan::once()]) }, 0);
}
#[test]
fn t6() {
    verify(&Setup { grain: Grain::Coarse, behind: 6, ..Setup::new(3, 2, [Plan::once(), Plan::once()]) }, 0);
}
