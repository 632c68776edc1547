//! What an adapter's documentation shows for the types that it only names: their methods, with links.
//!
//! rustdoc lists no methods on the page of a type alias to another crate's type, and a user should not have
//! to guess where they are.

/// The methods of [`Manager`](crate::Manager), as the text of a doc attribute.
#[macro_export]
macro_rules! manager_methods {
    () => {
        "
| method | what it does |
| --- | --- |
| [`single(node, config)`](redlock_driver::Manager::single) | leases on one logical Redis |
| [`redlock(nodes, config)`](redlock_driver::Manager::redlock) | leases on a majority of independent primaries |
| [`single_on`](redlock_driver::Manager::single_on), [`redlock_on`](redlock_driver::Manager::redlock_on) | the same on a runtime handle of your own |
| [`lock(resource)`](redlock_driver::Manager::lock) | describes a lease |
| [`config()`](redlock_driver::Manager::config) | the settings that leases start from |
| [`verify(limit).await`](redlock_driver::Manager::verify) | what is wrong or risky about the nodes |
| [`stats()`](redlock_driver::Manager::stats) | what was done so far, in numbers |
| [`close().await`](redlock_driver::Manager::close) | gives every lease up and closes the connections, in bounded time |
"
    };
}

/// The methods of [`Lock`](crate::Lock), as the text of a doc attribute.
#[macro_export]
macro_rules! lock_methods {
    () => {
        "
| method | what it does |
| --- | --- |
| [`ttl(duration)`](redlock_driver::Lock::ttl) | how long the lease lives if nobody renews it |
| [`auto_renew(renewal)`](redlock_driver::Lock::auto_renew) | renews it by itself while it is held |
| [`fencing(key)`](redlock_driver::Lock::fencing) | takes a fencing token with each acquisition |
| [`configure(change)`](redlock_driver::Lock::configure) | changes any other setting |
| [`acquire().await`](redlock_driver::Lock::acquire) | asks for the lease, with as many attempts as are configured |
| [`try_acquire().await`](redlock_driver::Lock::try_acquire) | asks once |
| [`acquire_within(patience).await`](redlock_driver::Lock::acquire_within) | asks again and again for so long |
| [`run(work).await`](redlock_driver::Lock::run) | acquires, works while the lease is held, releases |
| [`resource()`](redlock_driver::Lock::resource), [`config()`](redlock_driver::Lock::config) | what was described |
"
    };
}

/// The methods of [`Lease`](crate::Lease), as the text of a doc attribute.
#[macro_export]
macro_rules! lease_methods {
    () => {
        "
| method | what it does |
| --- | --- |
| [`is_valid()`](redlock_driver::Lease::is_valid), [`valid_for()`](redlock_driver::Lease::valid_for) | whether and how long it is still held; no network, no waiting |
| [`lost().await`](redlock_driver::Lease::lost) | ends when the lease is lost, with the reason |
| [`run(work).await`](redlock_driver::Lease::run) | works while it is held; the work is dropped when it is lost |
| [`fencing_token()`](redlock_driver::Lease::fencing_token) | for the protected resource to refuse older ones |
| [`extend(ttl).await`](redlock_driver::Lease::extend) | sets its time to live from now on |
| [`release().await`](redlock_driver::Lease::release) | gives it back, and says how that went |
| [`resource()`](redlock_driver::Lease::resource), [`token()`](redlock_driver::Lease::token) | what stands at the nodes |
"
    };
}

#[cfg(test)]
mod tests {
    /// A method that is added must be shown, and one that is gone must not be.
    #[test]
    fn every_public_method_is_listed() {
        let types = [
            ("Manager", include_str!("manager.rs"), manager_methods!()),
            ("Lock", include_str!("lock.rs"), lock_methods!()),
            ("Lease", include_str!("lease.rs"), lease_methods!()),
        ];
        for (name, source, table) in types {
            let methods: Vec<&str> = source
                .lines()
                .filter_map(|line| line.strip_prefix("    pub "))
                .map(|line| line.trim_start_matches("async ").trim_start_matches("const "))
                .filter_map(|line| line.strip_prefix("fn "))
                .filter_map(|line| line.split(['(', '<']).next())
                .collect();
            assert!(methods.len() > 6, "{methods:?}");
            for method in &methods {
                let link = format!("(redlock_driver::{name}::{method})");
                assert!(table.contains(&link), "{name}::{method} is not in its table");
            }
            let listed = table.matches(&format!("(redlock_driver::{name}::")).count();
            assert_eq!(listed, methods.len(), "{name}'s table lists something else");
        }
    }
}
