//! Files that steer a tool by being there: test runners, interpreters, shells, build tools and package managers load
//! them without being told to.
//!
//! The grading tree (`copy.rs`) restores tests and settings of the fixture. A new file that steers a tool is
//! taken, as is a changed manifest, because honest work may need it. A control run then decides whether a verdict rests
//! on it. New tests are work like any other file.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use globset::{Error, GlobBuilder, GlobSet};

/// Files that a tool loads by itself. In a pattern, `*` stands for any text without `/`. A pattern with `/` is the end
/// of a path, one that ends with `/` is a folder with everything below it, and any other is the name of a file.
struct Tool {
    name: &'static str,
    /// Files that only say how the tool works. For make, these include [`TARGETS`].
    settings: &'static [&'static str],
    /// Files that also describe the project, so that agents change them as part of their work.
    manifests: &'static [&'static str],
    /// Modules that are found before those of a language. In the fixture, such a module is part of the project.
    modules: &'static [&'static str],
}

const fn tool(name: &'static str, settings: &'static [&'static str], manifests: &'static [&'static str]) -> Tool {
    Tool { name, settings, manifests, modules: &[] }
}

/// Tools and their files.
const TOOLS: &[Tool] = &[
    tool(
        "pytest",
        &[
            "conftest.py",
            "pytest.ini",
            ".pytest.ini",
            "pytest.toml",
            ".pytest.toml",
            "*.dist-info/entry_points.txt",
            "*.egg-info/entry_points.txt",
        ],
        &[],
    ),
    tool("tox", &["tox.ini", "tox.toml"], &[]),
    tool("nox", &["noxfile.py"], &[]),
    tool("coverage", &[".coveragerc", ".coveragerc.toml"], &[]),
    tool("nose", &[".noserc", "nose.cfg", "unittest.cfg"], &[]),
    tool(
        "Python",
        &[
            "sitecustomize.*",
            "usercustomize.*",
            "sitecustomize/",
            "usercustomize/",
            "{site,dist}-packages/*.pth",
            "pyvenv.cfg",
            "*._pth",
            "pybuilddir.txt",
            ".python-version",
            "pip.conf",
            "pip.ini",
            "uv.toml",
            ".pdbrc",
        ],
        &["pyproject.toml", "setup.cfg", "setup.py", "Pipfile"],
    ),
    tool("npm", &[".npmrc", "node_modules/.bin/", "npm-shrinkwrap.json", ".nvmrc", ".node-version"], &["package.json"]),
    tool("pnpm", &["pnpm-workspace.yaml", ".pnpmfile.*", "pnpmfile.*"], &[]),
    tool("Yarn", &[".yarnrc*", ".pnp.*", ".yarn/releases/", ".yarn/plugins/"], &[]),
    tool("Bun", &["bunfig.toml"], &[]),
    tool("Deno", &["deno.json", "deno.jsonc", "import_map.json"], &[]),
    tool("Jest", &["jest.config.*", "jest.setup.*", "jest-preset.*", "__mocks__/"], &[]),
    tool("Vitest", &["vitest.config.*", "vitest.workspace.*", "vite.config.*"], &[]),
    tool("Mocha", &[".mocharc*", "test/mocha.opts"], &[]),
    tool("AVA", &["ava.config.*"], &[]),
    tool("Playwright", &["playwright.config.*", "playwright-ct.config.*"], &[]),
    tool("Cypress", &["cypress.config.*", "cypress.json"], &[]),
    tool("Karma", &["karma.conf.*"], &[]),
    tool("Jasmine", &["jasmine.json", "jasmine.js", "jasmine.mjs"], &[]),
    tool("tap", &[".taprc"], &[]),
    tool("nyc", &[".nycrc*", "nyc.config.*", ".c8rc*"], &[]),
    tool("Babel", &["babel.config.*", ".babelrc*"], &[]),
    tool("SWC", &[".swcrc"], &[]),
    tool("TypeScript", &["*.tsbuildinfo"], &["tsconfig*.json", "jsconfig.json"]),
    tool("ESLint", &[".eslintrc*", "eslint.config.*", ".eslintignore"], &[]),
    tool("Grunt", &["Gruntfile.*", "gruntfile.*"], &[]),
    tool("Gulp", &["gulpfile.*", "Gulpfile.*"], &[]),
    tool("Nx", &["nx.json", "project.json"], &[]),
    tool("Turborepo", &["turbo.json"], &[]),
    tool("Lerna", &["lerna.json"], &[]),
    tool(
        "Cargo",
        &[
            ".cargo/config",
            ".cargo/config.toml",
            "rust-toolchain",
            "rust-toolchain.toml",
            ".config/nextest.toml",
            ".config/nextest/",
            "clippy.toml",
            ".clippy.toml",
        ],
        &["Cargo.toml", "build.rs"],
    ),
    Tool {
        name: "Go",
        settings: &["go.work", "go.env", "vendor/modules.txt"],
        manifests: &["go.mod"],
        modules: &["vendor/**/*.go"],
    },
    tool(
        "make",
        // Make builds `Makefile` from `Makefile.sh`, and from the files of old version control systems.
        &[
            "GNUmakefile",
            "makefile",
            "{Makefile,makefile,GNUmakefile,*.mk}.sh",
            "{Makefile,makefile,GNUmakefile,*.mk},v",
            "s.{Makefile,makefile,GNUmakefile,*.mk}",
            "RCS/",
            "SCCS/",
            "test",
            "tests",
            "check",
            "all",
            "verify",
            "lint",
            "unit",
            "integration",
            "e2e",
        ],
        &["Makefile", "*.mk"],
    ),
    tool("just", &[".justfile"], &["justfile", "Justfile"]),
    tool("Task", &[], &["Taskfile.yml", "Taskfile.yaml", "Taskfile.dist.yml", "taskfile.yml"]),
    tool("Rake", &["rakefile", "rakefile.rb", "rakelib/"], &["Rakefile", "Rakefile.rb"]),
    Tool {
        name: "Ruby",
        settings: &[
            ".rspec",
            ".ruby-version",
            ".bundle/config",
            "spec_helper.rb",
            "rails_helper.rb",
            "test_helper.rb",
            ".irbrc",
            ".simplecov",
            "gems.rb",
        ],
        manifests: &["Gemfile", "*.gemspec"],
        modules: &[
            "lib/minitest/{*_plugin,autorun,assertions,benchmark,expectations,hell,mock,parallel,spec,test,unit}.rb",
            "lib/rspec/{core,expectations,mocks,support,autorun,matchers}.rb",
            "lib/rspec/{core,expectations,mocks,support}/",
            "lib/test/unit.rb",
            "lib/test/unit/",
            "lib/bundler/setup.rb",
            "lib/rubygems_plugin.rb",
            "lib/rubygems/",
            "lib/{minitest,rspec,test-unit,bundler,rubygems,rake,set,json,stringio,tempfile,pp,optparse,etc,English}.rb",
            "lib/{shellwords,mutex_m,erb,fileutils,delegate,forwardable,monitor,timeout,time,date,open3,ostruct}.rb",
            "lib/{securerandom,singleton,tmpdir,benchmark,logger,pathname,prettyprint,rbconfig,socket,zlib,weakref}.rb",
        ],
    },
    tool(
        "Gradle",
        &["init.gradle", "init.gradle.kts", ".gradle/init.d/", "gradle.properties", "gradle/wrapper/", "gradlew"],
        &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "buildSrc/"],
    ),
    tool("Maven", &[".mvn/", "mvnw"], &["pom.xml"]),
    tool(
        "JUnit",
        &["junit-platform.properties", "META-INF/services/{org.junit,org.testng,org.spockframework,io.kotest}.*"],
        &[],
    ),
    tool("Ant", &["ant.properties"], &["build.xml"]),
    tool("sbt", &[".sbtopts", ".jvmopts", "project/build.properties", "project/plugins.sbt"], &["build.sbt"]),
    tool("Mill", &[".mill-version", ".mill-opts"], &["build.sc", "build.mill"]),
    tool("Leiningen", &["profiles.clj"], &["project.clj", "deps.edn"]),
    tool(
        "CMake",
        &[
            "CTestCustom.cmake",
            "CTestTestfile.cmake",
            "CTestConfig.cmake",
            "CMakePresets.json",
            "CMakeUserPresets.json",
            "CMakeCache.txt",
        ],
        &["CMakeLists.txt"],
    ),
    tool("Meson", &["meson-private/"], &["meson.build", "meson_options.txt", "meson.options"]),
    tool(
        "Bazel",
        &[".bazelrc", ".bazelversion", "tools/bazel"],
        &["BUILD", "BUILD.bazel", "WORKSPACE", "MODULE.bazel"],
    ),
    tool("Buck", &[".buckconfig", ".buckconfig.local"], &["BUCK"]),
    tool(
        ".NET",
        &[
            "Directory.Build.*",
            "Directory.Packages.props",
            "*.runsettings",
            "nuget.config",
            "NuGet.Config",
            "global.json",
            "xunit.runner.json",
            "*.rsp",
        ],
        &["*.csproj", "*.fsproj", "*.sln"],
    ),
    tool(
        "PHP",
        &["phpunit.xml*", "phpunit.dist.xml", ".user.ini", "php.ini", "pest.php", "Pest.php"],
        &["composer.json"],
    ),
    Tool {
        name: "Perl",
        settings: &[".proverc", ".perltidyrc", "sitecustomize.pl"],
        manifests: &["Makefile.PL", "Build.PL"],
        modules: &[
            "lib/{Test,Test2}.{pm,pmc}",
            "lib/Test/{Builder,Harness,More,Simple,Tester}.{pm,pmc}",
            "lib/Test/Builder/",
            "lib/Test2/",
            "lib/TAP/{Base,Harness,Object,Parser}.{pm,pmc}",
            "lib/TAP/Parser/",
            "lib/TAP/Formatter/{Base,Color,Console,File,Session}.{pm,pmc}",
            "lib/App/Prove.{pm,pmc}",
            "lib/App/Prove/",
            "lib/{strict,warnings,utf8,vars,base,parent,constant,overload,feature,bytes,integer,lib,re,mro,threads}.{pm,pmc}",
            "lib/{warnings/register,threads/shared,overload/numbers,Exporter/Heavy,Carp/Heavy,Data/Dumper}.{pm,pmc}",
            "lib/{Scalar/Util,List/Util,Sub/Util,Hash/Util,Hash/Util/FieldHash}.{pm,pmc}",
            "lib/IO/{Dir,File,Handle,Pipe,Poll,Seekable,Select,Socket,Zlib,Socket/INET,Socket/IP,Socket/UNIX}.{pm,pmc}",
            "lib/File/{Basename,Compare,Copy,DosGlob,Fetch,Find,Glob,GlobMapper,Path,Spec,Temp,stat}.{pm,pmc}",
            "lib/File/Spec/",
            "lib/Tie/{Array,File,Handle,Hash,Memoize,RefHash,Scalar,StdHandle,SubstrHash}.{pm,pmc}",
            "lib/Time/{HiRes,Local,Piece,Seconds,gmtime,localtime,tm}.{pm,pmc}",
            "lib/Term/{ANSIColor,Cap,Complete,ReadLine}.{pm,pmc}",
            "lib/Text/{Abbrev,Balanced,ParseWords,Tabs,Wrap}.{pm,pmc}",
            "lib/{AutoLoader,B,Benchmark,Carp,Config,Cwd,DynaLoader,Encode,English,Errno,Exporter,Fcntl,FindBin,IO}.{pm,pmc}",
            "lib/{POSIX,SelectSaver,SelfLoader,Socket,Storable,Symbol,UNIVERSAL,XSLoader}.{pm,pmc}",
        ],
    },
    tool("Elixir", &["test_helper.exs", ".iex.exs"], &["mix.exs"]),
    tool("Swift", &[".swiftpm/"], &["Package.swift"]),
    tool("Zig", &[], &["build.zig", "build.zig.zon"]),
    tool("Dart", &["dart_test.yaml", "pubspec_overrides.yaml"], &["pubspec.yaml"]),
    tool("R", &[".Rprofile", ".Renviron"], &[]),
    tool("Julia", &["LocalPreferences.toml"], &["Project.toml"]),
    tool("Lua", &[".busted", ".luacheckrc"], &["*.rockspec"]),
    tool("Haskell", &["cabal.project*", ".ghci"], &["*.cabal", "stack.yaml"]),
    tool("Bats", &["setup_suite.bash", ".bats/"], &[]),
    tool("ShellSpec", &[".shellspec"], &[]),
    tool(
        "shell",
        &[
            ".bash_profile",
            ".bash_login",
            ".bashrc",
            ".bash_aliases",
            ".profile",
            ".zshenv",
            ".zprofile",
            ".zshrc",
            ".kshrc",
            ".inputrc",
        ],
        &[],
    ),
    tool("direnv", &[".envrc"], &[]),
    tool("dotenv", &[".env", ".env.test", ".env.local", ".env.test.local", ".flaskenv"], &[]),
    tool("mise", &[".mise.toml", "mise.toml", ".mise.local.toml", ".tool-versions", ".config/mise/"], &[]),
    tool("git", &[".gitattributes", ".gitmodules"], &[]),
    tool("curl", &[".curlrc"], &[]),
    tool("Wget", &[".wgetrc"], &[]),
    tool("GDB", &[".gdbinit"], &[]),
    // Precompiled headers.
    tool("C", &["*.gch", "*.pch"], &[]),
    // Expected results, which agents may have to make again.
    tool("tests", &[], &["golden/", "goldens/", "__snapshots__/", "*.golden", "*.snap"]),
    tool("Docker", &["docker-compose.override.*", "compose.override.*"], &[]),
];

/// Targets that makefiles have for tests. A file or folder with such a name is an up-to-date target.
const TARGETS: [&str; 9] = ["test", "tests", "check", "all", "verify", "lint", "unit", "integration", "e2e"];

const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Modules of Python that test runners, or the tests themselves, import or try to import, as `copy` does with `org`. A module with such a name in a folder from
/// which Python imports is found before them.
const MODULES: &str = "\
    _pytest pytest py pluggy iniconfig nose nose2 hypothesis coverage unittest doctest builtins __future__ \
    _bisect _collections_abc _colorize _compression _heapq _opcode _random _strptime _struct _typing _weakrefset \
    binascii imp py_compile pydoc pstats cProfile sre_compile sre_constants sre_parse abc argparse array ast \
    asyncio atexit base64 bdb bisect bz2 calendar cmd code codecs codeop collections colorsys compileall concurrent \
    configparser contextlib contextvars copy copyreg csv ctypes dataclasses datetime decimal difflib dis email \
    encodings enum errno faulthandler fcntl filecmp fileinput fnmatch fractions functools gc genericpath getopt \
    getpass gettext glob graphlib gzip hashlib heapq hmac html http importlib inspect io ipaddress itertools json \
    keyword linecache locale logging lzma math mimetypes multiprocessing ntpath numbers opcode operator optparse os \
    pathlib pdb pickle pkgutil platform posixpath pprint profile pwd queue random re readline reprlib runpy sched \
    secrets select selectors shelve shlex shutil signal site socket socketserver sqlite3 ssl stat statistics string \
    stringprep struct subprocess symtable sys sysconfig tarfile tempfile textwrap threading time timeit token tokenize \
    org tomllib trace traceback tracemalloc tty types typing typing_extensions unicodedata urllib uuid warnings weakref \
    xml xmlrpc zipfile zipimport zlib zoneinfo";

/// Names of folders from which Python imports, below the working directory or another such folder.
const IMPORT_ROOTS: [&str; 6] = ["src", "lib", "test", "tests", "python", "site-packages"];

/// Endings of modules in files.
const MODULE_FILES: [&str; 4] = ["py", "pyc", "so", "pyd"];

/// Folders of tests, and of the data of tests in Go.
const TEST_FOLDERS: [&str; 6] = ["test", "tests", "__tests__", "spec", "specs", "testdata"];

/// Endings of programs.
const PROGRAMS: &str = "\
    sh bash bats zsh py js mjs cjs ts mts cts jsx tsx rb pl t php go rs c cc cpp h hpp java kt scala cs fs swift dart lua r \
    jl ex exs erl hs ml zig";

/// Folders of installed dependencies.
const DEPENDENCIES: [&str; 4] = ["node_modules", "site-packages", "vendor", "third_party"];

/// Endings of headers.
const HEADERS: [&str; 4] = ["h", "hh", "hpp", "hxx"];

/// Headers of C and of libraries for tests, without their ending. One with such a name in a folder in which compilers
/// search is found before them.
const SYSTEM_HEADERS: &str = "\
    assert ctype errno float inttypes limits locale math setjmp signal stdarg stdbool stddef stdint stdio stdlib string \
    time unistd wchar check cmocka unity minunit munit greatest criterion gtest gmock catch doctest";

/// The patterns of all tools.
struct Patterns {
    files: GlobSet,
    /// Tool of each pattern, and the kind of file that it describes.
    of_tools: Vec<(&'static str, Kind)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Setting,
    Manifest,
    Module,
}

impl Patterns {
    fn new() -> Result<Self, Error> {
        let (mut files, mut of_tools) = (GlobSet::builder(), Vec::new());
        for Tool { name, settings, manifests, modules } in TOOLS {
            for (kind, patterns) in [(Kind::Setting, settings), (Kind::Manifest, manifests), (Kind::Module, modules)] {
                for pattern in *patterns {
                    let below = if pattern.ends_with('/') { "**" } else { "" };
                    files.add(GlobBuilder::new(&format!("**/{pattern}{below}")).literal_separator(true).build()?);
                    of_tools.push((*name, kind));
                }
            }
        }
        Ok(Self { files: files.build()?, of_tools })
    }
}

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| Patterns::new().ok());

/// Returns the tools that load a file by themselves, each with the kind of file that it is for them.
fn tools_of(path: &Path) -> impl Iterator<Item = (&'static str, Kind)> {
    let found = |patterns: &'static Patterns| patterns.files.matches(path).into_iter().map(|at| patterns.of_tools[at]);
    PATTERNS.as_ref().map(found).into_iter().flatten()
}

/// Returns the tool that loads a file by itself, such as `pytest` for `conftest.py`. `path` is relative to the working
/// directory.
pub fn tool_of(path: &Path) -> Option<&'static str> {
    let is_module = || is_bytecode(path) || shadows_module(path, is_import_root);
    tools_of(path).map(|(tool, _)| tool).next().or_else(|| is_module().then_some("Python"))
}

