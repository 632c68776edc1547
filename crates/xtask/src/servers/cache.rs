//! Where fetched servers are kept: a folder outside the workspace, for all checkouts together.

use std::path::{Path, PathBuf};
use std::{env, fs, io, path, process};

/// Folders by name. One that is there is complete: it is filled aside, and then renamed.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The folder that the environment names, or the user's cache directory.
    pub(super) fn of_the_environment() -> Result<Self, String> {
        let named = |variable| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let root = named(VARIABLE)
            .or_else(|| named("XDG_CACHE_HOME").map(|cache| cache.join("redlock/servers")))
            .or_else(|| named("HOME").map(|home| home.join(".cache/redlock/servers")));
        let root = root.ok_or_else(|| {
            format!("neither HOME nor XDG_CACHE_HOME is set; name a folder to keep servers in: {VARIABLE}")
        })?;
        // Programs are told where their libraries are, and tests run in other directories.
        let root = path::absolute(&root).map_err(|error| format!("{}: {error}", root.display()))?;
        Ok(Self { root })
    }

    /// The folder `name`, which `fill` fills if it is not there yet.
    pub(super) fn folder(
        &self,
        name: &str,
        fill: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<PathBuf, String> {
        let folder = self.root.join(name);
        if folder.is_dir() {
            return Ok(folder);
        }
        self.sweep(name);
        let aside = Aside(self.root.join(format!(".{name}-{}", process::id())));
        fs::create_dir_all(&aside.0).map_err(|error| {
            format!("{}: {error}\n{VARIABLE} can name another folder to keep servers in", aside.0.display())
        })?;
        fill(&aside.0)?;
        match fs::rename(&aside.0, &folder) {
            Ok(()) => Ok(folder),
            // Another process was faster.
            Err(_) if folder.is_dir() => Ok(folder),
            Err(error) => Err(format!("{}: {error}", folder.display())),
        }
    }

    /// Removes the folder `name`.
    pub(super) fn forget(&self, name: &str) -> Result<(), String> {
        let folder = self.root.join(name);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", folder.display()))
            }
            _ => Ok(()),
        }
    }

    /// Removes what processes that were killed have left of `name`. Only Linux can tell.
    fn sweep(&self, name: &str) {
        let Ok(entries) = fs::read_dir(&self.root) else { return };
        let prefix = format!(".{name}-");
        for entry in entries.flatten() {
            let left = entry.file_name();
            let Some(pid) = left.to_str().and_then(|left| left.strip_prefix(&prefix)) else { continue };
            if Path::new("/proc/self").exists() && !Path::new("/proc").join(pid).exists() {
                // It only takes up room.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// A folder that goes when it is dropped, unless it has been renamed.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        // Nobody takes it for complete.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Names the folder.
const VARIABLE: &str = "REDLOCK_SERVERS_DIR";

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that goes with the test.
    struct Fresh(Cache);

    impl Fresh {
        fn new(name: &str) -> Self {
            let root = env::temp_dir().join(format!("redlock-cache-{name}-{}", process::id()));
            Self(Cache { root })
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0.root).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Fresh {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0.root);
        }
    }

    fn write(text: &'static str) -> impl FnOnce(&Path) -> Result<(), String> {
        move |folder| fs::write(folder.join("file"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_folder_is_filled_once_until_it_is_forgotten() {
        let cache = Fresh::new("once");
        let folder = cache.0.folder("a-1", write("first")).unwrap();
        assert_eq!(cache.0.folder("a-1", |_| Err("again".to_owned())), Ok(folder.clone()));
        assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "first");
        cache.0.forget("a-1").unwrap();
        cache.0.forget("a-1").unwrap();
        let folder = cache.0.folder("a-1", write("second")).unwrap();
        assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "second");
    }

    #[test]
    fn a_half_filled_folder_is_not_there() {
        let cache = Fresh::new("half");
        let failed = cache.0.folder("a-1", |folder| {
            write("half")(folder)?;
            assert!(!cache.0.root.join("a-1").exists());
            Err("the network is gone".to_owned())
        });
        assert_eq!(failed, Err("the network is gone".to_owned()));
        assert_eq!(cache.names(), Vec::<String>::new());
    }

    #[test]
    fn the_faster_of_two_processes_wins() {
        let cache = Fresh::new("race");
        let slow = cache.0.folder("a-1", |folder| {
            write("slow")(folder)?;
            let other = cache.0.root.join("a-1");
            fs::create_dir(&other).unwrap();
            write("fast")(&other)
        });
        assert_eq!(fs::read_to_string(slow.unwrap().join("file")).unwrap(), "fast");
        assert_eq!(cache.names(), ["a-1"]);
    }

    #[test]
    fn what_killed_processes_left_is_swept_away() {
        let cache = Fresh::new("sweep");
        // Larger than any process id of Linux.
        let (dead, alive) = (".a-1-4194305", format!(".a-1-{}", std::os::unix::process::parent_id()));
        for left in [dead, &alive] {
            fs::create_dir_all(cache.0.root.join(left)).unwrap();
        }
        cache.0.folder("a-1", write("new")).unwrap();
        let names = cache.names();
        assert!(names.contains(&alive), "{names:?}");
        assert_eq!(names.iter().any(|name| name == dead), !Path::new("/proc/self").exists(), "{names:?}");
    }
}
