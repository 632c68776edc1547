//! From a value of the `redis` crate to a [`Reply`].

use redis::Value;
use redlock_core::{Reply, ServerError};

/// What the server said. Total over every value, whatever features the `redis` crate was built with.
pub(crate) fn from_value(value: Value) -> Reply {
    convert(value, DEEPEST)
}

/// What the answer to `SET ... IFEQ` says as one to the script that does the same: 1 if the key was set, 0
/// if it holds something else or is not there. Anything else stays what it is, or is made so that nobody
/// takes it for either.
pub(crate) fn of_set_if_equal(reply: Reply) -> Reply {
    match reply {
        Reply::Ok => Reply::Int(1),
        Reply::Nil => Reply::Int(0),
        Reply::Int(_) => Reply::Other,
        reply => reply,
    }
}

/// What a server's error line says, without the arguments that some servers echo in it: one of them
/// is the token, or at a handshake the password.
pub(crate) fn from_server_error(error: &redis::ServerError) -> ServerError {
    server_error(error.code(), error.details())
}

/// The same from the parts of the line.
pub(crate) fn server_error(code: &str, details: Option<&str>) -> ServerError {
    let message = details.unwrap_or_default();
    let message = match message.split_once(ECHO) {
        Some((before, _)) => before.trim_end_matches([',', ' ']),
        None => message,
    };
    ServerError::new(code, message)
}

/// `depth` is how many more levels are looked into; what lies deeper is no answer to anything.
fn convert(value: Value, depth: usize) -> Reply {
    let Some(below) = depth.checked_sub(1) else { return Reply::Other };
    let list =
        |values: Vec<Value>| Reply::Array(values.into_iter().map(|value| convert(value, below)).collect());
    match value {
        Value::Nil => Reply::Nil,
        Value::Okay => Reply::Ok,
        Value::SimpleString(status) if status == "OK" => Reply::Ok,
        Value::SimpleString(status) => Reply::Status(status.into()),
        Value::Int(number) => Reply::Int(number),
        Value::BulkString(bytes) => Reply::Text(bytes.into()),
        Value::VerbatimString { text, .. } => Reply::Text(text.into_bytes().into()),
        Value::Array(values) | Value::Set(values) | Value::Push { data: values, .. } => list(values),
        Value::Map(pairs) => list(pairs.into_iter().flat_map(|(key, value)| [key, value]).collect()),
        Value::Attribute { data, .. } => convert(*data, below),
        Value::Boolean(value) => Reply::Bool(value),
        Value::ServerError(error) => Reply::Error(from_server_error(&error)),
        // Doubles and big numbers; the latter's type depends on a feature that anybody may turn on, so
        // it must not be named. And whatever the crate adds.
        _ => Reply::Other,
    }
}

/// More than the `redis` crate's own parser lets through.
const DEEPEST: usize = 128;

/// What introduces the echoed arguments in `ERR unknown command 'X', with args beginning with: 'Y'`.
const ECHO: &str = "with args beginning with";

#[cfg(test)]
mod tests {
    use super::*;
    use redis::{PushKind, VerbatimFormat, parse_redis_value};
    use redlock_core::{Fault, Intent, Token, Ttl, Vote, interpret};

    fn parse(bytes: &[u8]) -> Reply {
        from_value(parse_redis_value(bytes).unwrap())
    }

    fn text(text: &str) -> Reply {
        Reply::Text(text.as_bytes().into())
    }