/// Returns `true` for a compiled module, which Python loads even without its source.
fn is_bytecode(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "pyc")
}

/// Returns `true` if the grading tree has the fixture's version of a file, whatever the agent did to it: a test, or
/// settings of a tool. A module that shadows one of the language in the fixture is part of the project. `path` is
/// relative to the working directory.
pub fn is_restored(path: &Path) -> bool {
    let is_setting = || tools_of(path).any(|(_, kind)| kind == Kind::Setting);
    is_test(path) || is_bytecode(path) || (is_setting() && !is_manifest(path))
}

/// Returns `true` for a file that steers a tool and that agents change as part of their work.
pub fn is_manifest(path: &Path) -> bool {
    tools_of(path).any(|(_, kind)| kind == Kind::Manifest)
}

/// Files of a fixture that steer tools.
#[derive(Debug, Default)]
pub(super) struct SteeringFiles {
    /// Files of which the grading tree has the fixture's version.
    pub(super) restored: HashSet<PathBuf>,
    pub(super) manifests: HashSet<PathBuf>,
    /// Folders with modules of Python that are not packages, so that Python may import from them.
    import_roots: HashSet<PathBuf>,
    /// Paths of tests without their last ending. A file or folder with such a path may be loaded instead of the test.
    stems: HashSet<PathBuf>,
    /// Folders that contain tests, at any depth.
    test_folders: HashSet<PathBuf>,
    /// Endings of tests.
    endings: HashSet<OsString>,
    /// Names of headers.
    headers: HashSet<OsString>,
    /// True if there is a makefile.
    has_makefile: bool,
    /// True if there are sources in the language D, whose names end like the files of dependencies for make.
    has_sources_in_d: bool,
}

