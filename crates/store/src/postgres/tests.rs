use model::{Event, Outcome};
use testkit::{PASSWORD, PostgresServer};

use super::pool::wait;
use super::*;
use crate::tests::contract::{OpenStore, RUN, RunBuilder, contract_tests, id, many_trials, owner, replayed};
use crate::{open, open_existing};

contract_tests!(keeps, #[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]);

/// Checks one rule of the contract with a store in a new schema.
fn keeps(rule: fn(OpenStore<'_>)) {
    let location = location();
    rule(&|pid| open(&location, &owner(pid)).unwrap());
}

fn location() -> Location {
    PostgresServer::shared().url().parse().unwrap()
}

fn settings(location: &Location) -> &Settings {
    let Location::Postgres(settings) = location else { panic!("{location}") };
    settings
}

/// Executes statements, as another program would.
fn execute(location: &Location, statements: &str) {
    let pool = Pool::open(settings(location)).unwrap();
    pool.run(async |session| Ok(session.client.batch_execute(statements).await?)).unwrap();
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_record_of_a_newer_version_or_another_program_is_rejected_and_unchanged() {
    let newer = location();
    assert!(open_existing(&newer).unwrap().is_none());
    drop(open(&newer, &owner(1)).unwrap());
    execute(&newer, "UPDATE formats SET format = 99");
    for error in [open(&newer, &owner(1)).err(), open_existing(&newer).err()] {
        assert!(matches!(error, Some(StoreError::Newer { found: 99, .. })), "{error:?}");
    }
    let foreign = location();
    let schema = &settings(&foreign).schema;
    execute(&foreign, &format!("CREATE SCHEMA {schema}; CREATE TABLE {schema}.runs (id TEXT)"));
    assert!(matches!(open(&foreign, &owner(1)).err(), Some(StoreError::Foreign { .. })));
    assert!(open_existing(&foreign).unwrap().is_none());
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_database_that_cannot_store_every_text_is_rejected() {
    let url = PostgresServer::shared().url();
    execute(&url.parse().unwrap(), "CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0");
    let error = open(&url.replace("/postgres?", "/plain?").parse().unwrap(), &owner(1)).err().unwrap().to_string();
    assert!(error.ends_with("its encoding is SQL_ASCII; create the database with `ENCODING 'UTF8'`"), "{error}");
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn changes_to_trials_and_to_results_are_found() {
    let place = location();
    let mut store = open(&place, &owner(1)).unwrap();
    let (names, events) = many_trials();
    events.chunks(100).for_each(|batch| store.append(batch).unwrap());
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 300, .. }));
    let differences = |change: &str| {
        execute(&place, change);
        match store.verify(RUN).unwrap() {
            Verification::Changed { differences } => differences.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        }
    };
    let of = |at: usize| id(&names[at]);
    let results = format!("the run: the results of commit::{} do not match its trials", names[7]);
    assert_eq!(differences("UPDATE results SET passed = 2 WHERE case_id = 'c7'"), [results]);
    let undo = "UPDATE results SET passed = 1 WHERE case_id = 'c7';";
    let score = format!("{}: `score` is 5 in the list of trials, and 1 in its events", of(3));
    assert_eq!(differences(&format!("{undo} UPDATE trials SET score = 5 WHERE case_id = 'c3'")), [score]);
    let removed =
        "UPDATE trials SET score = 1 WHERE case_id = 'c3'; DELETE FROM packs WHERE no = (SELECT min(no) FROM packs)";
    assert_eq!(differences(removed)[0], format!("{}: its events were changed", of(0)));
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_text_with_a_nul_is_stored() {
    let mut store = open(&location(), &owner(1)).unwrap();
    let mut story = RunBuilder::of(RUN);
    let mut events = [story.started(&["a"]), story.calls("a", "printf '\0'"), story.finished("a", Outcome::Failed)];
    if let Event::TrialFinished(record) = &mut events[2].event {
        record.reason = Some("a\0b".into());
    }
    store.append(&events).unwrap();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap()[0].reason.as_deref(), Some("a\u{fffd}b"));
    assert_eq!(store.trial(RUN, &id("a").to_string()).unwrap().reason.as_deref(), Some("a\0b"));
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { .. }));
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn an_asynchronous_program_can_use_a_record() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let found = runtime.block_on(async {
        let mut store = open(&location(), &owner(1)).unwrap();
        store.append(&[RunBuilder::of(RUN).started(&["a"])]).unwrap();
        store.runs(&RunFilter::default()).unwrap().len()
    });
    assert_eq!(found, 1);
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_reader_without_the_right_to_write_reads_a_record() {
    let server = PostgresServer::shared();
    let place = location();
    drop(open(&place, &owner(1)).unwrap().append(&[RunBuilder::of(RUN).started(&["a"])]));
    let schema = &settings(&place).schema;
    execute(
        &place,
        &format!(
            "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA {schema} TO reader;
            GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader"
        ),
    );
    let url = |schema: &str| {
        let (folder, port) = (server.folder().display(), server.port());
        format!("postgres:///postgres?user=reader&host={folder}&port={port}&schema={schema}").parse().unwrap()
    };
    let mut reader = open_existing(&url(schema)).unwrap().unwrap();
    assert_eq!(replayed(&*reader, RUN).len(), 1);
    let error = reader.remove(RUN).unwrap_err().to_string();
    assert_eq!(error, "the record cannot be read or written: permission denied for table runs");
    let error = open(&url("other"), &owner(1)).err().unwrap().to_string();
    assert!(
        error.ends_with("its tables cannot be created or brought up to date: permission denied for database postgres"),
        "{error}"
    );
    execute(&place, &format!("REVOKE USAGE ON SCHEMA {schema} FROM reader"));
    let error = open_existing(&url(schema)).err().unwrap().to_string();
    assert!(error.contains(&format!("permission denied for schema {schema}")), "{error}");
    assert!(open_existing(&url("other")).unwrap().is_none(), "the schema does not exist");
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_password_is_required_and_in_no_error() {
    let server = PostgresServer::shared();
    let port = server.port();
    let open = |url: &str| {
        let location: Location = url.parse().unwrap();
        open_existing(&location).map(drop)
    };
    let right = PASSWORD.replace(' ', "%20");
    assert!(open(&format!("postgres://ann:{right}@127.0.0.1:{port}/postgres?schema=none")).is_ok());
    let error = |url: &str| open(url).unwrap_err().to_string();
    let wrong = error(&format!("postgres://ann:hunter2@127.0.0.1:{port}/postgres"));
    let place = format!("cannot open the record postgres://ann@127.0.0.1:{port}");
    assert_eq!(wrong, format!("{place}/postgres: password authentication failed for user \"ann\""));
    let missing = error(&format!("postgres://ann@127.0.0.1:{port}/postgres"));
    assert!(missing.ends_with("set `PGPASSWORD`, or add the password to `~/.pgpass`"), "{missing}");
    let unknown = error(&format!("postgres://ann:{right}@127.0.0.1:{port}/none"));
    assert_eq!(unknown, format!("{place}/none: database \"none\" does not exist"));
    let plain = error(&format!("postgres://ann:{right}@127.0.0.1:{port}/postgres?sslmode=require"));
    assert!(plain.ends_with("`sslmode=disable` connects without encryption"), "{plain}");
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = socket.local_addr().unwrap();
    drop(socket);
    let unreachable = error(&format!("postgres://ann:hunter2@{nobody}/postgres"));
    assert!(unreachable.starts_with("cannot reach the record ") && unreachable.contains("Connection refused"));
    assert!(!unreachable.contains("hunter2"), "{unreachable}");
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_batch_is_stored_once_if_the_answer_to_its_first_attempt_is_lost() {
    let place = location();
    let mut store = PostgresStore::open(settings(&place), &owner(1)).unwrap();
    let mut story = RunBuilder::of(RUN);
    let batches = [
        vec![story.started(&["a", "b"]), story.began("a")],
        vec![story.calls("a", "ls"), story.finished("a", Outcome::Passed), story.began("b")],
        vec![story.finished("b", Outcome::Passed)],
    ];
    for batch in &batches {
        let before = store.chains.clone();
        store.append(batch).unwrap();
        store.batch -= 1;
        store.chains = before;
        store.append(batch).unwrap();
    }
    assert_eq!(replayed(&store, RUN), batches.concat());
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 2, .. }));
    assert_eq!(store.runs(&RunFilter::default()).unwrap()[0].finished, 2);
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_run_continues_after_the_server_crashed_or_ended_its_connections() {
    let mut server = PostgresServer::start();
    let place: Location = server.url().parse().unwrap();
    let mut store = PostgresStore::open(settings(&place), &owner(1)).unwrap();
    let mut story = RunBuilder::of(RUN);
    let start = vec![story.started(&["a", "b"]), story.began("a")];
    store.append(&start).unwrap();
    let end_all =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'ann'";
    let other = Pool::open(settings(&place)).unwrap();
    let mut all = start;
    for case in ["a", "b"] {
        other.run(async |session| session.query(end_all, &[]).await).unwrap();
        let batch = vec![story.calls(case, "ls"), story.finished(case, Outcome::Passed)];
        store.append(&batch).unwrap();
        all.extend(batch);
    }
    server.crash();
    let last = story.over(model::Summary::default());
    let writing = std::thread::spawn({
        let last = last.clone();
        move || store.append(&[last]).map(|()| store)
    });
    server.start_again();
    let store = writing.join().unwrap().unwrap();
    all.push(last);
    assert_eq!(replayed(&store, RUN), all);
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 2, .. }));
}

