//! The JavaScript runtimes of users.

use std::fmt;

/// Maximum size of the heap of such a runtime, in bytes.
pub(crate) const HEAP: usize = 1 << 30;

/// A JavaScript runtime that runs the user's code in a process of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// Name for messages.
    pub name: &'static str,
    /// Name of its program.
    pub program: &'static str,
    /// Variables for its process.
    pub variables: &'static [(&'static str, &'static str)],
    /// Oldest version that works.
    pub(crate) oldest: Version,
    /// Arguments before that with the limit of the heap.
    arguments: &'static [&'static str],
    /// Begin of the argument with the limit of the heap in MiB, if it has one.
    heap: Option<&'static str>,
    /// Arguments before the text that it runs.
    eval: &'static [&'static str],
}

/// Node.js.
pub static NODE: Platform = Platform {
    name: "Node.js",
    program: "node",
    variables: &[],
    oldest: Version(20, 0),
    arguments: &["--experimental-vm-modules", "--experimental-import-meta-resolve"],
    heap: Some("--max-old-space-size="),
    eval: &["--input-type=module", "--eval"],
};

/// Bun. Calls that are the last of their function are in its stacks only with this variable.
pub static BUN: Platform = Platform {
    name: "Bun",
    program: "bun",
    variables: &[("BUN_JSC_useTailCalls", "0")],
    oldest: Version(1, 4),
    arguments: &[],
    heap: None,
    eval: &["--eval"],
};

/// Deno.
pub static DENO: Platform = Platform {
    name: "Deno",
    program: "deno",
    variables: &[],
    oldest: Version(2, 9),
    arguments: &["eval", "--quiet", "--no-lock"],
    heap: Some("--v8-flags=--max-old-space-size="),
    eval: &[],
};

impl Platform {
    /// Returns the arguments with which it runs `text`, with a heap of at most `heap` bytes.
    pub(crate) fn arguments(&self, heap: usize, text: &str) -> Vec<String> {
        let owned = |arguments: &[&str]| arguments.iter().map(ToString::to_string).collect::<Vec<_>>();
        let heap = self.heap.map(|argument| format!("{argument}{}", heap >> 20));
        let mut all = owned(self.arguments);
        all.extend(heap.into_iter().chain(owned(self.eval)));
        all.push(text.to_owned());
        all
    }

    /// Returns the error if it is needed but not there.
    pub(crate) fn not_installed(&self) -> String {
        format!("{} is not installed: there is no `{}` on the `PATH`", self.name, self.program)
    }

    /// Returns the error for `version`, if it is too old.
    pub(crate) fn too_old(&self, version: &str) -> Option<String> {
        let Self { name, oldest, .. } = self;
        let is_new_enough = Version::parse(version).is_some_and(|version| version >= *oldest);
        (!is_new_enough).then(|| format!("{name} {version} is too old: code needs version {oldest} or later"))
    }
}

/// Major and minor version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32);

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.').map(str::parse);
        Some(Self(parts.next()?.ok()?, parts.next()?.ok()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(major, 0) => write!(f, "{major}"),
            Self(major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let too_old =
            |platform: &Platform, versions: [&str; 3]| versions.map(|version| platform.too_old(version).is_some());
        assert_eq!(too_old(&NODE, ["18.20.0", "20.0.0", "100.1.2"]), [true, false, false]);
        assert_eq!(too_old(&BUN, ["1.3.9", "1.4.5", "1.10.0"]), [true, false, false]);
        assert_eq!(too_old(&DENO, ["2.8.1", "2.9.0-rc.1", "unknown"]), [true, false, true]);
        let message = "Bun 1.3.9 is too old: code needs version 1.4 or later";
        assert_eq!(BUN.too_old("1.3.9").as_deref(), Some(message));
    }
}