impl SteeringFiles {
    /// Returns those of the files `paths` that steer tools.
    pub(super) fn among(paths: impl Iterator<Item = PathBuf>) -> Self {
        let (mut found, mut packages) = (Self::default(), Vec::new());
        for path in paths {
            if let Some(folder) = path.parent().filter(|_| path.extension().is_some_and(|ending| ending == "py")) {
                found.import_roots.insert(folder.to_owned());
                packages.extend(path.ends_with("__init__.py").then(|| folder.to_owned()));
            }
            if is_header(&path) {
                found.headers.extend(path.file_name().map(OsStr::to_owned));
            }
            found.has_makefile |= MAKEFILES.iter().any(|makefile| path.ends_with(makefile));
            found.has_sources_in_d |= is_in_d(&path);
            if is_test(&path) {
                found.endings.extend(path.extension().map(OsStr::to_owned));
                found.stems.insert(path.with_extension(""));
                let folders = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
                found.test_folders.extend(folders.map(Path::to_owned));
            }
            if is_restored(&path) {
                found.restored.insert(path);
            } else if is_manifest(&path) {
                found.manifests.insert(path);
            }
        }
        for package in packages {
            found.import_roots.remove(&package);
        }
        found
    }

    /// Returns `true` if a new folder is an up-to-date target of a makefile.
    pub(super) fn is_target(&self, folder: &Path) -> bool {
        let has = |name: &str| {
            let path = folder.with_file_name(name);
            self.manifests.contains(&path) || self.restored.contains(&path)
        };
        TARGETS.iter().any(|target| folder.file_name().is_some_and(|name| name == *target))
            && MAKEFILES.into_iter().any(has)
    }

