//! Programs that commands name: where they are, and why one cannot run.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Number of bytes at the beginning of a program in which the system looks for its interpreter.
const HEAD: u64 = 256;

/// Folder in which the system lists the kinds of programs that others run, such as those of other processors.
const OTHER_KINDS: &str = "/proc/sys/fs/binfmt_misc";

/// Finds the program that a command names, as a process with this `PATH` in the folder `cwd` would.
///
/// # Errors
/// Returns a reason for the user if there is no such program, or if it certainly cannot be executed.
pub fn find_program(program: &str, path: &str, cwd: &Path) -> Result<PathBuf, String> {
    match located(program, path, cwd) {
        None if program.contains('/') => Err(format!("there is no program named `{program}`")),
        None => Err(format!("there is no program named `{program}` on the PATH")),
        Some(file) if file.is_dir() => Err(format!("`{program}` is a folder")),
        Some(file) if !is_executable(&file) => Err(format!("`{program}` cannot be executed: it lacks the permission")),
        Some(file) => match obstacle(&file, path, cwd) {
            Some(reason) => Err(format!("`{program}` {reason}")),
            None => Ok(file),
        },
    }
}

/// Returns the file that a process would execute; if no file on the `PATH` is executable, the first one.
fn located(program: &str, path: &str, cwd: &Path) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(cwd.join(program)).filter(|file| file.exists());
    }
    let folders = path.split(':').filter(|folder| !folder.is_empty());
    let mut files = folders.map(|folder| cwd.join(folder).join(program)).filter(|file| file.is_file());
    let first = files.next()?;
    if is_executable(&first) { Some(first) } else { files.find(|file| is_executable(file)).or(Some(first)) }
}

/// Returns `true` for a file that may be executed.
pub(crate) fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns why the system cannot execute `file`, if its first bytes show it.
fn obstacle(file: &Path, path: &str, cwd: &Path) -> Option<String> {
    // Programs are often links.
    let mut head = Vec::new();
    files::open(&file.canonicalize().ok()?).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    let Some(line) = head.strip_prefix(b"#!") else {
        let machine = std::env::consts::ARCH;
        let is_strange = is_of_other_machine(&head, machine) && !runs_other_kinds();
        return is_strange.then(|| format!("is not a program for this machine ({machine})"));
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let line = line.trim_matches([' ', '\t']);
    let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let missing = match wanted_by_env(interpreter, argument) {
        Some(name) => located(name, path, cwd).is_none().then_some(name),
        None => (!cwd.join(interpreter).exists()).then_some(interpreter),
    }?;
    let there_is = |name: &str| located(name, path, cwd).is_some();
    Some(match missing.strip_suffix('\r') {
        Some(name) if there_is(name) => {
            "has a first line that ends with a carriage return, so its interpreter is not found: save it with Unix line \
             ends"
                .to_owned()
        }
        _ if missing.contains('/') => format!("needs the interpreter `{missing}`, which does not exist"),
        _ => format!("needs the interpreter `{missing}`, which is not on the PATH"),
    })
}

/// Returns the program that `env` starts for a first line, if it is the interpreter.
fn wanted_by_env<'l>(interpreter: &str, argument: &'l str) -> Option<&'l str> {
    let is_env = Path::new(interpreter).file_name().is_some_and(|name| name == "env");
    let argument = argument.trim_start_matches([' ', '\t']);
    match argument.strip_prefix("-S") {
        _ if !is_env => None,
        Some(words) => words.split_whitespace().find(|word| !word.starts_with('-') && !word.contains('=')),
        // Without `-S`, everything is one name.
        None => Some(argument).filter(|name| !name.is_empty() && !name.starts_with('-')),
    }
}

/// Returns `true` for the beginning of a program that a machine of this architecture cannot execute by itself.
fn is_of_other_machine(head: &[u8], machine: &str) -> bool {
    // The numbers in programs for the architecture, and for its older 32-bit form.
    let own: [u16; 2] = match machine {
        "x86_64" => [62, 3],
        "aarch64" => [183, 40],
        _ => return false,
    };
    let is_foreign_system = [b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"].iter().any(|magic| head.starts_with(*magic))
        || head.starts_with(b"MZ");
    match (head.strip_prefix(b"\x7fELF"), head.get(18..20)) {
        (Some(_), Some(&[low, high])) => !own.contains(&u16::from_le_bytes([low, high])),
        (Some(_), _) => true,
        (None, _) => is_foreign_system,
    }
}

/// Returns `true` if the system runs programs of other kinds with an emulator.
fn runs_other_kinds() -> bool {
    let entries = std::fs::read_dir(OTHER_KINDS).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).any(|name| name != "register" && name != "status")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_run_is_found_with_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let write = |name: &str, text: &[u8], mode: u32| {
            std::fs::write(here.join(name), text).unwrap();
            std::fs::set_permissions(here.join(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("good", b"#!/bin/sh\n", 0o755);
        write("plain", b"echo hi\n", 0o755);
        write("modern", b"#!/usr/bin/env -S LANG=C sh -e\n", 0o755);
        write("locked", b"#!/bin/sh\n", 0o644);
        write("lost", b"#!/no/such/python -u\n", 0o755);
        write("named", b"#! /usr/bin/env no-such-python\n", 0o755);
        write("dos", b"#!/bin/sh\r\n", 0o755);
        write("dos-env", b"#!/usr/bin/env sh\r\n", 0o755);
        std::fs::create_dir(here.join("folder")).unwrap();
        std::os::unix::fs::symlink("lost", here.join("link")).unwrap();
        let path = format!("/nowhere:{}:/usr/bin:/bin", here.display());
        let found = |name: &str| find_program(name, &path, here);
        for name in ["./good", "good", "plain", "./modern", "sh", "/bin/sh"] {
            assert!(found(name).is_ok(), "{name}: {:?}", found(name));
        }
        let carriage_return = "has a first line that ends with a carriage return, so its interpreter is not found: save it with Unix line ends";
        for (name, reason) in [
            ("none", "there is no program named `none` on the PATH".to_owned()),
            ("./none", "there is no program named `./none`".to_owned()),
            ("./folder", "`./folder` is a folder".to_owned()),
            ("locked", "`locked` cannot be executed: it lacks the permission".to_owned()),
            ("lost", "`lost` needs the interpreter `/no/such/python`, which does not exist".to_owned()),
            ("link", "`link` needs the interpreter `/no/such/python`, which does not exist".to_owned()),
            ("named", "`named` needs the interpreter `no-such-python`, which is not on the PATH".to_owned()),
            ("dos", format!("`dos` {carriage_return}")),
            ("./dos-env", format!("`./dos-env` {carriage_return}")),
        ] {
            assert_eq!(found(name), Err(reason), "{name}");
        }
    }

    #[test]
    fn programs_of_other_machines_are_recognised() {
        let elf = |machine: u8| [b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0".as_slice(), &[machine, 0]].concat();
        for (head, is_other) in [
            (elf(62), false),
            (elf(3), false),
            (elf(183), true),
            (b"\x7fELF".to_vec(), true),
            (b"\xcf\xfa\xed\xfe\x07".to_vec(), true),
            (b"MZ\x90\0".to_vec(), true),
            (b"echo hi\n".to_vec(), false),
        ] {
            assert_eq!(is_of_other_machine(&head, "x86_64"), is_other, "{head:?}");
        }
        assert!(!is_of_other_machine(&elf(62), "riscv64"), "nothing is claimed of other architectures");
    }
}
