//! Enough of a Redis server for the checks of `connect`: threads, a map, and no expiry.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use redis::{Parser, Value};
use redlock_core::script;

/// Serves until the process ends.
pub(super) struct Server {
    url: String,
}

#[derive(Default)]
struct State {
    last_id: i64,
    sockets: BTreeMap<i64, TcpStream>,
    keys: BTreeMap<String, String>,
}

enum Reply {
    Nil,
    Int(i64),
    Text(String),
    Error(&'static str),
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        thread::spawn(move || {
            for socket in listener.incoming() {
                let state = Arc::clone(&state);
                thread::spawn(move || serve(&socket.unwrap(), &state));
            }
        });
        Self { url }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

fn serve(mut socket: &TcpStream, state: &Mutex<State>) {
    let id = {
        let mut state = state.lock().unwrap();
        state.last_id += 1;
        let id = state.last_id;
        state.sockets.insert(id, socket.try_clone().unwrap());
        id
    };
    let mut parser = Parser::new();
    while let Ok(Value::Array(words)) = parser.parse_value(socket) {
        let words: Vec<String> =
            words.into_iter().map(|word| redis::from_redis_value(word).unwrap()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let ["BLPOP", _, seconds] = words[..] {
            thread::sleep(Duration::from_secs_f64(seconds.parse().unwrap()));
        }
        let reply = match answer(id, &mut state.lock().unwrap(), &words) {
            Reply::Nil => "$-1\r\n".to_owned(),
            Reply::Int(number) => format!(":{number}\r\n"),
            Reply::Text(text) => format!("${}\r\n{text}\r\n", text.len()),
            Reply::Error(error) => format!("-{error}\r\n"),
        };
        if socket.write_all(reply.as_bytes()).is_err() {
            break;
        }
    }
    state.lock().unwrap().sockets.remove(&id);
}

fn answer(id: i64, state: &mut State, words: &[&str]) -> Reply {
    let keys = &mut state.keys;
    match *words {
        ["PING"] => Reply::Text("PONG".into()),
        ["ECHO", text] => Reply::Text(text.into()),
        ["SET", key, value, "PX", _] => {
            keys.insert(key.into(), value.into());
            Reply::Text("OK".into())
        }
        ["GET", key] => keys.get(key).cloned().map_or(Reply::Nil, Reply::Text),
        ["DEL", key] => Reply::Int(keys.remove(key).is_some().into()),
        ["STRLEN", key] => Reply::Int(keys[key].len().try_into().unwrap()),
        ["APPEND", key, text] => {
            let value = keys.get_mut(key).unwrap();
            value.push_str(text);
            Reply::Int(value.len().try_into().unwrap())
        }
        ["BLPOP", ..] => Reply::Nil,
        ["CLIENT", "ID"] => Reply::Int(id),
        ["CLIENT", "LIST"] => {
            Reply::Text(state.sockets.keys().map(|id| format!("id={id} addr=x\n")).collect())
        }
        ["CLIENT", "KILL", "ID", id] => {
            state.sockets[&id.parse().unwrap()].shutdown(Shutdown::Both).unwrap();
            Reply::Int(1)
        }
        ["EVALSHA", ..] => Reply::Error("NOSCRIPT No matching script"),
        ["EVAL", text, ref rest @ ..] => evaluate(keys, text, rest),
        ["ECHO"] => Reply::Error("ERR wrong number of arguments"),
        ["SET", _, _, "IFEQ", ..] => Reply::Error("ERR syntax error"),
        _ => Reply::Error("ERR unknown command"),
    }
}

fn evaluate(keys: &mut BTreeMap<String, String>, text: &str, rest: &[&str]) -> Reply {
    match *rest {
        ["2", lock, fence, token, _] if text == script::FENCED_ACQUIRE => {
            if keys.contains_key(lock) {
                return Reply::Int(0);
            }
            let counter = keys.get(fence).map_or(1, |counter| counter.parse::<u64>().unwrap() + 1);
            keys.insert(fence.into(), counter.to_string());
            keys.insert(lock.into(), token.into());
            Reply::Text(counter.to_string())
        }
        ["1", lock, token, ..] => {
            let ours = keys.get(lock).is_some_and(|value| value == token);
            if ours && text == script::COMPARE_AND_DELETE {
                keys.remove(lock);
            }
            Reply::Int(ours.into())
        }
        _ => Reply::Error("ERR not one of our scripts"),
    }
}