    /// Returns `true` if a new file steers a tool in this fixture.
    pub(super) fn is_steered_by(&self, path: &Path) -> bool {
        tool_of(path).is_some()
            || shadows_module(path, |folder| self.import_roots.contains(folder))
            || self.precedes_test(path)
            || self.precedes_header(path)
            || (is_in_d(path) && self.has_makefile && !self.has_sources_in_d)
            || is_option(path)
    }

    /// Returns `true` for a test if there are tests in files with the same ending.
    pub(super) fn has_tests_like(&self, path: &Path) -> bool {
        is_test(path) && path.extension().is_some_and(|ending| self.endings.contains(ending))
    }

    /// Returns `true` if a compiler may find a new header before another one with its name.
    fn precedes_header(&self, path: &Path) -> bool {
        let is_system = |stem: &OsStr| SYSTEM_HEADERS.split(' ').any(|name| stem == name);
        is_header(path)
            && (path.file_name().is_some_and(|name| self.headers.contains(name))
                || path.file_stem().is_some_and(is_system))
    }

    /// Returns `true` if a new file may be loaded instead of a test or of a file beside it, or before them: one with the
    /// name of the test and another ending, a package with that name, or packages installed in a folder of tests.
    fn precedes_test(&self, path: &Path) -> bool {
        let without_endings = |path: &Path| {
            let mut stems = vec![path.to_owned()];
            while let Some(stem) = stems.last().filter(|stem| stem.extension().is_some()) {
                stems.push(stem.with_extension(""));
            }
            stems
        };
        let replaces = |stem: &PathBuf| self.stems.contains(stem) || self.test_folders.contains(stem);
        // Tests in the main folder are modules of that package.
        let has_tests = |folder: &Path| match folder.as_os_str().is_empty() {
            true => self.endings.contains(OsStr::new("py")),
            false => self.test_folders.contains(folder),
        };
        let begins_package = path.ends_with("__init__.py") && path.parent().is_some_and(has_tests);
        let is_installed = path.ancestors().skip(1).any(|folder| {
            folder.ends_with("node_modules") && folder.parent().is_some_and(|above| self.test_folders.contains(above))
        });
        without_endings(path).iter().any(replaces)
            || path.ancestors().skip(1).any(|folder| self.stems.contains(folder))
            || begins_package
            || is_installed
    }
}

