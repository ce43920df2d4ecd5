//! The tables. Released migration steps never change: each new format adds a step.
//!
//! They are those of the SQLite record, with these differences: results of cases are kept as rows, because a team has
//! thousands of runs; and there are no foreign keys, because a run is removed in one place and checking each row would
//! slow recording down. Text is sorted by its bytes, as in SQLite.

/// Name of the record among the parts of the schema.
pub(super) const PART: &str = "record";

/// Steps that migrate format n to format n + 1.
pub(super) const STEPS: &[&str] = &[r#"
CREATE TABLE runs (
    no             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id             TEXT COLLATE "C" NOT NULL UNIQUE,
    label          TEXT COLLATE "C",
    regrade_of     TEXT,
    started_us     BIGINT NOT NULL,
    finished_us    BIGINT,
    duration_ms    BIGINT,
    signal         TEXT,
    version        TEXT NOT NULL,
    planned        BIGINT NOT NULL,
    finished       BIGINT NOT NULL DEFAULT 0,
    sequential     BIGINT NOT NULL,
    agents         TEXT NOT NULL,
    test_files     TEXT NOT NULL,
    missing_shards TEXT,
    summary        TEXT,
    -- Hash of the last link; NULL for a run that was copied from one without a chain.
    chain          BYTEA,
    -- Lease: the owner of the run as JSON, and the time at which it last wrote to the run.
    owner          TEXT,
    renewed_us     BIGINT,
    -- Random number of the last batch, by which a writer that lost its connection knows whether the batch was stored.
    batch          BIGINT
) WITH (fillfactor = 70);
CREATE INDEX runs_by_start ON runs (started_us, no);
CREATE INDEX runs_by_label ON runs (label, started_us);

-- Plans of runs. A plan is as long as there are trials, and the row of its run changes with each batch.
CREATE TABLE infos (
    run  BIGINT PRIMARY KEY,
    info BYTEA NOT NULL
);

CREATE TABLE trials (
    no            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run           BIGINT NOT NULL,
    id            TEXT COLLATE "C" NOT NULL,
    suite         TEXT COLLATE "C" NOT NULL,
    case_id       TEXT COLLATE "C" NOT NULL,
    arm           TEXT COLLATE "C" NOT NULL,
    agent         TEXT NOT NULL,
    model         TEXT,
    variant       TEXT COLLATE "C",
    repetition    BIGINT NOT NULL,
    outcome       TEXT NOT NULL,
    flaky         BIGINT NOT NULL,
    fault         TEXT,
    because       TEXT,
    score         DOUBLE PRECISION,
    max_score     DOUBLE PRECISION,
    least_score   DOUBLE PRECISION,
    most_score    DOUBLE PRECISION,
    started_us    BIGINT NOT NULL,
    finished_us   BIGINT NOT NULL,
    duration_ms   BIGINT NOT NULL,
    agent_ms      BIGINT,
    turns         BIGINT NOT NULL,
    tool_calls    BIGINT NOT NULL,
    input         BIGINT,
    cache_read    BIGINT,
    cache_write   BIGINT,
    output        BIGINT,
    reasoning     BIGINT,
    cost_usd      DOUBLE PRECISION,
    token_budget  DOUBLE PRECISION,
    attempts      BIGINT NOT NULL,
    errors        BIGINT NOT NULL,
    skill_version TEXT,
    skill_hash    TEXT,
    quarantined   BIGINT NOT NULL,
    settings      BIGINT NOT NULL,
    first_seq     BIGINT NOT NULL,
    -- Where its events are: a pack, and bytes of what it holds.
    pack          BIGINT NOT NULL,
    pack_start    BIGINT NOT NULL,
    pack_end      BIGINT NOT NULL,
    UNIQUE (run, id)
);
CREATE INDEX trials_by_case ON trials (suite, case_id, run);
CREATE INDEX trials_by_id ON trials (id);
CREATE INDEX trials_by_case_id ON trials (case_id);

-- Results of cases: the sums of the rows in `trials` with the same key.
CREATE TABLE results (
    run                BIGINT NOT NULL,
    suite              TEXT COLLATE "C" NOT NULL,
    case_id            TEXT COLLATE "C" NOT NULL,
    arm                TEXT COLLATE "C" NOT NULL,
    -- Empty if there is none.
    variant            TEXT COLLATE "C" NOT NULL,
    quarantined        BIGINT NOT NULL,
    settings           BIGINT NOT NULL,
    passed             BIGINT NOT NULL,
    failed             BIGINT NOT NULL,
    undecided          BIGINT NOT NULL,
    broken             BIGINT NOT NULL,
    stale              BIGINT NOT NULL,
    skipped            BIGINT NOT NULL,
    cancelled          BIGINT NOT NULL,
    flaky              BIGINT NOT NULL,
    passed_flaky       BIGINT NOT NULL,
    trials_with_tokens BIGINT NOT NULL,
    input              BIGINT NOT NULL,
    cache_read         BIGINT NOT NULL,
    cache_write        BIGINT NOT NULL,
    output             BIGINT NOT NULL,
    trials_with_reasoning BIGINT NOT NULL,
    reasoning          BIGINT NOT NULL,
    trials_with_cost   BIGINT NOT NULL,
    cost_usd           DOUBLE PRECISION NOT NULL,
    trials_with_time   BIGINT NOT NULL,
    agent_ms           BIGINT NOT NULL,
    PRIMARY KEY (run, suite, case_id, arm, variant, quarantined, settings)
);
CREATE INDEX results_by_case ON results (suite, case_id, run);
CREATE INDEX results_by_case_id ON results (case_id, run);

-- Events of trials that finished together, compressed.
CREATE TABLE packs (
    no     BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run    BIGINT NOT NULL,
    events BYTEA NOT NULL
);
ALTER TABLE packs ALTER COLUMN events SET STORAGE EXTERNAL;
CREATE INDEX packs_by_run ON packs (run);

-- Events of the run itself, under the trial '', and of trials that have no outcome.
CREATE TABLE journal (
    run   BIGINT NOT NULL,
    trial TEXT COLLATE "C" NOT NULL,
    seq   BIGINT NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (run, trial, seq)
);

-- Chain of hashes: a link for each finished trial and, under the trial '', for each event of the run itself. `seq` is the
-- number of its last event.
CREATE TABLE links (
    run    BIGINT NOT NULL,
    seq    BIGINT NOT NULL,
    trial  TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    hash   BYTEA NOT NULL,
    PRIMARY KEY (run, seq)
);

-- Side effects that were removed from remotes after a run, as JSON.
CREATE TABLE cleanups (
    run     BIGINT PRIMARY KEY,
    removed TEXT NOT NULL
);

CREATE TABLE judgements (
    key       TEXT COLLATE "C" PRIMARY KEY,
    stored_s  BIGINT NOT NULL,
    judgement TEXT NOT NULL
);
CREATE INDEX judgements_by_time ON judgements (stored_s);
"#];

/// Tables that have rows of a run, apart from `runs`.
pub(super) const TABLES_OF_A_RUN: [&str; 7] = ["infos", "trials", "results", "packs", "journal", "links", "cleanups"];
