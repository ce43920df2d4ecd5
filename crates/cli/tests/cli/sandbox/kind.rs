//! Kinds of sandbox under test, and tests of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sandbox::SandboxOptions;

/// A kind of sandbox that works on this machine.
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) options: SandboxOptions,
    /// Environment variables of the user, in addition to `PATH`.
    pub(super) env: Vec<(String, String)>,
    /// Machine on which the processes run, if it is a different one.
    pub(super) elsewhere: Option<Arc<dyn Elsewhere>>,
}

impl Kind {
    /// Returns a kind that needs no settings.
    pub(super) fn of(name: &'static str) -> Self {
        Self { name, options: SandboxOptions::default(), env: Vec::new(), elsewhere: None }
    }
}

/// Stand-in for another machine.
pub(super) trait Elsewhere: Send + Sync {
    /// Returns the path on this machine for a path on the other one.
    fn real(&self, path: &Path) -> PathBuf;
}

/// Defines a test with these attributes for each rule of a contract. The rules are functions that get the kind.
macro_rules! tests_of {
    (async $contract:ident, $kind:path, $attributes:tt: $($rule:ident)+) => {
        $($crate::sandbox::kind::tests_of! { @async $contract, $kind, $attributes, $rule })+
    };
    ($contract:ident, $kind:path, $attributes:tt: $($rule:ident)+) => {
        $($crate::sandbox::kind::tests_of! { @ $contract, $kind, $attributes, $rule })+
    };
    (@async $contract:ident, $kind:path, [$($attribute:tt)*], $rule:ident) => {
        $($attribute)*
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn $rule() {
            $crate::sandbox::$contract::$rule(&$kind()).await;
        }
    };
    (@ $contract:ident, $kind:path, [$($attribute:tt)*], $rule:ident) => {
        $($attribute)*
        #[test]
        fn $rule() {
            $crate::sandbox::$contract::$rule(&$kind());
        }
    };
}
pub(super) use tests_of;