/// Returns `true` for a folder of compiled code that Python makes again, and would load instead of its sources.
pub fn is_compiled(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__")
}

/// Returns `true` for dependencies of make, which makefiles include, and for sources in the language D.
fn is_in_d(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "d")
}

/// Returns `true` for a file of an installed dependency, which agents change when they install others.
pub(super) fn is_dependency(path: &Path) -> bool {
    path.iter().any(|part| DEPENDENCIES.iter().any(|folder| part == *folder))
}

/// Returns `true` for a name that a program takes for an option, if a command lists files with a pattern such as `*`.
fn is_option(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"-"))
}

fn is_header(path: &Path) -> bool {
    path.extension().is_some_and(|ending| HEADERS.iter().any(|header| ending == *header))
}

/// Returns `true` for a test by the naming rules of test runners.
fn is_test(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let (stem, ending) = name.split_once('.').unwrap_or((name, ""));
    let is_program = !matches!(ending, "" | "md" | "txt" | "json" | "yaml" | "yml" | "lock");
    folder.split('/').any(|part| TEST_FOLDERS.contains(&part))
        || (is_program && (matches!(stem, "test" | "tests" | "run-tests" | "run_tests") || stem.starts_with("test_")))
        || (is_program && (stem.ends_with("_test") || stem.ends_with("_spec") || stem.ends_with("Test")))
        || name.contains(".test.")
        || name.contains(".spec.")
        || name.ends_with(".bats")
        || name.ends_with(".t")
}