#[test]
#[cfg_attr(not(has = "postgres"), ignore = "needs PostgreSQL; run scripts/test")]
fn a_certificate_is_checked_as_the_url_says() {
    let server = PostgresServer::start_encrypted();
    let (folder, port) = (server.folder().display(), server.port());
    let socket: Location = server.url().parse().unwrap();
    execute(&socket, "CREATE ROLE bob LOGIN");
    let connect = |host: &str, rest: &str| {
        let url = format!("postgres://ann:{}@{host}:{port}/postgres?{rest}", PASSWORD.replace(' ', "%20"));
        let location: Location = url.parse().unwrap();
        let pool = Pool::open(settings(&location)).map_err(|error| error.to_string())?;
        let is_encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let row = pool.run(async |session| session.first(is_encrypted, &[]).await).unwrap().unwrap();
        Ok::<bool, String>(row.get(0))
    };
    let root = format!("sslrootcert={folder}/ca.pem");
    assert_eq!(connect("localhost", &format!("sslmode=verify-full&{root}")), Ok(true));
    assert_eq!(connect("127.0.0.1", &format!("sslmode=verify-ca&{root}")), Ok(true));
    assert_eq!(connect("127.0.0.1", "sslmode=require"), Ok(true));
    assert_eq!(connect("127.0.0.1", ""), Ok(true), "`prefer` on loopback");
    assert_eq!(connect("127.0.0.1", "sslmode=disable"), Ok(false));
    let other_host = connect("127.0.0.1", &format!("sslmode=verify-full&{root}")).unwrap_err();
    assert!(other_host.contains("certificate not valid for name \"127.0.0.1\""), "{other_host}");
    for mode in ["verify-ca", "verify-full"] {
        let unknown = connect("localhost", &format!("sslmode={mode}")).unwrap_err();
        assert!(unknown.contains("UnknownIssuer") && unknown.contains("`sslrootcert=FILE`"), "{unknown}");
    }
    let missing = connect("localhost", "sslmode=verify-ca&sslrootcert=/none.pem").unwrap_err();
    assert!(missing.contains("cannot read `sslrootcert` /none.pem"), "{missing}");

    let client = format!("sslmode=require&sslcert={folder}/bob.crt&sslkey={folder}/bob.key");
    let bob: Location = format!("postgres://bob@127.0.0.1:{port}/postgres?{client}").parse().unwrap();
    assert!(open_existing(&bob).unwrap().is_none());
    let nobody: Location = format!("postgres://bob@127.0.0.1:{port}/postgres?sslmode=require").parse().unwrap();
    let refused = open_existing(&nobody).err().unwrap().to_string();
    assert!(refused.ends_with("connection requires a valid client certificate"), "{refused}");
}

#[test]
fn waiting_ends_at_the_limit() {
    let limit = std::time::Duration::from_millis(1);
    assert_eq!(wait(std::future::pending::<()>(), limit), None);
    assert_eq!(wait(std::future::ready(1), limit), Some(1));
}
