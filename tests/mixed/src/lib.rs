//! Nothing but tests: see the `tests` folder.
