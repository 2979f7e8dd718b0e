/** The tables, as steps from one format to the next: the format of a file is how many steps it has taken. */

export const steps: ReadonlyArray<ReadonlyArray<string>> = [
  [
    `CREATE TABLE owner (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      record TEXT NOT NULL
    ) STRICT`,
    `CREATE TABLE operation (
      number INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      thread_id TEXT NOT NULL,
      turn_id TEXT NOT NULL,
      call_id TEXT NOT NULL,
      tool_name TEXT NOT NULL,
      original_hash TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('started', 'outcome', 'settled', 'unknown', 'released')),
      reason TEXT,
      token INTEGER NOT NULL,
      owner INTEGER NOT NULL,
      read_only INTEGER NOT NULL,
      started_at REAL NOT NULL,
      updated_at REAL NOT NULL,
      details TEXT NOT NULL,
      outcome TEXT,
      result TEXT
    ) STRICT`,
    `CREATE TABLE approval (
      number INTEGER PRIMARY KEY,
      id TEXT NOT NULL UNIQUE,
      operation_id TEXT NOT NULL,
      digest TEXT NOT NULL,
      status TEXT NOT NULL CHECK (status IN ('pending', 'allowed', 'denied', 'expired', 'superseded', 'cancelled')),
      created_at REAL NOT NULL,
      deadline REAL,
      decided_at REAL,
      principal TEXT,
      reason TEXT,
      question TEXT NOT NULL
    ) STRICT`,
    "CREATE INDEX approval_operation ON approval (operation_id)",
    "CREATE INDEX approval_pending ON approval (number) WHERE status = 'pending'",
    `CREATE TABLE event (
      sequence INTEGER PRIMARY KEY,
      thread_id TEXT NOT NULL,
      at REAL NOT NULL,
      event TEXT NOT NULL
    ) STRICT`,
    "CREATE INDEX event_thread ON event (thread_id)",
    `CREATE TABLE seen (
      thread_id TEXT NOT NULL,
      path TEXT NOT NULL,
      hash TEXT NOT NULL,
      partial INTEGER NOT NULL,
      used INTEGER NOT NULL,
      PRIMARY KEY (thread_id, path)
    ) STRICT, WITHOUT ROWID`,
    "CREATE INDEX seen_used ON seen (used)"
  ],
  ["ALTER TABLE approval ADD COLUMN used INTEGER NOT NULL DEFAULT 0"],
  [
    // The value comes last: what is long is read only when it is asked for.
    `CREATE TABLE document (
      thread_id TEXT NOT NULL,
      key TEXT NOT NULL,
      revision INTEGER NOT NULL,
      written_at REAL NOT NULL,
      value TEXT NOT NULL,
      PRIMARY KEY (thread_id, key)
    ) STRICT`
  ]
]

/**
 * Deletes what is over and older than an instant, questions that nobody answered since, and the documents of threads where
 * nothing was written since. What is unknown stays.
 */
export const sweep: ReadonlyArray<string> = [
  "DELETE FROM operation WHERE updated_at < ? AND state IN ('settled', 'released')",
  "DELETE FROM approval WHERE coalesce(decided_at, created_at) < ?",
  // The last one stays: the next sequence number is counted from it.
  "DELETE FROM event WHERE at < ? AND sequence < (SELECT max(sequence) FROM event)",
  // After the events: a thread that still has one was in use, however old its documents are.
  `DELETE FROM document WHERE thread_id IN (
      SELECT thread_id FROM document GROUP BY thread_id HAVING max(written_at) < ?
    ) AND NOT EXISTS (SELECT 1 FROM event WHERE event.thread_id = document.thread_id)`
]
