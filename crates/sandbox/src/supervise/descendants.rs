//! Finds the descendants of a process.

use std::collections::HashMap;

use nix::unistd::Pid;

/// Returns all processes below `root`, parents before children. Processes adopted by another reaper are not included.
pub(super) fn of(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, parent) in processes() {
        children.entry(parent).or_default().push(pid);
    }
    let mut found = children.remove(&root.as_raw()).unwrap_or_default();
    let mut at = 0;
    while let Some(pid) = found.get(at) {
        found.extend(children.remove(pid).unwrap_or_default());
        at += 1;
    }
    found.into_iter().map(Pid::from_raw).collect()
}

/// Returns all processes on the machine with their parents.
#[cfg(target_os = "linux")]
fn processes() -> Vec<(i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parent_in(&stat)?))
        })
        .collect()
}

/// Returns the parent's id, which is the fourth field. The second field, the program's name, may contain any
/// character, so fields are counted after its last parenthesis.
#[cfg(target_os = "linux")]
fn parent_in(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn processes() -> Vec<(i32, i32)> {
    let Ok(output) = std::process::Command::new("ps").args(["-A", "-o", "pid=,ppid="]).output() else {
        return Vec::new();
    };
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace();
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_may_look_like_a_process_state() {
        assert_eq!(parent_in(b"12 (a) R 7) S 5 12 12 0 -1"), Some(5));
        assert_eq!(parent_in(b"12 nonsense"), None);
    }

    #[test]
    fn a_child_and_its_child_are_found() {
        // The shell prints a line after it has started another process, and stays alive until that one has ended.
        let mut shell = std::process::Command::new("/bin/sh")
            .args(["-c", "sleep 1000 & echo; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let shell_pid = Pid::from_raw(shell.id().cast_signed());
        let all = of(Pid::this());
        let below = of(shell_pid);
        assert!(all.contains(&shell_pid));
        assert!(below.iter().all(|pid| all.contains(pid)));
        nix::sys::signal::kill(below[0], nix::sys::signal::Signal::SIGKILL).unwrap();
        shell.wait().unwrap();
    }
}
