//! The tables. Released migration steps never change: each new format adds a step. The `blobs` table is not used.

/// Application id of our files (`trln`).
pub(super) const MARK: u32 = 0x7472_6c6e;

/// Steps that migrate format n to format n + 1.
pub(super) const STEPS: &[&str] = &[
    "
CREATE TABLE runs (
    no          INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    label       TEXT,
    regrade_of  TEXT,
    started_us  INTEGER NOT NULL,
    finished_us INTEGER,
    duration_ms INTEGER,
    signal      TEXT,
    owner_pid   INTEGER,
    version     TEXT NOT NULL,
    planned     INTEGER NOT NULL,
    finished    INTEGER NOT NULL DEFAULT 0,
    summary     TEXT
) STRICT;
CREATE INDEX runs_by_start ON runs (started_us, no);

-- What runs set out to do. It is as long as there are trials, and its run's row changes with each of them.
CREATE TABLE infos (
    run  INTEGER PRIMARY KEY REFERENCES runs (no) ON DELETE CASCADE,
    info BLOB NOT NULL
) STRICT;

-- What lists show. What is large stands in `packs`, so that a list of many trials reads few pages.
CREATE TABLE trials (
    no            INTEGER PRIMARY KEY,
    run           INTEGER NOT NULL REFERENCES runs (no) ON DELETE CASCADE,
    id            TEXT NOT NULL,
    suite         TEXT NOT NULL,
    case_id       TEXT NOT NULL,
    arm           TEXT NOT NULL,
    agent         TEXT NOT NULL,
    model         TEXT,
    variant       TEXT,
    repetition    INTEGER NOT NULL,
    outcome       TEXT NOT NULL,
    flaky         INTEGER NOT NULL,
    fault         TEXT,
    because       TEXT,
    score         REAL,
    max_score     REAL,
    started_us    INTEGER NOT NULL,
    finished_us   INTEGER NOT NULL,
    duration_ms   INTEGER NOT NULL,
    turns         INTEGER NOT NULL,
    tool_calls    INTEGER NOT NULL,
    input         INTEGER,
    cache_read    INTEGER,
    cache_write   INTEGER,
    output        INTEGER,
    reasoning     INTEGER,
    cost_usd      REAL,
    token_budget  REAL,
    attempts      INTEGER NOT NULL,
    errors        INTEGER NOT NULL,
    skill_version TEXT,
    skill_hash    TEXT,
    first_seq     INTEGER NOT NULL,
    UNIQUE (run, id)
) STRICT;
CREATE INDEX trials_by_finish ON trials (finished_us, no);
CREATE INDEX trials_by_case ON trials (suite, case_id, finished_us);

CREATE TABLE packs (
    trial  INTEGER PRIMARY KEY REFERENCES trials (no) ON DELETE CASCADE,
    record BLOB NOT NULL,
    events BLOB NOT NULL
) STRICT;

-- Events of the run itself, under the trial '', and of trials that have no outcome.
CREATE TABLE journal (
    run   INTEGER NOT NULL REFERENCES runs (no) ON DELETE CASCADE,
    trial TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (run, trial, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE blobs (
    run    INTEGER NOT NULL REFERENCES runs (no) ON DELETE CASCADE,
    trial  TEXT NOT NULL,
    name   TEXT NOT NULL,
    chunk  INTEGER NOT NULL,
    length INTEGER NOT NULL,
    data   BLOB NOT NULL,
    PRIMARY KEY (run, trial, name, chunk)
) STRICT;
",
    "
-- A table without row numbers is searched by comparing whole rows, and `run_started` is as long as the plan.
CREATE TABLE numbered_journal (
    run   INTEGER NOT NULL REFERENCES runs (no) ON DELETE CASCADE,
    trial TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    event TEXT NOT NULL,
    UNIQUE (run, trial, seq)
) STRICT;
INSERT INTO numbered_journal SELECT run, trial, seq, event FROM journal;
DROP TABLE journal;
ALTER TABLE numbered_journal RENAME TO journal;

-- Trials that finish together are much alike and share a pack: the events of one after those of the other, each trial's
-- record in its last event.
ALTER TABLE packs RENAME TO single_packs;
CREATE TABLE packs (
    no     INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs (no) ON DELETE CASCADE,
    events BLOB NOT NULL
) STRICT;
CREATE INDEX packs_by_run ON packs (run);
INSERT INTO packs (no, run, events)
    SELECT trials.no, trials.run, single_packs.events FROM single_packs JOIN trials ON trials.no = single_packs.trial;
DROP TABLE single_packs;

-- Where a trial's events are: a pack, and bytes of what it holds; without an end, all that follow.
ALTER TABLE trials ADD COLUMN pack INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN pack_start INTEGER NOT NULL DEFAULT 0;
ALTER TABLE trials ADD COLUMN pack_end INTEGER;
UPDATE trials SET pack = no;
",
    "
-- The agent's own time.
ALTER TABLE trials ADD COLUMN agent_ms INTEGER;
",
    "
-- For the list of runs: unpacking what each run set out to do would take as long as reading its trials.
ALTER TABLE runs ADD COLUMN agents TEXT NOT NULL DEFAULT '[]';
UPDATE runs SET agents = (
    SELECT json_group_array(json_object('name', agent, 'model', model))
    FROM (SELECT DISTINCT agent, model FROM trials WHERE run = runs.no)
);
CREATE INDEX runs_by_label ON runs (label, started_us);
",
    "
-- For trends: hashes of the test files, and of everything recorded that a trial's outcome depends on.
ALTER TABLE runs ADD COLUMN test_files TEXT NOT NULL DEFAULT '{}';
ALTER TABLE trials ADD COLUMN settings INTEGER;
",
    "
ALTER TABLE trials ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0;
-- Shards that a merged run lacks, as JSON.
ALTER TABLE runs ADD COLUMN missing_shards TEXT;
",
    "
-- Chain of hashes: a link for each finished trial and, under the trial '', for each event of the run itself. `seq` is the
-- number of its last event.
CREATE TABLE links (
    run    INTEGER NOT NULL REFERENCES runs (no) ON DELETE CASCADE,
    seq    INTEGER NOT NULL,
    trial  TEXT NOT NULL,
    digest BLOB NOT NULL,
    hash   BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
-- Hash of the last link; runs that were recorded before have no chain.
ALTER TABLE runs ADD COLUMN chain BLOB;
",
    "
-- Whether the results decide how many trials run; NULL for older runs without a summary, whose `infos` have it.
ALTER TABLE runs ADD COLUMN sequential INTEGER;
UPDATE runs SET sequential = json_extract(summary, '$.decisions') IS NOT NULL WHERE json_valid(summary);
",
    "
-- For comparisons: the lowest and the highest possible score as a share of the maximum. They are NULL for older trials,
-- whose events have what they depend on.
ALTER TABLE trials ADD COLUMN least_score REAL;
ALTER TABLE trials ADD COLUMN most_score REAL;
",
    "
-- Side effects that were removed from remotes after a run, as JSON.
CREATE TABLE cleanups (
    run     INTEGER PRIMARY KEY REFERENCES runs (no) ON DELETE CASCADE,
    removed TEXT NOT NULL
) STRICT;
",
    "
-- Lease: the owner of the run as JSON, and the time at which it last wrote to the run. They replace `owner_pid`.
ALTER TABLE runs ADD COLUMN owner TEXT;
ALTER TABLE runs ADD COLUMN renewed_us INTEGER;
",
];
