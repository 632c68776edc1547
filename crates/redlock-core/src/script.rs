//! The Lua texts behind three of the intents.
//!
//! Redis runs a script as one step, but does not undo what a failing script has written. So each text
//! does everything that can fail before its first write, for a user who may call all of its commands. They
//! use the keys that the user named and no
//! others.

/// `KEYS[1]` lock, `KEYS[2]` fencing counter, `ARGV[1]` token, `ARGV[2]` ttl in milliseconds.
///
/// Answers 0 when the lock is taken, else the counter's new value as TEXT: a number that passes
/// through Lua is a double and loses digits above 2^53. A counter that is no number, or is at its end,
/// makes INCR fail before the lock is touched; one below zero is refused, since a fencing token is
/// positive.
pub const FENCED_ACQUIRE: &str = "\
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
local counter = redis.call('GET', KEYS[2])
if counter and string.sub(counter, 1, 1) == '-' then
  return redis.error_reply('ERR the fencing counter is negative')
end
redis.call('INCR', KEYS[2])
redis.call('PSETEX', KEYS[1], ARGV[2], ARGV[1])
return redis.call('GET', KEYS[2])
";

/// `KEYS[1]` lock, `ARGV[1]` token. Answers 1 when the key held the token and is gone, else 0.
pub const COMPARE_AND_DELETE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
";

/// `KEYS[1]` lock, `ARGV[1]` token, `ARGV[2]` ttl in milliseconds. Answers 1 when the key held the
/// token and expires anew, else 0.
pub const COMPARE_AND_PEXPIRE: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
";