    #[test]
    fn every_shape_of_both_protocols() {
        let error = |code: &str, message: &str| Reply::Error(ServerError::new(code, message));
        let table: [(&[u8], Reply); 22] = [
            (b"+OK\r\n", Reply::Ok),
            (b"+QUEUED\r\n", Reply::Status("QUEUED".into())),
            (b":7\r\n", Reply::Int(7)),
            (b":-9223372036854775808\r\n", Reply::Int(i64::MIN)),
            (b"$-1\r\n", Reply::Nil),
            (b"*-1\r\n", Reply::Nil),
            (b"_\r\n", Reply::Nil),
            (b"$0\r\n\r\n", text("")),
            (b"$2\r\n42\r\n", text("42")),
            (b"=6\r\ntxt:42\r\n", text("42")),
            (b"#t\r\n", Reply::Bool(true)),
            (b"#f\r\n", Reply::Bool(false)),
            (b",1.5\r\n", Reply::Other),
            (b"(3492890328409238509324850943850943825024385\r\n", Reply::Other),
            (b"*2\r\n:1\r\n$-1\r\n", Reply::Array(vec![Reply::Int(1), Reply::Nil])),
            (b"~1\r\n+OK\r\n", Reply::Array(vec![Reply::Ok])),
            (b"%1\r\n+a\r\n:1\r\n", Reply::Array(vec![Reply::Status("a".into()), Reply::Int(1)])),
            (b"|1\r\n+a\r\n:1\r\n:5\r\n", Reply::Int(5)),
            (b"-READONLY You can't write\r\n", error("READONLY", "You can't write")),
            (b"-MYERR own words\r\n", error("MYERR", "own words")),
            (b"-ERR\r\n", error("ERR", "")),
            (b"*2\r\n-OOM no memory\r\n+OK\r\n", Reply::Array(vec![error("OOM", "no memory"), Reply::Ok])),
        ];
        for (bytes, reply) in table {
            assert_eq!(parse(bytes), reply, "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn values_that_no_parser_makes() {
        assert_eq!(from_value(Value::SimpleString("OK".into())), Reply::Ok);
        let push = Value::Push { kind: PushKind::Other("x".into()), data: vec![Value::Int(1)] };
        assert_eq!(from_value(push), Reply::Array(vec![Reply::Int(1)]));
        let verbatim = Value::VerbatimString { format: VerbatimFormat::Text, text: "t".into() };
        assert_eq!(from_value(verbatim), text("t"));
        assert_eq!(from_value(Value::Double(f64::NAN)), Reply::Other);
    }

    #[test]
    fn an_echoed_argument_is_cut_off() {
        let line = b"-ERR unknown command 'EVALSHA', with args beginning with: 'secret' '1' \r\n";
        assert_eq!(parse(line), Reply::Error(ServerError::new("ERR", "unknown command 'EVALSHA'")));
    }

    #[test]
    fn what_is_nested_too_deep_is_not_looked_into() {
        let mut value = Value::Okay;
        for _ in 0..DEEPEST + 10 {
            value = Value::Array(vec![value]);
        }
        let mut reply = from_value(value);
        let mut levels = 0;
        while let Reply::Array(mut inner) = reply {
            reply = inner.remove(0);
            levels += 1;
        }
        assert_eq!((levels, reply), (DEEPEST, Reply::Other));
    }

    #[test]
    fn only_ok_and_nil_answer_a_set_if_equal() {
        let extend = Intent::CompareAndPexpire {
            token: Token::from_bytes([1; Token::LEN]),
            ttl: Ttl::from_millis(1_000).unwrap(),
        };
        let vote = |bytes: &[u8]| interpret(&extend, Ok(of_set_if_equal(parse(bytes))));
        assert_eq!(vote(b"+OK\r\n"), Vote::Yes(None));
        for nil in [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n"] {
            assert_eq!(vote(nil), Vote::No);
        }
        let others: [&[u8]; 10] = [
            b":1\r\n",
            b":0\r\n",
            b"+QUEUED\r\n",
            b"$2\r\nOK\r\n",
            // What `GET` would have told, had it been asked for.
            b"$40\r\n0101010101010101010101010101010101010101\r\n",
            b"#t\r\n",
            b"*1\r\n+OK\r\n",
            b",1\r\n",
            b"-WRONGTYPE not a string\r\n",
            b"-ERR\r\n",
        ];
        for bytes in others {
            let vote = vote(bytes);
            assert!(matches!(vote, Vote::Fault(Fault::Unknown(_))), "{vote:?}");
        }
    }

    /// Mutations of real answers: whatever the parser lets through is converted.
    #[test]
    fn mutated_bytes_never_panic() {
        let seeds: [&[u8]; 6] = [
            b"*3\r\n:1\r\n$2\r\n42\r\n+OK\r\n",
            b"%2\r\n+a\r\n:1\r\n+b\r\n_\r\n",
            b"-ERR unknown command 'x', with args beginning with: \r\n",
            b"|1\r\n+a\r\n:1\r\n=6\r\ntxt:42\r\n",
            b">2\r\n+message\r\n(12345678901234567890\r\n",
            b"~2\r\n#t\r\n,inf\r\n",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 33).unwrap()
        };
        let mut parsed = 0;
        for _ in 0..20_000 {
            let mut bytes = seeds[random() % seeds.len()].to_vec();
            for _ in 0..random() % 4 {
                let at = random() % bytes.len();
                bytes[at] = b"*$:+-_#,(~%|>=019\r\nat"[random() % 21];
            }
            if let Ok(value) = parse_redis_value(&bytes) {
                from_value(value);
                parsed += 1;
            }
        }
        assert!(parsed > 2_000, "{parsed} of 20000 parsed");
    }
}
