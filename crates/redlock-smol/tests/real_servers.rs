//! The suite that every adapter passes, on real servers through smol.

redlock_tests::suite!(redlock_smol::Smol, smol::block_on);
