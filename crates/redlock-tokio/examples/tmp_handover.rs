#![allow(missing_docs, warnings, clippy::all)]
use redlock_tokio::{Config, Manager};
use std::io::{BufRead, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
fn nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}
fn manager(urls: &[String], retry: u64, wake: bool) -> Manager {
    let config = Config::builder()
        .ttl(Duration::from_secs(10))
        .retry_delay(Duration::from_millis(retry))
        .wake_on_release(wake)
        .build()
        .unwrap();
    if urls.len() == 1 {
        Manager::single(urls[0].clone(), config).unwrap()
    } else {
        Manager::redlock(urls.to_vec(), config).unwrap()
    }
}
fn rt() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
fn median(mut v: Vec<u64>) -> u64 {
    v.sort();
    v[v.len() / 2]
}
fn gap(urls: Vec<String>, rounds: usize) {
    let client = redis::Client::open(urls[0].clone()).unwrap();
    let pings: Vec<u64> = rt().block_on(async {
        let mut c = client.get_multiplexed_async_connection().await.unwrap();
        let mut v = vec![];
        for _ in 0..2000 {
            let t = Instant::now();
            let _: () = redis::cmd("PING").query_async(&mut c).await.map(|_: String| ()).unwrap();
            v.push(t.elapsed().as_nanos() as u64);
        }
        let mut w = vec![];
        for _ in 0..200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let t = Instant::now();
            let _: () = redis::cmd("PING").query_async(&mut c).await.map(|_: String| ()).unwrap();
            w.push(t.elapsed().as_nanos() as u64);
        }
        println!(
            "ping after 5 ms idle: p50 {} mean {}",
            median(w.clone()) / 1000,
            w.iter().sum::<u64>() / 200_000
        );
        v
    });
    let (to_w, w_go) = std::sync::mpsc::channel::<()>();
    let (tx, rx) = std::sync::mpsc::channel::<u64>();
    let u2 = urls.clone();
    std::thread::spawn(move || {
        let r = rt();
        r.block_on(async {
            let m = manager(&u2, 2000, true);
            while w_go.recv().is_ok() {
                let l = m.lock("gap").acquire_within(Duration::from_secs(5)).await.unwrap();
                tx.send(nanos()).unwrap();
                l.release().await.unwrap();
                tx.send(0).unwrap();
            }
        });
    });
    let r = rt();
    let gaps = r.block_on(async {
        let m = manager(&urls, 2000, true);
        let mut v = vec![];
        for _ in 0..rounds {
            let l = m.lock("gap").acquire().await.unwrap();
            to_w.send(()).unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let t = nanos();
            tokio::spawn(async move {
                l.release().await.unwrap();
            });
            let a = loop {
                match rx.try_recv() {
                    Ok(a) => break a,
                    _ => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            };
            while rx.try_recv() != Ok(0) {
                tokio::time::sleep(Duration::from_micros(100)).await
            }
            v.push(a.saturating_sub(t));
        }
        v
    });
    let mut s = gaps.clone();
    s.sort();
    let mean = gaps.iter().sum::<u64>() / gaps.len() as u64;
    let pm = pings.iter().sum::<u64>() / pings.len() as u64;
    println!(
        "ping p50 {} mean {} us; gap p50 {} mean {} p90 {} max {} us; ratio p50 {:.2} mean {:.2}",
        median(pings.clone()) / 1000,
        pm / 1000,
        median(gaps) / 1000,
        mean / 1000,
        s[s.len() * 9 / 10] / 1000,
        s[s.len() - 1] / 1000,
        s[s.len() / 2] as f64 / median(pings) as f64,
        mean as f64 / pm as f64
    );
}
fn child(urls: Vec<String>, start: u64, secs: u64, retry: u64, wake: bool, tasks: usize) {
    rt().block_on(async {
        let m = manager(&urls, retry, wake);
        while nanos() < start {
            tokio::time::sleep(Duration::from_millis(1)).await
        }
        let end = start + secs * 1_000_000_000;
        let mut h = vec![];
        for t in 0..tasks {
            let m = m.clone();
            h.push(tokio::spawn(async move {
                let mut v = vec![];
                let mut longest = 0;
                while nanos() < end {
                    let asked = nanos();
                    let Ok(l) = m.lock("fight").acquire_within(Duration::from_secs(60)).await else {
                        continue;
                    };
                    v.push((nanos(), t));
                    longest = longest.max(nanos() - asked);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    let _ = l.release().await;
                }
                (v, longest)
            }));
        }
        let out = std::io::stdout();
        let mut out = out.lock();
        for h in h {
            let (v, longest) = h.await.unwrap();
            for (n, t) in v {
                writeln!(out, "{n} {t} {longest}").unwrap();
            }
        }
        m.close().await;
    });
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let urls: Vec<String> = std::env::var("URLS").unwrap().split(',').map(String::from).collect();
    let num = |i: usize, d: u64| a.get(i).map_or(d, |s| s.parse().unwrap());
    match &*a[1] {
        "gap" => gap(urls, num(2, 300) as usize),
        "child" => child(urls, num(2, 0), num(3, 5), num(4, 200), num(5, 1) == 1, num(6, 1) as usize),
        _ => {
            let (n, secs, retry, wake, tasks) = (num(2, 8), num(3, 5), num(4, 200), num(5, 1), num(6, 1));
            let mut stat = redis::Client::open(urls[0].clone()).unwrap().get_connection().unwrap();
            let total = |c: &mut redis::Connection| -> u64 {
                let i: String = redis::cmd("INFO").arg("stats").query(c).unwrap();
                i.lines()
                    .find_map(|l| l.strip_prefix("total_commands_processed:"))
                    .unwrap()
                    .trim()
                    .parse()
                    .unwrap()
            };
            let before = total(&mut stat);
            let start = (nanos() + 500_000_000).to_string();
            let me = std::env::current_exe().unwrap();
            let cs: Vec<_> = (0..n)
                .map(|_| {
                    Command::new(&me)
                        .args([
                            "child",
                            &start,
                            &secs.to_string(),
                            &retry.to_string(),
                            &wake.to_string(),
                            &tasks.to_string(),
                        ])
                        .stdout(Stdio::piped())
                        .spawn()
                        .unwrap()
                })
                .collect();
            let mut all = vec![];
            let mut wins = vec![];
            let mut longest = 0;
            for (p, mut c) in cs.into_iter().enumerate() {
                let mut w = 0;
                for l in std::io::BufReader::new(c.stdout.take().unwrap()).lines() {
                    let l = l.unwrap();
                    let f: Vec<u64> = l.split(' ').map(|s| s.parse().unwrap()).collect();
                    all.push((f[0], p, f[1]));
                    longest = longest.max(f[2]);
                    w += 1;
                }
                c.wait().unwrap();
                wins.push(w);
            }
            let after = total(&mut stat);
            all.sort();
            let changes = all.windows(2).filter(|w| (w[0].1, w[0].2) != (w[1].1, w[1].2)).count();
            let pchanges = all.windows(2).filter(|w| w[0].1 != w[1].1).count();
            println!(
                "wins {} ({:.0}/s) changes {:.0}/s (process {:.0}/s) least/most {:.2} longest wait {} ms commands per win {:.1}  {:?}",
                all.len(),
                all.len() as f64 / secs as f64,
                changes as f64 / secs as f64,
                pchanges as f64 / secs as f64,
                *wins.iter().min().unwrap() as f64 / *wins.iter().max().unwrap() as f64,
                longest / 1_000_000,
                (after - before) as f64 / all.len() as f64,
                wins
            );
        }
    }
}