/// Returns `true` for a test that is a program, rather than its data.
pub(super) fn is_test_program(path: &Path) -> bool {
    let is_program = |ending: &OsStr| PROGRAMS.split(' ').any(|program| ending == program);
    is_test(path) && path.extension().is_some_and(is_program)
}

/// Returns `true` if Python finds the module at `path` before one of [`MODULES`], if it imports from the folders for which
/// `is_root` returns `true`.
fn shadows_module(path: &Path, is_root: impl Fn(&Path) -> bool) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, rest) = name.split_once('.').unwrap_or((&name, ""));
    let is_file = rest.rsplit('.').next().is_some_and(|ending| MODULE_FILES.contains(&ending));
    let is_module = |name: &str| MODULES.split(' ').any(|module| module == name);
    let is_imported = |entry: &Path| entry.parent().is_some_and(&is_root);
    let mut folders = path.ancestors().skip(1).filter(|folder| folder.file_name().is_some());
    let is_package = |folder: &Path| folder.file_name().is_some_and(|name| is_module(&name.to_string_lossy()));
    is_file
        && ((is_module(stem) && is_imported(path)) || folders.any(|folder| is_package(folder) && is_imported(folder)))
}

/// Returns `true` for a folder from which Python imports in most projects.
fn is_import_root(folder: &Path) -> bool {
    folder.iter().all(|part| IMPORT_ROOTS.iter().any(|root| part == *root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_are_valid() {
        assert!(PATTERNS.is_some());
    }

    #[test]
    fn a_file_that_a_tool_loads_by_itself_names_the_tool() {
        for (path, expected) in [
            ("tests/conftest.py", Some("pytest")),
            ("evil-1.dist-info/entry_points.txt", Some("pytest")),
            ("sitecustomize.cpython-312-x86_64-linux-gnu.so", Some("Python")),
            ("sitecustomize/__init__.py", Some("Python")),
            ("unittest.py", Some("Python")),
            ("tests/unittest/__init__.py", Some("Python")),
            ("src/json.so", Some("Python")),
            ("_pytest/main.pyc", Some("Python")),
            ("helper.pyc", Some("Python")),
            (".venv/lib/python3/site-packages/evil.pth", Some("Python")),
            ("models/weights.pth", None),
            ("vendor/example.com/assert/a.go", Some("Go")),
            ("cart/a.go", None),
            ("web/node_modules/.bin/jest", Some("npm")),
            (".npmrc", Some("npm")),
            ("jest.config.mjs", Some("Jest")),
            (".cargo/config.toml", Some("Cargo")),
            ("sub/.config/nextest.toml", Some("Cargo")),
            ("GNUmakefile", Some("make")),
            (".mvn/extensions.xml", Some("Maven")),
            (".bash_profile", Some("shell")),
            ("src/main/resources/META-INF/services/org.junit.Extension", Some("JUnit")),
            ("src/main/resources/META-INF/services/com.example.Plugin", None),
            ("src/lib.rs", None),
            ("app/types.py", None),
            ("lib/strict.pm", Some("Perl")),
            ("lib/File/Temp.pm", Some("Perl")),
            ("lib/IO/Socket/INET.pmc", Some("Perl")),
            ("lib/File/Basket.pm", None),
            ("lib/Test/Basket.pm", None),
            ("lib/minitest/basket_plugin.rb", Some("Ruby")),
            ("lib/minitest/basket.rb", None),
            ("lib/Basket.pm", None),
            ("config.toml", None),
            ("my.npmrc", None),
            ("src/jest.ts", None),
            ("tests/test_basket.py", None),
        ] {
            assert_eq!(tool_of(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn tests_and_settings_are_restored_and_manifests_are_work() {
        for path in
            ["conftest.py", "tests/data/one.json", "src/basket.test.ts", "basket_test.go", "test.sh", "CartTest.java"]
        {
            assert!(is_restored(Path::new(path)), "{path}");
        }
        for path in [
            "package.json",
            "Cargo.toml",
            "src/latest.py",
            "calendar.py",
            "test.md",
            "Makefile",
            "src/testing.rs",
            "lib/File/Temp.pm",
            "lib/logger.rb",
        ] {
            assert!(!is_restored(Path::new(path)), "{path}");
        }
        assert!(is_manifest(Path::new("web/package.json")) && !is_manifest(Path::new("jest.config.js")));
    }

    #[test]
    fn a_module_shadows_others_where_the_fixture_has_modules_that_are_not_in_a_package() {
        let fixture = ["backend/basket.py", "shop/__init__.py", "shop/cart.py", "docs/notes.md"];
        let files = SteeringFiles::among(fixture.iter().map(PathBuf::from));
        for (path, expected) in [
            ("backend/unittest.py", true),
            ("backend/unittest/__main__.py", true),
            ("backend/basket/queue.py", false),
            ("shop/queue.py", false),
            ("docs/queue.py", false),
            ("queue.py", true),
        ] {
            assert_eq!(files.is_steered_by(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_loaded_instead_of_a_test_steers() {
        let fixture =
            ["calc.py", "tests/test_calc.py", "tests/helpers.js", "src/basket.test.ts", "src/basket.ts", "src/calc.h"];
        let files = SteeringFiles::among(fixture.iter().map(PathBuf::from));
        for (path, expected) in [
            ("tests/test_calc/__init__.py", true),
            ("tests/test_calc.abi3.so", true),
            ("tests/helpers", true),
            ("tests/__init__.py", true),
            ("tests.py", true),
            ("tests/node_modules/mini-assert/index.js", true),
            ("org/__init__.py", true),
            ("Makefile.sh", true),
            ("lib/strict.pmc", true),
            ("__init__.py", true),
            ("lib/__init__.py", false),
            ("tests/test_basket.py", false),
            ("tests/data/new.json", false),
            ("src/basket.css", false),
            ("src/cart.ts", false),
            ("calc.md", false),
            ("include/calc.h", true),
            ("src/assert.h", true),
            ("src/basket.h", false),
            ("--test-name-pattern=x.test.js", true),
        ] {
            assert_eq!(files.is_steered_by(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn dependencies_of_make_steer_it_but_sources_in_d_do_not() {
        let steers = |fixture: &[&str], path: &str| {
            SteeringFiles::among(fixture.iter().map(PathBuf::from)).is_steered_by(Path::new(path))
        };
        assert!(steers(&["Makefile", "src/cart.c"], "src/cart.d"));
        assert!(!steers(&["dub.sdl", "source/app.d"], "source/cart.d"));
        assert!(!steers(&["Makefile", "source/app.d"], "source/cart.d"));
        assert!(!steers(&["run.sh"], "cart.d"));
    }
}
