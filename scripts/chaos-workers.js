// The part of scripts/chaos about runs whose trials workers run. A coordinator, PostgreSQL and three workers run in
// network namespaces of their own, or, where those are refused, as processes on loopback.
"use strict";
const { execFileSync, spawn, spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const WORKERS = 3;
/** Number of trials that a worker runs at once. */
const JOBS = 4;
/** Time in milliseconds after which a lease has expired. */
const LEASE = 33_000;
/** Maximum duration of a run in milliseconds, with all interruptions; a longer one counts as hanging. */
const DEADLINE = 900_000;
/** Limit of every third run, as a number of trials. */
const BUDGET = 300;

/** Returns the folder with the programs of PostgreSQL. */
function programs() {
  const versions = fs.existsSync("/usr/lib/postgresql") ? fs.readdirSync("/usr/lib/postgresql").sort((a, b) => b - a) : [];
  const folders = [...process.env.PATH.split(":"), ...versions.map((version) => `/usr/lib/postgresql/${version}/bin`)];
  return folders.find((folder) => ["initdb", "postgres", "psql", "pg_isready"].every((name) => fs.existsSync(path.join(folder, name))));
}

/** Disturbs runs with workers at `points` random points. */
module.exports = async function workers(points, { root, copy, scenario, below, pause, fail, count, counts, processes }) {
  const bin = programs();
  if (!bin) fail("PostgreSQL is not installed");
  const names = ["db", "run", ...Array.from({ length: WORKERS }, (_, index) => `w${index}`)];
  const space = (name) => `chaos-${process.pid}-${name}`;
  const made = spawnSync("ip", ["netns", "add", space("db")]);
  const isolated = made.status === 0;
  console.log(isolated ? "in network namespaces" : "without network namespaces");
  const inside = (name, command) => isolated ? ["ip", "netns", "exec", space(name), ...command] : command;
  const call = (name, ...command) => {
    const [first, ...rest] = inside(name, command);
    return execFileSync(first, rest, { stdio: ["ignore", "pipe", "ignore"] });
  };
  const started = new Set();
  for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => process.exit(1));
  process.on("exit", () => {
    for (const child of started) { try { process.kill(-child.pid, "SIGKILL"); } catch { /* It has ended. */ } }
    if (isolated) for (const name of names) spawnSync("ip", ["netns", "del", space(name)], { stdio: "ignore" });
  });
  if (isolated) {
    call("db", "ip", "link", "set", "lo", "up");
    call("db", "ip", "link", "add", "bridge", "type", "bridge");
    call("db", "ip", "addr", "add", "10.77.0.1/24", "dev", "bridge");
    call("db", "ip", "link", "set", "bridge", "up");
    names.slice(1).forEach((name, index) => {
      execFileSync("ip", ["netns", "add", space(name)]);
      execFileSync("ip", ["link", "add", `to-${name}`, "netns", space("db"), "type", "veth", "peer", "name", "eth",
        "netns", space(name)]);
      call("db", "ip", "link", "set", `to-${name}`, "master", "bridge", "up");
      call(name, "ip", "link", "set", "lo", "up");
      call(name, "ip", "addr", "add", `10.77.0.${index + 2}/24`, "dev", "eth");
      call(name, "ip", "link", "set", "eth", "up");
    });
  }

  // PostgreSQL refuses to run as root.
  const nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
  const unprivileged = process.getuid() === 0 ? nobody : [];
  const home = path.join(root, "postgres");
  fs.mkdirSync(home);
  if (unprivileged.length > 0) {
    fs.chmodSync(root, 0o755);
    fs.chownSync(home, 65534, 65534);
  }
  const data = path.join(home, "data");
  const make = [...unprivileged, path.join(bin, "initdb"), "--username=ann", "--auth=trust", "--no-sync", `--pgdata=${data}`];
  execFileSync(make[0], make.slice(1), { stdio: "ignore", cwd: home });
  fs.appendFileSync(path.join(data, "pg_hba.conf"), "host all all 10.77.0.0/24 trust\n");
  const [host, port] = [isolated ? "10.77.0.1" : "127.0.0.1", 20_000 + (process.pid % 20_000)];
  let server;
  const startServer = async () => {
    const [first, ...rest] = inside("db", [...unprivileged, path.join(bin, "postgres"), "-D", data, "-c", `port=${port}`,
      "-c", `listen_addresses=${host}`, "-c", `unix_socket_directories=${home}`, "-c", "max_connections=200"]);
    server = spawn(first, rest, { cwd: home, stdio: ["ignore", "ignore", fs.openSync(path.join(home, "log"), "a")], detached: true });
    started.add(server);
    const own = server;
    server.on("close", () => started.delete(own));
    while (spawnSync(path.join(bin, "pg_isready"), ["-q", "-h", home, "-p", `${port}`]).status !== 0) await pause(50);
  };
  const stopServer = (signal) => new Promise((done) => { server.on("close", done); server.kill(signal); });
  const sql = (database, statement) => execFileSync(path.join(bin, "psql"),
    ["-h", home, "-p", `${port}`, "-U", "ann", "-d", database, "-Atc", statement], { encoding: "utf8" }).trim();
  await startServer();

  const talks = (trials) => scenario("talks", "chat", ["go"], "type: output_contains, pattern: done",
    "model: scripted:models/talks.yaml", trials);
  /** Every trial of a run with a limit has a known number of tokens. */
  const limited = { "tests/talks.yaml": talks(600) };
  const files = {
    "tests/child.yaml": scenario("child", "child", ["write it"], "type: file_contains, path: out.txt, pattern: write it", "", 300),
    "tests/talks.yaml": talks(100),
    "tests/models/talks.yaml": "steps:\n- tools: [{name: Bash, input: {command: sleep 0.4; echo hi}}]\n- text: done\n",
    "tests/fails.yaml": scenario("fails", "fake", ["hello", "!sleep 300ms"], "type: output_contains, pattern: goodbye", "", 50),
    "tests/files.yaml": scenario("files", "fake", ["!sleep 300ms", "!write b.txt two"],
      "type: file_contains, path: b.txt, pattern: two", "fixtures: {files_committed: [{path: a.txt, content: one}]}", 50),
    "tests/code.test.ts": [
      'import { scenario, assert } from "trialrun";',
      'export default scenario("code", { trials: 100 }, async ({ agent }) => {',
      '  const reply = await agent.send("hello\\n!sleep 300ms");',
      '  assert.contains(reply, "hello");',
      "});", "",
    ].join("\n"),
    "child.sh": "read -r line\nsleep 0.4\nprintf '%s' \"$line\" > out.txt\necho written\n",
    "trialrun.yaml": "tests: tests\nagent: fake\nagents:\n  child: {type: subprocess, mode: oneshot, command: [sh, '{project}/child.sh']}\n",
  };

  /** Starts trialrun in a namespace. */
  const start = (on, name, args) => {
    const [work, tmp] = [path.join(on, name), path.join(on, `${name}-tmp`)];
    for (const folder of [work, tmp]) fs.mkdirSync(folder, { recursive: true });
    const env = { PATH: process.env.PATH, HOME: work, TMPDIR: tmp };
    const [first, ...rest] = inside(name, [copy, ...args]);
    const child = spawn(first, rest, { cwd: work, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    started.add(child);
    const state = { name, child, work, tmp, env, output: "", running: true };
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => { state.output = (state.output + text).slice(-20_000); });
    state.ended = new Promise((done) => child.on("close", (code, signal) => {
      started.delete(child);
      state.running = false;
      done({ code, signal });
    }));
    return state;
  };
  /** Calls trialrun with the record of the coordinator. */
  const ask = (on, args, state) => {
    const [first, ...rest] = inside("run", [copy, ...args, "--state", state]);
    const work = path.join(on, "run");
    return spawnSync(first, rest, { cwd: work, env: { PATH: process.env.PATH, HOME: work, TMPDIR: path.join(on, "run-tmp") },
      encoding: "utf8", maxBuffer: 1 << 28, timeout: 120_000 });
  };

  /** Runs the project once, and disturbs it until it ends or all points are used. Returns its report. */
  const round = async (number, disturbs, most) => {
    const on = path.join(root, `workers-${number}`);
    const isLimited = number % 3 === 2;
    const shared = Object.entries(files).filter(([file]) => !isLimited || file === "trialrun.yaml" || file.includes("models"));
    for (const [file, text] of [...shared, ...Object.entries(isLimited ? limited : {})]) {
      fs.mkdirSync(path.dirname(path.join(on, "run", file)), { recursive: true });
      fs.writeFileSync(path.join(on, "run", file), text);
    }
    const database = `round_${number}`;
    sql("postgres", `CREATE DATABASE ${database}`);
    const queue = `postgres://ann@${host}:${port}/${database}?sslmode=disable`;
    // Every second record is in the same database.
    const state = number % 2 ? queue : path.join(on, "state");
    const limit = isLimited ? ["--max-run-tokens", `${BUDGET * most}`] : [];
    const work = (index) => start(on, `w${index}`, ["work", "--state", queue, "--jobs", `${JOBS}`]);
    const all = Array.from({ length: WORKERS }, (_, index) => work(index));
    const begin = (args) => start(on, "run", ["run", ...args, "--state", state]);
    const fresh = ["--sandbox", "local", `--workers=${queue}`, "--jobs", "0", ...limit];
    let run = begin(fresh);
    const began = Date.now();
    const later = [];
    const alive = () => all.filter((worker) => worker.running);
    const any = (list) => list[below(list.length)];
    const disturbances = {
      "killed worker": () => {
        const at = below(WORKERS);
        all[at].child.kill("SIGKILL");
        later.push(all[at].ended.then(() => { all[at] = work(at); }));
      },
      "worker stopped past its lease": () => {
        const worker = any(alive());
        worker?.child.kill("SIGSTOP");
        later.push(pause(LEASE + below(8000)).then(() => worker?.child.kill("SIGCONT")));
      },
      "terminated connections": () => sql("postgres",
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${database}' AND random() < 0.5`),
      "dropped network": () => {
        const name = isolated ? any(["run", "w0", "w1", "w2"]) : null;
        if (!name) return void spawnSync("ss", ["-K", "dport", "=", `${port}`], { stdio: "ignore" });
        call(name, "ip", "link", "set", "eth", "down");
        later.push(pause(500 + below(45_000)).then(() => call(name, "ip", "link", "set", "eth", "up")));
      },
      "restarted database": async () => {
        await stopServer(below(2) ? "SIGQUIT" : "SIGINT");
        await pause(below(3000));
        await startServer();
      },
      "killed coordinator": async () => {
        if (!run.child.kill("SIGKILL")) return;
        await run.ended;
        run = null;
      },
    };
    const resume = async () => {
      for (;;) {
        const { stdout, stderr } = ask(on, ["status", "--json"], state);
        // There is no record, or no run in it.
        const isEmpty = /nothing is recorded|no run is recorded/.test(stderr);
        if (isEmpty || stdout.startsWith("{")) {
          count("resumed");
          return begin(!isEmpty && JSON.parse(stdout).run ? ["--resume"] : fresh);
        }
        // The database does not answer yet. Another run would leave the first one in the queue.
        if (Date.now() - began > DEADLINE) fail(`the status of a run in ${on} is unknown: ${stderr}`);
        await pause(500);
      }
    };
    /** Returns true if a run did not begin: the record or the queue is not free yet, or the connection was lost. */
    const isRefused = ({ code }, { output }) => code === 2 && /still in progress|another process coordinates|cannot (connect|reach|be read|open)/.test(output);
    let used = 0;
    for (;;) {
      for (const [at, worker] of all.entries()) {
        if (worker.running || worker.child.signalCode === "SIGKILL") continue;
        // A worker needs the database when it starts.
        if (!/cannot (connect|reach)/.test(worker.output)) fail(`a worker in ${on} ended by itself: ${worker.output}`);
        count("worker started again");
        all[at] = work(at);
      }
      run ??= await resume();
      const ended = await Promise.race([run.ended, pause(disturbs ? 300 + below(3000) : 1000)]);
      if (Date.now() - began > DEADLINE) fail(`a run in ${on} does not end: ${run.output}`);
      if (ended && ended.signal === null && !isRefused(ended, run)) {
        // With 4, the coordinator was killed after its run had ended, and there is nothing to resume.
        if (![0, 1, 3, 4].includes(ended.code)) fail(`a run in ${on} exits with ${ended.code}: ${run.output}`);
        break;
      }
      if (ended) {
        run = null;
        await pause(2000);
      } else if (disturbs && used < 12 && counts.points < points) {
        const name = any(Object.keys(disturbances));
        used += 1;
        count("points");
        count(name);
        await disturbances[name]();
      }
    }
    await Promise.all(later);
    for (const worker of all) worker.child.kill("SIGTERM");
    const ended = await Promise.race([Promise.all(all.map((worker) => worker.ended)), pause(60_000)]);
    if (!ended) fail(`workers in ${on} do not end`);
    const report = ask(on, ["report", "--format", "json"], state);
    if (!report.stdout.startsWith("{")) fail(`no report in ${on}: ${report.stdout}${report.stderr}`);
    const verified = ask(on, ["verify", "latest"], state);
    if (verified.status !== 0) fail(`${verified.stdout}${verified.stderr} in ${on}`);
    for (const table of ["queue_trials", "queue_workers", "queue_files", "queue_blobs"]) {
      // A worker that was killed is forgotten after a day.
      const left = sql(database, `SELECT count(*) FROM trialrun_queue.${table}`);
      if (left !== "0" && !(table === "queue_workers" && disturbs)) fail(`${table} has ${left} rows after the run in ${on}`);
    }
    const tables = "SELECT count(*) FROM trialrun_queue.queue_events AS event JOIN trialrun_queue.queue_attempts AS attempt "
      + "USING (run, trial, attempt) WHERE attempt.state <> 'lost'";
    if (sql(database, tables) !== "0") fail(`events of attempts that count are left in ${on}`);
    const left = () => processes().filter((id) => !isOf(server.pid, id));
    for (let tries = 0; left().length > 0; tries += 1) {
      const named = () => left().map((id) => fs.readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " "));
      if (tries > 400) fail(`processes are left: ${named().join(", ")}`);
      await pause(25);
    }
    for (const name of names.slice(1)) {
      const [home, tmp] = [path.join(on, name), path.join(on, `${name}-tmp`)];
      if (!fs.existsSync(tmp)) continue;
      spawnSync(copy, ["prune", "--min-age", "0", "--yes"], { cwd: home, env: { PATH: process.env.PATH, HOME: home, TMPDIR: tmp } });
      const left = fs.readdirSync(tmp);
      if (left.length > 0) fail(`${left.join(", ")} is left in ${tmp}`);
    }
    sql("postgres", `DROP DATABASE ${database} WITH (FORCE)`);
    fs.rmSync(on, { recursive: true });
    return { report: JSON.parse(report.stdout), isLimited, seconds: Math.round((Date.now() - began) / 1000), on };
  };

  counts.points = 0;
  const reference = new Map();
  const undisturbed = await round(0, false);
  for (const trial of undisturbed.report.trials) reference.set(trial.id, trial);
  if (reference.size !== 600 || [...reference.values()].some((trial) => trial.outcome === "broken")) {
    fail(`the undisturbed run has ${reference.size} trials: ${JSON.stringify(undisturbed.report.summary)}`);
  }
  const tokens = (trial) => trial.usage?.total ?? 0;
  const most = Math.max(...undisturbed.report.trials.map(tokens));
  console.log(`undisturbed: ${undisturbed.seconds} s; a trial takes up to ${most} tokens`);
  for (let number = 1; counts.points < points; number += 1) {
    const { report, isLimited, seconds, on } = await round(number, true, most);
    const seen = new Set();
    let [sum, lost] = [0, 0];
    for (const trial of report.trials) {
      if (seen.has(trial.id)) fail(`${trial.id} is recorded twice in round ${number}`);
      seen.add(trial.id);
      sum += tokens(trial);
      lost += Math.max(0, trial.attempts.length - 1);
      const expected = isLimited ? ["passed", "cancelled"] : [reference.get(trial.id)?.outcome];
      if (!expected.includes(trial.outcome)) {
        fail(`${trial.id} is ${trial.outcome} (${trial.because}) in round ${number}, ${on}`);
      }
    }
    if (seen.size !== reference.size) fail(`${seen.size} trials are recorded in round ${number}`);
    const [limit, flying] = [BUDGET * most, WORKERS * JOBS * most];
    if (isLimited && (sum <= limit || sum > limit + flying)) fail(`${sum} tokens in round ${number}, with a limit of ${limit}`);
    count("lost attempts", lost);
    console.log(`round ${number}: ${seconds} s${isLimited ? `, ${sum} tokens of ${limit}` : ""}; ${JSON.stringify(counts)}`);
  }
  await stopServer("SIGINT");
};

/** Returns true if a process is `server` or one of its children, or has ended. */
function isOf(server, id) {
  const parent = () => fs.readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1].split(" ")[1];
  try { return Number(id) === server || Number(parent()) === server; } catch { return true; }
}
