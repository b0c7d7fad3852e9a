// The cluster protocol as a Spin model: Login, Acquire, Reduce, Release, flush, fence, lease,
// eviction, evidence of life, passive close and Global's recovery. Rules and holes are those of
// docs/architecture.md, section 7; what is modelled, what is not, and what the checker said is in
// docs/model.md.
//
//   ./dev model                            all worlds, and each rule left out once
//
// Every step is one d_step: a guard and what follows from it. Spin tries all orders of them. A
// process that crashes is one that takes no step any more, and every order in which it takes none
// is tried; so is a pause. Time is not modelled but for one fact: the lease of a server that was
// fenced is over for the server before it is over for Global (rules 36 and 40). RENEWALS adds time,
// in units of one lease.
//
// Values are numbers of transactions. A record's value is the transaction that wrote it last, so
// that the value of a row tells its whole history.

// --- bounds --------------------------------------------------------------------------------------

#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef TRANSACTIONS
#define TRANSACTIONS 2  // Committed ones, of all servers together.
#endif
#ifndef PROCESSES
#define PROCESSES 3  // 0: server A. 1: server B. 2: A started again, whether or not 0 is gone.
#endif
#ifndef GLOBALS
#define GLOBALS 2  // 1: the first one crashed, or has only been declared dead, and 1 takes over.
#endif
#ifndef EVICTIONS
#define EVICTIONS 1  // By Global or by an operator, of servers that are alive or not.
#endif
#ifndef LATE_COPIES
#define LATE_COPIES 0  // Copies of flushes that lie in a buffer and arrive at any later time.
#endif
#ifndef YIELDS
#define YIELDS 0  // Passive closes of server A (rules 63 to 66).
#endif
// REQUESTS: as many are made, of all servers together; otherwise none after the last transaction.
// RENEWALS: as many renewals of server A, which are sent, written, seen and answered one after the
// other, with a lease of one unit of time. Only A is evicted then.
// CRASH: process 0 ends without a word; PROOF: its successor may know that (rule 62).
// DATABASE_CUT: process 0 may lose the database for ever.
// GLOBAL_CUT: process 0 may lose all Globals for ever; then nothing but a passive close helps.
// ORDERLY_END: process 0 may end in order, and its NormalClose get lost (rule 47).
// BOTH_YIELD: server B may yield, too.
// WAITING: requests wait for holders without connection (rule 67), and are not refused.
// GREETINGS: a server knows the term of a Global before it logs in (rules 45 and 57).
// SLOW_EVICTIONS: an eviction is asked for, and takes effect at any later time.
// LATE_LOGINS: a login of process 0 that it has given up arrives at any later time.
// SECOND_SHARD: record 1 is of another shard, and A has it for good.
// NARROW: only Modify is asked for, nothing is committed, and only servers lose connections. For
// what takes many breaks.
#ifdef BREAKS
#define MAY_BREAK (breaks < BREAKS)
#define COUNT_BREAK breaks++
#else
#define MAY_BREAK true  // Connections break any number of times.
#define COUNT_BREAK skip
#endif

// --- words ---------------------------------------------------------------------------------------

#define INVALID 0
#define SHARE 1
#define MODIFY 2

#define DISCONNECTED 0
#define LOGGING_IN 1
#define READY 2

#define NOTHING 0
#define ACQUIRING 1
#define RELEASING 2

#define CURRENT 1  // Of a load: nothing happened to the record since.
#define OUTDATED 2

// Messages to Global.
#define REDUCED_TO_INVALID 1
#define REDUCED_TO_SHARE 2
#define RELEASE 3
// Messages to a server.
#define GRANT_SHARE 1
#define GRANT_MODIFY 2
#define REFUSAL 3
#define REDUCE_TO_INVALID 4
#define REDUCE_TO_SHARE 5
#define RELEASED 6

// A Global's phase.
#define OFF 0
#define STARTING 1  // It has a term, and not the list of servers.
#define RECOVERING 2
#define SERVING 3
#define DEPOSED 4

// A session at Global.
#define UNKNOWN 0
#define LISTED 1         // Live; what it has is not known.
#define LIVE 2
#define FENCED_LISTED 3  // Fenced; what it has is not known.
#define FENCED 4         // Fenced; it may read until its lease is over.
#define GONE 5
#define EVICTING_LISTED 6  // Its eviction is on its way to the database.
#define EVICTING 7

#define NOBODY 7  // Being served is a request whose owner went away.
#define NOT_READ 15

// By Global, process, record.
#define CACHE(p, x) cache[(p) * RECORDS + (x) % RECORDS]
#define SESSION(g, p) session[(g) * PROCESSES + (p)]
#define ENTRY(g, p, x) entry[((g) * PROCESSES + (p)) * RECORDS + (x) % RECORDS]
#define KEY(g, x) key[(g) * RECORDS + (x) % RECORDS]
#define READ(t, x) read[(t) * 2 + (x)]  // What a transaction read.
#define TERM(g) ((g) + 1)
#define LAST (PROCESSES - 1)
#define ROW(x) ((x) % RECORDS == 0 -> row0 : row1)
#ifdef SECOND_SHARD
#define SHARD_RECORDS 1  // Those of the Globals that are modelled.
#else
#define SHARD_RECORDS RECORDS
#endif

// How far a server is with a passive close (rule 65).
#define LOWERED 1
#define MARK_SENT 2
#define MARK_WRITTEN 3

// How far a renewal is.
#define RENEWAL_SENT 1
#define RENEWAL_WRITTEN 2

// --- the world -----------------------------------------------------------------------------------

// A server process and its row in the database. The row holds (epoch, sequence); that it has the
// epoch of this process, and is live, is `current`.
typedef Process {
  bool current;
  bool listed;                // Fenced, and nobody has waited for the end of its lease (hole 26).
  unsigned sequence : 3;
  bool running;
  bool lease;
  unsigned start_term : 2;
  unsigned seen_term : 2;
  unsigned link : 2;
  unsigned peer : 2;          // The Global at the other end.
  bool tied;                  // A transaction since the cut accessed both records, unsaved.
  unsigned cut : 2;           // The records in the flush under way.
  unsigned cut_number : 3;
#if YIELDS > 0
  unsigned number : 2;        // How often it has yielded for certain; each login says it.
  unsigned yielding : 2;
  unsigned yields_to : 2;     // To the Global of that term.
  unsigned wanted_term : 2;   // Rows: that it is wanted, by the Global of which term;
  unsigned mark_number : 2;   // and its mark.
  unsigned mark_term : 2;
#endif
#ifdef RENEWALS
  unsigned renewing : 2;
  bool sent_lately;           // The renewal under way: less than a lease ago.
#endif
#ifdef DATABASE_CUT
  bool cut_off;
#endif
#ifdef GLOBAL_CUT
  bool alone;
#endif
}
Process process[PROCESSES];

// A record in the cache of a process.
typedef Record {
  unsigned right : 2;
  unsigned told : 2;          // What Global must believe: lowered when all is saved (hole 29).
  unsigned named : 2;         // In the login that is on its way.
  bool loaded;
  unsigned value : 3;
  bool dirty;
  unsigned asking : 2;
  bool owes;                  // The answer to a Reduce.
  unsigned loading : 2;
  unsigned load_value : 3;
  unsigned cut_value : 3;
#if YIELDS > 0
  unsigned installing : 2;    // A grant that has arrived and is no right yet.
#endif
  unsigned to_server : 6      // Messages.
}
Record cache[PROCESSES * RECORDS];

// The database.
unsigned term : 2 = 1;
unsigned row0 : 3;
unsigned row1 : 3;

// A copy of a flush in a buffer.
unsigned late_of : 2;         // Process + 1.
unsigned late_cut : 2;
unsigned late_value0 : 3;
unsigned late_value1 : 3;
unsigned late_number : 3;

#ifdef LATE_LOGINS
// A login on a connection that process 0 has given up.
unsigned late_login : 2;      // To which Global, + 1.
unsigned late_named : 2;
unsigned late_says : 2;       // The number.
bool late_login_used;
#endif

// Connections carry, in each direction and for each record, at most two messages: the first in the
// low three bits. Order holds only between messages about one record, which is less than TCP keeps.

// What a Global knows of a process, of a process and a record, and of a record.
typedef Session {
  unsigned state : 3;
#if YIELDS > 0
  unsigned says : 2;          // The number of the last login or mark that counted.
  unsigned read_number : 2;   // A mark that was read and is not believed yet.
  unsigned read_term : 2;
  bool wants;                 // That it be told that it is wanted.
#endif
  bool bound
}
Session session[GLOBALS * PROCESSES];
typedef Entry {
  unsigned book : 2;
  unsigned wanted : 2;
  bool asked;
  unsigned to_global : 6      // Messages.
}
Entry entry[GLOBALS * PROCESSES * RECORDS];
typedef Key {
  unsigned serving : 3;       // Process + 1 or NOBODY.
  bool failed
}
Key key[GLOBALS * RECORDS];
typedef Shard {
#ifdef RENEWALS
  bool seen_last;             // Of process 0: the last renewal was seen, and that
  bool seen_lately;           // less than a lease ago.
#endif
#ifdef SEEN_FROM_QUESTION
  bool asked_now;
  bool asked_lately;
#endif
#ifdef TWO_STATEMENTS
  bool not_listed;            // The first one said so of process 0.
#endif
  unsigned phase : 3
}
Shard shard[GLOBALS];

// What each transaction read and wrote. Only the properties look at it.
unsigned transactions : 3;
byte wrote[TRANSACTIONS + 1];
byte read[(TRANSACTIONS + 1) * 2];

// What has happened of that which is bounded.
unsigned evictions : 2;
unsigned late_copies : 1;
unsigned breaks : 3;
bool started_again;
#ifdef REQUESTS
unsigned requests : 3;
#endif
#ifdef RENEWALS
unsigned renewals : 3;
#endif
#ifdef CRASH
bool crashed;
#endif
#ifdef FLUSH_RENEWS
bool flush_sent_lately;
#endif

// Of a single step, and no part of the state.
hidden byte one;
hidden byte each;
hidden byte holder;
hidden byte writer;
hidden byte between;
hidden byte owner;
hidden byte limit;
hidden byte message;
hidden byte chain[2];
hidden byte no_right_beside_modify;
hidden byte no_stale_read;
hidden byte all_is_served;
hidden byte nothing_vanishes;
hidden byte whole_transactions;
hidden byte causes_are_saved;
hidden byte serial_order;
hidden byte accepted;
hidden byte contradiction;
hidden byte evicted;
hidden byte blocked;
hidden byte kept;

// --- messages ------------------------------------------------------------------------------------

inline Push(queue, what) {
  assert(queue < 8);
  queue = (queue == 0 -> what : queue | ((what) << 3));
}

inline Pop(queue) {
  message = queue & 7;
  queue = queue >> 3;
}

#define CONNECTED(g, p) (process[p].link == READY && process[p].peer == g && SESSION(g, p).bound)

inline TellServer(g, p, x, what) {
  if
  :: CONNECTED(g, p) -> Push(CACHE(p, x).to_server, what)
  :: else
  fi;
  skip
}

inline TellGlobal(p, x, what) {
  if
  :: CONNECTED(process[p].peer, p) -> Push(ENTRY(process[p].peer, p, x).to_global, what)
  :: else
  fi;
  skip
}

// --- what the database holds ---------------------------------------------------------------------

// The transactions whose writes of the record are in `from`, as bits; bit 0: the beginning.
inline Chain(x, from) {
  chain[x] = 1;
  writer = from;
  do
  :: writer == 0 -> break
  :: else -> chain[x] = chain[x] | (1 << writer); writer = READ(writer, x)
  od;
  skip
}

// I2, I1: whole transactions, with everything that they had read, and as if they had run one after
// another in the order of their commits.
inline CheckRows() {
  Chain(0, row0);
  Chain(1, row1);
  whole_transactions = true;
  causes_are_saved = true;
  serial_order = true;
  writer = 1;
  do
  :: writer > transactions -> break
  :: else ->
     if
     :: ((chain[0] | chain[1]) >> writer) & 1 ->
        each = 0;
        do
        :: each == RECORDS -> break
        :: else ->
           if
           :: ((wrote[writer] >> each) & 1) && !((chain[each] >> writer) & 1) ->
              whole_transactions = false
           :: else
           fi;
           if
           :: READ(writer, each) != NOT_READ ->
              if
              :: !((chain[each] >> READ(writer, each)) & 1) -> causes_are_saved = false
              :: else
              fi;
              between = READ(writer, each) + 1;
              do
              :: between >= writer -> break
              :: else ->
                 if
                 :: (chain[each] >> between) & 1 -> serial_order = false
                 :: else
                 fi;
                 between++
              od
           :: else
           fi;
           each++
        od
     :: else
     fi;
     writer++
  od;
  assert(whole_transactions);
  assert(causes_are_saved);
  assert(serial_order);
}

inline Write(x, what) {
  Chain(x, what);
  nothing_vanishes = (chain[x] >> ROW(x)) & 1;
  assert(nothing_vanishes);
  if
  :: (x) == 0 -> row0 = what
  :: else -> row1 = what
  fi;
  skip
}

#ifdef GLOBAL_CUT
#define HAS_GLOBAL(p) (!process[p].alone)
#else
#define HAS_GLOBAL(p) true
#endif
#ifdef DATABASE_CUT
#define HAS_DATABASE(p) (!process[p].cut_off)
#else
#define HAS_DATABASE(p) true
#endif

// The compare-and-swap of rule 31.
#ifdef NO_FENCE
#define EPOCH_HOLDS(p) true
#else
#define EPOCH_HOLDS(p) process[p].current
#endif
#ifdef NO_FENCE_SEQUENCE
#define SEQUENCE_HOLDS(p, number) true
#else
#define SEQUENCE_HOLDS(p, number) (process[p].sequence == (number) - 1)
#endif

// --- servers -------------------------------------------------------------------------------------

#ifdef NO_LEASE_CHECK
#define MAY_ANSWER(p) process[p].running
#else
#define MAY_ANSWER(p) (process[p].running && process[p].lease)
#endif

// A change of the record's version.
inline Changed(p, x) {
  if
  :: CACHE(p, x).loading == CURRENT ->
     CACHE(p, x).loading = OUTDATED;
#ifndef NO_LOAD_STAMP
     CACHE(p, x).load_value = 0;
#endif
  :: else
  fi;
  skip
}

inline Forget(p, x) {
  CACHE(p, x).loaded = false;
  if
  :: !CACHE(p, x).dirty -> CACHE(p, x).value = 0
  :: else
  fi;
  skip
}

inline Disconnect(p) {
  process[p].link = DISCONNECTED;
  process[p].peer = 0;
  for (each : 0 .. RECORDS - 1) {
    CACHE(p, each).to_server = 0;
    CACHE(p, each).asking = NOTHING;
    CACHE(p, each).owes = false;
    CACHE(p, each).named = INVALID;
  };
  skip
}

inline ForgetYield(p) {
#if YIELDS > 0
  process[p].number = 0;
  process[p].yielding = 0;
  process[p].yields_to = 0;
  process[p].wanted_term = 0;
  process[p].mark_number = 0;
  process[p].mark_term = 0;
  for (each : 0 .. RECORDS - 1) { CACHE(p, each).installing = INVALID };
#endif
  skip
}

inline ForgetRenewal(p) {
#ifdef RENEWALS
  process[p].renewing = 0;
  process[p].sent_lately = false;
#endif
  skip
}

inline End(p) {
  Disconnect(p);
  process[p].running = false;
  process[p].lease = false;
  process[p].tied = false;
  process[p].cut = 0;
  process[p].cut_number = 0;
  process[p].seen_term = 0;
  process[p].start_term = 0;
  ForgetYield(p);
  ForgetRenewal(p);
  for (each : 0 .. RECORDS - 1) {
    CACHE(p, each).right = INVALID;
    CACHE(p, each).told = INVALID;
    CACHE(p, each).loaded = false;
    CACHE(p, each).value = 0;
    CACHE(p, each).dirty = false;
    CACHE(p, each).loading = 0;
    CACHE(p, each).load_value = 0;
    CACHE(p, each).cut_value = 0;
  };
  skip
}

// Rule 42: terms noted, epoch raised, row live, in one transaction.
#ifdef PROOF
#ifdef PROOF_WITHOUT_DEATH
#define IS_DEAD(p) true
#else
#define IS_DEAD(p) (!process[p].running)
#endif
#else
#define IS_DEAD(p) false
#endif

inline ServerStarts(p, proof) {
  d_step {
    p == 2 && !started_again && (!proof || (process[0].current && IS_DEAD(0))) ->
    started_again = true;
    if
    :: process[0].current -> process[0].current = false; process[0].listed = !proof
    :: else
    fi;
    process[p].current = true;
    process[p].running = true;
    process[p].lease = true;
    process[p].start_term = term;
#ifndef NO_START_TERM
    process[p].seen_term = term;
#endif
  }
}

#ifdef ONE_REQUEST
#define MAY_ASK(p, x) (CACHE(p, 0).asking == NOTHING && CACHE(p, 1).asking == NOTHING)
#else
#define MAY_ASK(p, x) (CACHE(p, x).asking == NOTHING)
#endif

#ifdef REQUESTS
#define MAY_REQUEST (requests < REQUESTS)
#define COUNT_REQUEST requests++
#else
#define MAY_REQUEST (transactions < TRANSACTIONS)
#define COUNT_REQUEST skip
#endif

// The request is at Global at once: being on its way differs in nothing from waiting there.
inline Acquire(p, x, what) {
  d_step {
    process[p].running && process[p].link == READY && MAY_REQUEST &&
      CACHE(p, x).right < what && MAY_ASK(p, x) && !CACHE(p, x).owes && !CACHE(p, x).dirty ->
    COUNT_REQUEST;
    CACHE(p, x).asking = ACQUIRING;
    if
    :: CONNECTED(process[p].peer, p) -> ENTRY(process[p].peer, p, x).wanted = what
    :: else
    fi;
    skip
  }
}

// A clean record is evicted from the cache.
inline Release(p, x) {
  d_step {
    process[p].running && CACHE(p, x).right != INVALID && !CACHE(p, x).dirty && !CACHE(p, x).owes &&
      CACHE(p, x).asking == NOTHING && CACHE(p, x).loading == 0 ->
    CACHE(p, x).right = INVALID;
    CACHE(p, x).told = INVALID;
    Forget(p, x);
    if
    :: process[p].link == READY -> CACHE(p, x).asking = RELEASING; TellGlobal(p, x, RELEASE)
    :: else
    fi;
  }
}

// Rule 6. The stamp is noted and the row read; then, at any later time, the value arrives.
inline Load(p, x) {
  d_step {
    process[p].running && CACHE(p, x).right != INVALID && !CACHE(p, x).loaded &&
      CACHE(p, x).loading == 0 && !CACHE(p, x).dirty ->
    CACHE(p, x).loading = CURRENT;
    CACHE(p, x).load_value = ROW(x);
  }
}

#ifdef NO_LOAD_STAMP
#define LOAD_COUNTS(p, x) (CACHE(p, x).right != INVALID && !CACHE(p, x).loaded)
#else
#define LOAD_COUNTS(p, x) (CACHE(p, x).loading == CURRENT)
#endif

inline LoadArrives(p, x) {
  d_step {
    process[p].running && CACHE(p, x).loading != 0 ->
    if
    :: LOAD_COUNTS(p, x) -> CACHE(p, x).value = CACHE(p, x).load_value; CACHE(p, x).loaded = true
    :: else
    fi;
    CACHE(p, x).loading = 0;
    CACHE(p, x).load_value = 0;
  }
}

// Rules 9 to 13. `reads` includes `writes`.
#define READABLE(p, x, set)                                                                        \
  (!((set) >> (x) & 1) || (CACHE(p, x).right != INVALID && CACHE(p, x).loaded))
#define WRITABLE(p, x, set) (!((set) >> (x) & 1) || CACHE(p, x).right == MODIFY)
#ifdef NO_DIRTY_READS_IN_GROUPS
#define TIES(p, x, reads, writes) ((writes) >> (x) & 1)
#else
#define TIES(p, x, reads, writes)                                                                  \
  (((writes) >> (x) & 1) || (((reads) >> (x) & 1) && CACHE(p, x).dirty))
#endif

// Records are alike: the first transaction writes record 0.
#define IN_TURN(p, writes) (transactions > 0 || ((writes) & 1))

inline Commit(p, reads, writes) {
  d_step {
    transactions < TRANSACTIONS && MAY_ANSWER(p) && IN_TURN(p, writes) && READABLE(p, 0, reads) &&
      READABLE(p, 1, reads) && WRITABLE(p, 0, writes) && WRITABLE(p, 1, writes) ->
    transactions++;
    if
    :: TIES(p, 0, reads, writes) && TIES(p, 1, reads, writes) -> process[p].tied = true
    :: else
    fi;
    wrote[transactions] = writes;
    for (each : 0 .. RECORDS - 1) {
      if
      :: ((reads) >> each) & 1 -> READ(transactions, each) = CACHE(p, each).value
      :: else -> READ(transactions, each) = NOT_READ
      fi;
      if
      :: ((writes) >> each) & 1 -> CACHE(p, each).value = transactions; CACHE(p, each).dirty = true
      :: else
      fi;
    };
    skip
  }
}

#ifdef YIELD_FLUSHES_NO_GROUPS
#define NO_GROUP(p) (process[p].yielding != 0)
#else
#define NO_GROUP(p) false
#endif

// Rules 24 to 27: the group of a dirty record, as of now, into one flush.
inline Cut(p, x, copy) {
  d_step {
    process[p].running && process[p].cut == 0 && CACHE(p, x).dirty &&
      (!copy || (late_of == 0 && late_copies < LATE_COPIES)) ->
    if
    :: process[p].tied && !NO_GROUP(p) ->
       process[p].cut = CACHE(p, 0).dirty | (CACHE(p, 1).dirty << 1);
       process[p].tied = false
    :: else -> process[p].cut = 1 << (x)
    fi;
    process[p].cut_number = process[p].sequence + 1;
#ifdef FLUSH_RENEWS
    if
    :: p == 0 -> flush_sent_lately = true
    :: else
    fi;
#endif
    for (each : 0 .. RECORDS - 1) {
      if
      :: (process[p].cut >> each) & 1 -> CACHE(p, each).cut_value = CACHE(p, each).value
      :: else
      fi;
    }
    if
    :: copy ->
       late_copies++;
       late_of = p + 1;
       late_cut = process[p].cut;
       late_number = process[p].cut_number;
       late_value0 = CACHE(p, 0).cut_value;
       late_value1 = CACHE(p, 1).cut_value;
    :: else
    fi;
  }
}

#ifdef NEW_CUT_AFTER_UNKNOWN
// Rule 32 left out: an unknown outcome is taken for a failure, and the next flush has other content
// under the same number.
inline TakeForFailed(p) {
  d_step {
    process[p].running && process[p].cut != 0 && late_of == 0 && late_copies < LATE_COPIES &&
      process[p].sequence == process[p].cut_number - 1 ->
    late_copies++;
    late_of = p + 1;
    late_cut = process[p].cut;
    late_number = process[p].cut_number;
    late_value0 = CACHE(p, 0).cut_value;
    late_value1 = CACHE(p, 1).cut_value;
    process[p].cut = 0;
    process[p].cut_number = 0;
    CACHE(p, 0).cut_value = 0;
    CACHE(p, 1).cut_value = 0;
  }
}
#endif

// The server learns that the flush is written, from its answer or from the row: rules 18, 30, 32.
inline Saved(p) {
  d_step {
    process[p].running && process[p].cut != 0 && process[p].sequence == process[p].cut_number ->
#ifdef FLUSH_RENEWS
    if
    :: p == 0 && flush_sent_lately -> process[0].lease = true
    :: else
    fi;
#endif
    for (each : 0 .. RECORDS - 1) {
      if
      :: ((process[p].cut >> each) & 1) && CACHE(p, each).value == CACHE(p, each).cut_value ->
         CACHE(p, each).dirty = false;
         CACHE(p, each).told = CACHE(p, each).right;
         if
         :: !CACHE(p, each).loaded -> CACHE(p, each).value = 0
         :: else
         fi;
         if
         :: CACHE(p, each).owes ->
            CACHE(p, each).owes = false;
            TellGlobal(p, each, REDUCED_TO_INVALID + CACHE(p, each).right);
         :: else
         fi
      :: else
      fi;
      CACHE(p, each).cut_value = 0;
    }
    process[p].cut = 0;
    process[p].cut_number = 0;
  }
}

// A flush or a renewal is refused, or a Global says so. (A server that is not fenced and has no
// lease does nothing that matters until it is renewed, so only the lease of a fenced one ends.)
inline LearnsThatItIsFenced(p) {
  d_step { process[p].running && !process[p].current -> End(p) }
}

inline LeaseEnds(p) {
  d_step {
    process[p].running && !process[p].current && process[p].lease -> process[p].lease = false
  }
}

#ifdef CRASH
// What it has sent to the database may still arrive there.
inline Crash(p) {
  d_step {
    p == 0 && !crashed && process[p].running ->
    crashed = true;
    Disconnect(p);
    process[p].running = false;
    process[p].lease = false;
    process[p].tied = false;
    process[p].seen_term = 0;
    process[p].start_term = 0;
    for (each : 0 .. RECORDS - 1) {
      CACHE(p, each).right = INVALID;
      CACHE(p, each).told = INVALID;
      CACHE(p, each).loaded = false;
      CACHE(p, each).value = 0;
      CACHE(p, each).dirty = false;
      CACHE(p, each).loading = 0;
      CACHE(p, each).load_value = 0;
#if YIELDS > 0
      CACHE(p, each).installing = INVALID;
#endif
    };
#if YIELDS > 0
    if
    :: process[p].yielding != MARK_SENT -> process[p].yielding = 0; process[p].yields_to = 0
    :: else
    fi;
#endif
    skip
  }
}
#endif

#ifdef ORDERLY_END
// Rule 47. Nobody may hear its NormalClose.
inline Finish(p) {
  d_step {
    p == 0 && process[p].running && process[p].current && process[p].cut == 0 &&
      !CACHE(p, 0).dirty && HAS_DATABASE(p) ->
    process[p].current = false;
    End(p)
  }
}
#endif

#ifdef DATABASE_CUT
inline LosesTheDatabase(p) {
  d_step { p == 0 && process[p].running && !process[p].cut_off -> process[p].cut_off = true }
}
#endif

#ifdef GLOBAL_CUT
inline LosesTheGlobals(p) {
  d_step {
    p == 0 && process[p].running && !process[p].alone -> process[p].alone = true; Disconnect(p)
  }
}
#endif

#ifdef RENEWALS
// Rules 36 and 60. The lease is counted from before the renewal was sent, for the first time.
inline SendRenewal(p) {
  d_step {
    p == 0 && process[p].running && process[p].renewing == 0 && renewals < RENEWALS ->
    renewals++;
    process[p].renewing = RENEWAL_SENT;
    process[p].sent_lately = true;
  }
}

#ifdef RENEWED_FROM_REPEAT
// Its answer was lost; the row says that it is written.
inline RepeatRenewal(p) {
  d_step {
    p == 0 && process[p].running && process[p].current && !process[p].sent_lately &&
      process[p].renewing == RENEWAL_WRITTEN ->
    process[p].sent_lately = true
  }
}
#endif

#ifdef RENEWED_FROM_ANSWER
#define IS_RENEWED(p) true
#else
#define IS_RENEWED(p) process[p].sent_lately
#endif

inline RenewalAnswered(p) {
  d_step {
    p == 0 && process[p].running && process[p].renewing == RENEWAL_WRITTEN ->
    if
    :: IS_RENEWED(p) -> process[p].lease = true
    :: else
    fi;
    ForgetRenewal(p);
  }
}

inline RenewalWritten(p) {
  d_step {
    process[p].renewing == RENEWAL_SENT && process[p].current && HAS_DATABASE(p) ->
    NewNumber(p);
    if
    :: process[p].running -> process[p].renewing = RENEWAL_WRITTEN
    :: else -> ForgetRenewal(p)
    fi;
  }
}

// All that was less than a lease ago is longer ago.
inline TimePasses() {
  d_step {
    process[0].lease || process[0].sent_lately || shard[0].seen_lately ||
      shard[GLOBALS - 1].seen_lately ->
    process[0].lease = false;
    process[0].sent_lately = false;
    shard[0].seen_lately = false;
    shard[GLOBALS - 1].seen_lately = false;
#ifdef SEEN_FROM_QUESTION
    shard[0].asked_lately = false;
#endif
#ifdef FLUSH_RENEWS
    flush_sent_lately = false;
#endif
  }
}
#endif

// The number of renewals rises; no Global has seen that yet.
inline NewNumber(p) {
#ifdef RENEWALS
  if
  :: p == 0 -> shard[0].seen_last = false; shard[GLOBALS - 1].seen_last = false
  :: else
  fi;
#endif
  skip
}

#ifdef BOTH_YIELD
#define MAY_YIELD(p) (p < 2)
#else
#define MAY_YIELD(p) (p == 0)
#endif
#ifdef NO_YIELD
#define WILL_YIELD(p) false
#else
#define WILL_YIELD(p) MAY_YIELD(p)
#endif
#if YIELDS > 0
#ifdef YIELD_TO_OLDER_TERM
#define IS_NO_OLDER_TERM(p) true
#else
#define IS_NO_OLDER_TERM(p) (process[p].wanted_term >= process[p].seen_term)
#endif
#ifdef KEEP_QUEUE_AT_YIELD
#define ALL_IS_INSTALLED(p) true
#else
#define ALL_IS_INSTALLED(p) (CACHE(p, 0).installing == INVALID)
#endif
#ifdef YIELD_KEEPS_SHARE
#define YIELDS_TO SHARE
#else
#define YIELDS_TO INVALID
#endif
#ifdef NO_YIELD_FLUSH
#define ALL_IS_SAVED(p) true
#else
#define ALL_IS_SAVED(p) (!CACHE(p, 0).dirty && (process[p].cut & 1) == 0)
#endif

// Rule 65, a and b: it has no connection to a Global of that term, and gives up any other.
inline Yield(p) {
  d_step {
    WILL_YIELD(p) && process[p].running && process[p].yielding == 0 &&
      process[p].wanted_term != 0 && IS_NO_OLDER_TERM(p) && process[p].number < YIELDS &&
      (process[p].link == DISCONNECTED || TERM(process[p].peer) < process[p].wanted_term) &&
      ALL_IS_INSTALLED(p) && HAS_DATABASE(p) ->
    Disconnect(p);
#ifndef YIELD_FORGETS_TERM
    process[p].seen_term = process[p].wanted_term;
#endif
    process[p].yielding = LOWERED;
    process[p].yields_to = process[p].wanted_term;
    if
    :: CACHE(p, 0).right > YIELDS_TO ->
       CACHE(p, 0).right = YIELDS_TO;
       Changed(p, 0);
       if
       :: CACHE(p, 0).right == INVALID -> Forget(p, 0)
       :: else
       fi
    :: else
    fi;
    if
    :: !CACHE(p, 0).dirty -> CACHE(p, 0).told = CACHE(p, 0).right
    :: else
    fi;
  }
}

// Rule 65, d: everything under these rights is saved.
inline SendMark(p) {
  d_step {
    process[p].running && process[p].yielding == LOWERED && ALL_IS_SAVED(p) ->
    process[p].yielding = MARK_SENT
  }
}

inline MarkWritten(p) {
  d_step {
    process[p].yielding == MARK_SENT && process[p].current && HAS_DATABASE(p) ->
    process[p].mark_number = process[p].number + 1;
    process[p].mark_term = process[p].yields_to;
#ifdef GLOBAL_CUT
    // Or it would yield once more for the same row.
    if
    :: process[p].wanted_term <= process[p].yields_to -> process[p].wanted_term = 0
    :: else
    fi;
#endif
    NewNumber(p);
    process[p].yielding = (process[p].running -> MARK_WRITTEN : 0);
    process[p].yields_to = (process[p].running -> process[p].yields_to : 0);
  }
}

// Rule 65, e.
inline MarkKnown(p) {
  d_step {
    process[p].running && process[p].yielding == MARK_WRITTEN ->
    process[p].number++;
    process[p].yielding = 0;
    process[p].yields_to = 0;
  }
}

inline Install(p, x) {
  d_step {
    process[p].running && CACHE(p, x).installing != INVALID ->
    Granted(p, x, CACHE(p, x).installing);
    CACHE(p, x).installing = INVALID;
  }
}
#endif

#if YIELDS > 0
#define INSTALLING(p, x) (CACHE(p, x).installing != INVALID)
#else
#define INSTALLING(p, x) false
#endif

// Rule 16: in the order of the connection, and before the next message.
inline Receive(p, x) {
  d_step {
    process[p].running && process[p].link == READY && CACHE(p, x).to_server != 0 &&
      !INSTALLING(p, x) ->
    Pop(CACHE(p, x).to_server);
    Handle(p, x);
  }
}

#ifdef NO_CONNECTION_ORDER
inline ReceiveTheSecondFirst(p, x) {
  d_step {
    process[p].running && process[p].link == READY && CACHE(p, x).to_server > 7 ->
    message = CACHE(p, x).to_server >> 3;
    CACHE(p, x).to_server = CACHE(p, x).to_server & 7;
    Handle(p, x);
  }
}
#endif

inline Granted(p, x, what) {
  if
  :: CACHE(p, x).right == INVALID -> Changed(p, x)
  :: else
  fi;
  CACHE(p, x).asking = NOTHING;
  CACHE(p, x).right = what;
  CACHE(p, x).told = CACHE(p, x).right;
#ifndef SLOW_LOADS
  if
  :: !CACHE(p, x).loaded -> CACHE(p, x).loaded = true; CACHE(p, x).value = ROW(x)
  :: else
  fi;
#endif
  skip
}

inline Handle(p, x) {
  if
  :: message == GRANT_SHARE || message == GRANT_MODIFY ->
#if YIELDS > 0
     if
     :: MAY_YIELD(p) -> CACHE(p, x).installing = message - GRANT_SHARE + SHARE
     :: else -> Granted(p, x, message - GRANT_SHARE + SHARE)
     fi
#else
     Granted(p, x, message - GRANT_SHARE + SHARE)
#endif
  :: message == REFUSAL || message == RELEASED -> CACHE(p, x).asking = NOTHING
  :: else ->
     limit = message - REDUCE_TO_INVALID;
     if
     :: CACHE(p, x).right > limit ->
        CACHE(p, x).right = limit;
        Changed(p, x);
        if
        :: limit == INVALID -> Forget(p, x)
        :: else
        fi
     :: else
     fi;
#ifdef NO_FLUSH_BEFORE_REDUCE
     if
     :: true ->
#else
     if
     :: CACHE(p, x).dirty -> CACHE(p, x).owes = true
     :: else ->
#endif
        CACHE(p, x).told = CACHE(p, x).right;
        TellGlobal(p, x, REDUCED_TO_INVALID + CACHE(p, x).right);
     fi;
  fi;
}

// It names every right, one that is on its way back included (hole 29).
#ifdef NO_ANNOUNCING_OF_UNSAVED
#define ANNOUNCED(p, x) CACHE(p, x).right
#else
#define ANNOUNCED(p, x) CACHE(p, x).told
#endif

#if YIELDS > 0
#ifdef RECONNECT_WHILE_YIELDING
#define MAY_LOG_IN(p) (!INSTALLING(p, 0))
#else
#define MAY_LOG_IN(p) (!INSTALLING(p, 0) && process[p].yielding == 0)
#endif
#else
#define MAY_LOG_IN(p) true
#endif
#ifdef NO_TERM_MEMORY
#define NEWEST_TERM(g, p) true
#else
#define NEWEST_TERM(g, p) (TERM(g) >= process[p].seen_term)
#endif
// It reads the term before it says anything.
#ifdef GREETINGS
#define IS_GREETED(p, g) (NEWEST_TERM(g, p) && HAS_DATABASE(p) && HAS_GLOBAL(p))
#else
#define IS_GREETED(p, g) true
#endif
#if SHARD_RECORDS > 1
#define LAST_NAMED 1
#else
#define LAST_NAMED 0
#endif

inline Login(p, g) {
  d_step {
    process[p].running && process[p].link == DISCONNECTED &&
      (shard[g].phase == RECOVERING || shard[g].phase == SERVING) && MAY_LOG_IN(p) &&
      IS_GREETED(p, g) ->
    process[p].link = LOGGING_IN;
    process[p].peer = g;
    CACHE(p, 0).named = ANNOUNCED(p, 0);
    CACHE(p, LAST_NAMED).named = ANNOUNCED(p, LAST_NAMED);
#ifdef GREETINGS
#ifndef TERM_SEEN_AT_ANSWER
    process[p].seen_term = TERM(g);
#endif
#endif
  }
}

#ifdef LATE_LOGINS
inline GivesUpLogin(p) {
  d_step {
    p == 0 && process[p].running && process[p].link == LOGGING_IN && !late_login_used &&
      MAY_BREAK ->
    COUNT_BREAK;
    late_login_used = true;
    late_login = process[p].peer + 1;
    late_named = CACHE(p, 0).named;
#if YIELDS > 0
    late_says = process[p].number;
#endif
    Disconnect(p);
  }
}
#endif

// The connection breaks, is left for a Global of a later term, or was closed by the other end.
inline ConnectionLost(p) {
  d_step {
    process[p].running && process[p].link != DISCONNECTED && MAY_BREAK -> COUNT_BREAK; Disconnect(p)
  }
}

#ifdef BREAKS
inline NoticesTheClose(p) {
  d_step {
    process[p].running && ((process[p].link == READY && !SESSION(process[p].peer, p).bound) ||
                   (process[p].link == LOGGING_IN && shard[process[p].peer].phase == DEPOSED)) ->
    Disconnect(p)
  }
}
#endif

inline ServerStep(p) {
  if
#ifndef NARROW
  :: Acquire(p, 0, SHARE)
#endif
  :: Acquire(p, 0, MODIFY)
#if SHARD_RECORDS > 1
  :: Acquire(p, 1, SHARE)
  :: Acquire(p, 1, MODIFY)
#endif
#ifdef RELEASES
  :: Release(p, 0)
#if RECORDS > 1
  :: Release(p, 1)
#endif
#endif
#ifdef SLOW_LOADS
  :: Load(p, 0)
#if RECORDS > 1
  :: Load(p, 1)
#endif
  :: LoadArrives(p, 0)
#if RECORDS > 1
  :: LoadArrives(p, 1)
#endif
#endif
#ifndef NARROW
  :: Commit(p, 1, 1)
#if RECORDS > 1
  :: Commit(p, 2, 2)
  :: Commit(p, 3, 1)
  :: Commit(p, 3, 2)
  :: Commit(p, 3, 3)
#endif
#endif
  :: Cut(p, 0, false)
#if RECORDS > 1
  :: Cut(p, 1, false)
#endif
#if LATE_COPIES > 0
#ifndef NEW_CUT_AFTER_UNKNOWN
  :: Cut(p, 0, true)
#if RECORDS > 1
  :: Cut(p, 1, true)
#endif
#else
  :: TakeForFailed(p)
#endif
#endif
  :: Saved(p)
  :: LearnsThatItIsFenced(p)
#ifndef RENEWALS
  :: LeaseEnds(p)
#endif
  :: Receive(p, 0)
#if RECORDS > 1
  :: Receive(p, 1)
#endif
#ifdef NO_CONNECTION_ORDER
  :: ReceiveTheSecondFirst(p, 0)
#if RECORDS > 1
  :: ReceiveTheSecondFirst(p, 1)
#endif
#endif
  :: Login(p, 0)
#if GLOBALS > 1
  :: Login(p, 1)
#endif
#if GLOBALS > 2
  :: Login(p, 2)
#endif
  :: ConnectionLost(p)
#ifdef BREAKS
  :: NoticesTheClose(p)
#endif
#if PROCESSES > 2
  :: ServerStarts(p, false)
#ifdef PROOF
  :: ServerStarts(p, true)
#endif
#endif
#ifdef CRASH
  :: Crash(p)
#endif
#ifdef DATABASE_CUT
  :: LosesTheDatabase(p)
#endif
#ifdef GLOBAL_CUT
  :: LosesTheGlobals(p)
#endif
#ifdef ORDERLY_END
  :: Finish(p)
#endif
#ifdef RENEWALS
  :: SendRenewal(p)
  :: RenewalAnswered(p)
#ifdef RENEWED_FROM_REPEAT
  :: RepeatRenewal(p)
#endif
#endif
#if YIELDS > 0
  :: Install(p, 0)
  :: Yield(p)
  :: SendMark(p)
  :: MarkKnown(p)
#endif
#ifdef LATE_LOGINS
  :: GivesUpLogin(p)
#endif
  fi
}

// --- the database --------------------------------------------------------------------------------

inline Flush(p) {
  d_step {
    process[p].cut != 0 && process[p].sequence == process[p].cut_number - 1 && EPOCH_HOLDS(p) &&
      HAS_DATABASE(p) ->
    for (one : 0 .. RECORDS - 1) {
      if
      :: (process[p].cut >> one) & 1 -> Write(one, CACHE(p, one).cut_value)
      :: else
      fi;
    }
    process[p].sequence = process[p].cut_number;
    CheckRows();
  }
}

inline LateFlush() {
  d_step {
    late_of != 0 ->
    if
    :: EPOCH_HOLDS(late_of - 1) && SEQUENCE_HOLDS(late_of - 1, late_number) ->
       if
       :: late_cut & 1 -> Write(0, late_value0)
       :: else
       fi;
       if
       :: late_cut & 2 -> Write(1, late_value1)
       :: else
       fi;
       process[late_of - 1].sequence = late_number;
       CheckRows();
    :: else
    fi;
    late_of = 0;
    late_cut = 0;
    late_number = 0;
    late_value0 = 0;
    late_value1 = 0;
  }
}

inline DatabaseStep() {
  if
  :: Flush(0)
  :: Flush(1)
#if PROCESSES > 2
  :: Flush(2)
#endif
#if LATE_COPIES > 0
  :: LateFlush()
#endif
#ifdef RENEWALS
  :: RenewalWritten(0)
  :: TimePasses()
#endif
#if YIELDS > 0
  :: MarkWritten(0)
#ifdef BOTH_YIELD
  :: MarkWritten(1)
#endif
#endif
  fi
}

// --- Global --------------------------------------------------------------------------------------

#define MAY_SERVE(g) (shard[g].phase == RECOVERING || shard[g].phase == SERVING)

#define ANY(what, g, x) (ENTRY(g, 0, x).what || ENTRY(g, 1, x).what || ENTRY(g, LAST, x).what)

// Serves the request at hand as far as answers are there (Directory::Advance).
inline Advance(g, x) {
  do
  :: shard[g].phase != SERVING || KEY(g, x).serving == 0 || ANY(asked, g, x) -> break
  :: else ->
     if
     :: KEY(g, x).serving == NOBODY -> KEY(g, x).serving = 0; KEY(g, x).failed = false
     :: else ->
        blocked = false;
        owner = KEY(g, x).serving - 1;
        limit = MODIFY - ENTRY(g, owner, x).wanted;
        holder = 0;
        do
        :: holder == PROCESSES || KEY(g, x).failed -> break
        :: else ->
           if
           :: holder != owner && ENTRY(g, holder, x).book > limit ->
              if
#ifdef NO_KEEPING_OF_UNREACHABLE
              :: !SESSION(g, holder).bound -> ENTRY(g, holder, x).book = limit
#else
#ifdef WAITING
              :: !SESSION(g, holder).bound -> blocked = true
#else
              :: !SESSION(g, holder).bound -> KEY(g, x).failed = true
#endif
#endif
              :: else ->
                 ENTRY(g, holder, x).asked = true;
                 TellServer(g, holder, x, REDUCE_TO_INVALID + limit)
              fi
           :: else
           fi;
           holder++
        od;
        if
        :: ANY(asked, g, x)
        :: !ANY(asked, g, x) && blocked -> break
        :: else ->
           if
           :: KEY(g, x).failed ->
#ifdef NO_REFUSALS
              skip
#else
              TellServer(g, owner, x, REFUSAL)
#endif
           :: else ->
              if
              :: ENTRY(g, owner, x).book < ENTRY(g, owner, x).wanted ->
                 ENTRY(g, owner, x).book = ENTRY(g, owner, x).wanted
              :: else
              fi;
              TellServer(g, owner, x, GRANT_SHARE - SHARE + ENTRY(g, owner, x).book)
           fi;
           ENTRY(g, owner, x).wanted = INVALID;
           KEY(g, x).serving = 0;
           KEY(g, x).failed = false;
        fi
     fi
  od;
  skip
}

// The next request: any of those that wait, not only the first.
inline Serve(g, p, x) {
  d_step {
    shard[g].phase == SERVING && KEY(g, x).serving == 0 && ENTRY(g, p, x).wanted != INVALID ->
    KEY(g, x).serving = p + 1;
    Advance(g, x);
  }
}

// The connection is gone for Global: requests are forgotten, questions fail, rights stay (rule 19).
inline Unbind(g, p) {
  if
  :: SESSION(g, p).bound ->
     SESSION(g, p).bound = false;
     for (each : 0 .. RECORDS - 1) {
#ifndef NO_DROPPING_OF_OLD_MESSAGES
       ENTRY(g, p, each).to_global = 0;
#endif
       ENTRY(g, p, each).wanted = INVALID;
       if
       :: KEY(g, each).serving == p + 1 -> KEY(g, each).serving = NOBODY
       :: else
       fi;
#ifdef WAITING
       ENTRY(g, p, each).asked = false;
#else
       if
       :: ENTRY(g, p, each).asked -> ENTRY(g, p, each).asked = false; KEY(g, each).failed = true
       :: else
       fi;
#endif
       Advance(g, each);
     }
  :: else
  fi;
  skip
}

inline Hear(g, p, x) {
  d_step {
    SESSION(g, p).bound && ENTRY(g, p, x).to_global != 0 ->
    Pop(ENTRY(g, p, x).to_global);
    if
    :: message == RELEASE ->
       ENTRY(g, p, x).book = INVALID;
       TellServer(g, p, x, RELEASED);
    :: else ->
       limit = message - REDUCED_TO_INVALID;
       if
       :: ENTRY(g, p, x).asked ->
          ENTRY(g, p, x).asked = false;
          if
          :: limit < ENTRY(g, p, x).book -> ENTRY(g, p, x).book = limit
          :: else
          fi;
          Advance(g, x);
       :: else
       fi;
    fi;
  }
}

// It closes the connection of one that is silent, or notices that it is closed.
#ifdef NARROW
#define GLOBAL_MAY_CLOSE false
#else
#define GLOBAL_MAY_CLOSE true
#endif

inline Close(g, p) {
  d_step {
    GLOBAL_MAY_CLOSE && MAY_SERVE(g) && SESSION(g, p).bound && MAY_BREAK ->
    COUNT_BREAK;
    Unbind(g, p)
  }
}

#ifdef WAITING
// The server has closed it, or is no more.
inline NoticesTheEnd(g, p) {
  d_step {
    MAY_SERVE(g) && SESSION(g, p).bound &&
      !(process[p].running && process[p].link == READY && process[p].peer == g) ->
    Unbind(g, p)
  }
}
#endif

#ifdef NO_WAIT_FOR_ANNOUNCEMENTS
#define UNSETTLED(g, p) false
#else
#define UNSETTLED(g, p)                                                                            \
  (SESSION(g, p).state == LISTED || SESSION(g, p).state == FENCED_LISTED ||                        \
   SESSION(g, p).state == EVICTING_LISTED)
#endif

inline FinishRecovery(g) {
  if
  :: shard[g].phase == RECOVERING && !UNSETTLED(g, 0) && !UNSETTLED(g, 1) && !UNSETTLED(g, LAST) ->
     shard[g].phase = SERVING;
     Advance(g, 0);
     Advance(g, 1)
  :: else
  fi;
  skip
}

inline Depose(g) {
  for (one : 0 .. PROCESSES - 1) {
    SESSION(g, one).state = UNKNOWN;
    SESSION(g, one).bound = false;
#if YIELDS > 0
    SESSION(g, one).says = 0;
    SESSION(g, one).read_number = 0;
    SESSION(g, one).read_term = 0;
    SESSION(g, one).wants = false;
#endif
    for (each : 0 .. RECORDS - 1) {
      ENTRY(g, one, each).book = INVALID;
      ENTRY(g, one, each).wanted = INVALID;
      ENTRY(g, one, each).asked = false;
      ENTRY(g, one, each).to_global = 0;
      KEY(g, each).serving = 0;
      KEY(g, each).failed = false;
    };
    skip
  }
#ifdef RENEWALS
  shard[g].seen_last = false;
  shard[g].seen_lately = false;
#endif
  shard[g].phase = DEPOSED;
}

// Rules 59 and 60. The row, or what is kept of it, is read in the transaction that fenced it, or in
// the one that shows that somebody else did.
inline ReadRenewals(g, p) {
#ifdef RENEWALS
  if
  :: p == 0 && !shard[g].seen_last -> shard[g].seen_last = true; shard[g].seen_lately = true
  :: else
  fi;
#endif
  skip
}

#ifdef RENEWALS
#ifdef SEEN_FROM_QUESTION
inline AskForRenewals(g) {
  d_step {
    MAY_SERVE(g) && !shard[g].asked_now -> shard[g].asked_now = true; shard[g].asked_lately = true
  }
}
inline SeeRenewal(g, p) {
  d_step {
    p == 0 && MAY_SERVE(g) && process[p].current && !shard[g].seen_last && shard[g].asked_now ->
    ReadRenewals(g, p);
    shard[g].seen_lately = shard[g].asked_lately;
    shard[g].asked_now = false;
    shard[g].asked_lately = false;
  }
}
#else
inline SeeRenewal(g, p) {
  d_step {
    p == 0 && MAY_SERVE(g) && process[p].current && !shard[g].seen_last -> ReadRenewals(g, p)
  }
}
#endif
#endif

inline Fence(g, p) {
  if
  :: SESSION(g, p).state == LISTED || SESSION(g, p).state == EVICTING_LISTED ->
     SESSION(g, p).state = FENCED_LISTED
  :: SESSION(g, p).state == LIVE || SESSION(g, p).state == EVICTING ->
     SESSION(g, p).state = FENCED
  :: else
  fi;
#ifndef FREE_FROM_OLD_OBSERVATION
  ReadRenewals(g, p);
#endif
#if YIELDS > 0
  SESSION(g, p).says = 0;
  SESSION(g, p).read_number = 0;
  SESSION(g, p).read_term = 0;
  SESSION(g, p).wants = false;
#endif
  Unbind(g, p);
}

// Rule 39: under a lock on the term.
inline EvictNow(g, p) {
  if
  :: term == TERM(g) ->
     if
     :: process[p].current -> process[p].current = false; process[p].listed = true
     :: else
     fi;
     Fence(g, p);
  :: else -> Depose(g)
  fi;
  skip
}

#ifdef EVICT_ONLY_UNBOUND
#define MAY_BE_EVICTED(g, p) (p == 0 && !SESSION(g, p).bound)
#else
#ifdef RENEWALS
#define MAY_BE_EVICTED(g, p) (p == 0)
#else
#define MAY_BE_EVICTED(g, p) true
#endif
#endif

inline Evict(g, p) {
  d_step {
    MAY_SERVE(g) && (SESSION(g, p).state == LISTED || SESSION(g, p).state == LIVE) &&
      evictions < EVICTIONS && MAY_BE_EVICTED(g, p) ->
    evictions++;
#ifdef SLOW_EVICTIONS
    SESSION(g, p).state = (SESSION(g, p).state == LISTED -> EVICTING_LISTED : EVICTING);
#else
    EvictNow(g, p);
#endif
  }
}

#if YIELDS > 0
// Rule 66.
#ifdef NO_YIELD_NUMBER
#define NUMBER_COUNTS(g, p, number) true
#else
#define NUMBER_COUNTS(g, p, number) (number > SESSION(g, p).says)
#endif
#ifdef NO_YIELD_TERM
#define TERM_COUNTS(g, marked) true
#else
#define TERM_COUNTS(g, marked) (marked >= TERM(g))
#endif
#define MARK_COUNTS(g, p, number, marked)                                                          \
  (((SESSION(g, p).state == LIVE || SESSION(g, p).state == EVICTING) &&                            \
    NUMBER_COUNTS(g, p, number)) ||                                                                \
   ((SESSION(g, p).state == LISTED || SESSION(g, p).state == EVICTING_LISTED) &&                   \
    TERM_COUNTS(g, marked)))
#endif

#ifdef SLOW_EVICTIONS
// Logins of a session that is being evicted are not accepted, but its connection goes on. One that
// has marked is not evicted; its mark is read as any other.
inline EvictionRuns(g, p) {
  d_step {
    MAY_SERVE(g) && (SESSION(g, p).state == EVICTING || SESSION(g, p).state == EVICTING_LISTED) ->
    if
#if YIELDS > 0
    :: term == TERM(g) && process[p].current && process[p].mark_number > 0 &&
       MARK_COUNTS(g, p, process[p].mark_number, process[p].mark_term) ->
       evictions--;
       SESSION(g, p).state = (SESSION(g, p).state == EVICTING -> LIVE : LISTED)
#endif
    :: else -> EvictNow(g, p)
    fi;
  }
}
#endif

#if YIELDS > 0
// Where yields are needed and bounded, none is wasted.
#ifdef GLOBAL_CUT
#define HAS_MARKED(g, p)                                                                           \
  (process[p].mark_number > 0 && MARK_COUNTS(g, p, process[p].mark_number, process[p].mark_term))
#else
#define HAS_MARKED(g, p) false
#endif

// Rule 64. The row is written later: it may have logged in by then.
inline Want(g, p) {
  d_step {
    MAY_SERVE(g) && !SESSION(g, p).bound && !SESSION(g, p).wants &&
      (SESSION(g, p).state == LISTED ||
       (SESSION(g, p).state == LIVE && ENTRY(g, p, 0).book != INVALID)) &&
      process[p].current && process[p].running && process[p].wanted_term != TERM(g) &&
      !HAS_MARKED(g, p) ->
    SESSION(g, p).wants = true
  }
}

inline WriteWanted(g, p) {
  d_step {
    MAY_SERVE(g) && SESSION(g, p).wants ->
    SESSION(g, p).wants = false;
    if
    :: term == TERM(g) && process[p].running && process[p].current ->
       process[p].wanted_term = TERM(g)
    :: else
    fi;
  }
}

inline RemoveWanted(g, p) {
  d_step {
    MAY_SERVE(g) && SESSION(g, p).bound && !SESSION(g, p).wants &&
      process[p].wanted_term == TERM(g) ->
    process[p].wanted_term = 0
  }
}

inline CountMark(g, p, marked) {
  Unbind(g, p);
  for (each : 0 .. RECORDS - 1) { ENTRY(g, p, each).book = INVALID };
  SESSION(g, p).state = LIVE;
  SESSION(g, p).says = marked;
  for (each : 0 .. RECORDS - 1) { Advance(g, each) };
  FinishRecovery(g);
}

inline ReadMark(g, p) {
  d_step {
    MAY_SERVE(g) && process[p].mark_number > 0 && SESSION(g, p).read_number == 0 &&
      (SESSION(g, p).state == LISTED || SESSION(g, p).state == LIVE) &&
      MARK_COUNTS(g, p, process[p].mark_number, process[p].mark_term) ->
    SESSION(g, p).read_number = process[p].mark_number;
    SESSION(g, p).read_term = process[p].mark_term;
  }
}

#ifdef MARK_JUDGED_WHEN_READ
#define STILL_COUNTS(g, p) true
#else
#define STILL_COUNTS(g, p) MARK_COUNTS(g, p, SESSION(g, p).read_number, SESSION(g, p).read_term)
#endif

inline BelieveMark(g, p) {
  d_step {
    MAY_SERVE(g) && SESSION(g, p).read_number != 0 ->
    if
    :: (SESSION(g, p).state == LISTED || SESSION(g, p).state == LIVE) && STILL_COUNTS(g, p) ->
       CountMark(g, p, SESSION(g, p).read_number)
    :: else
    fi;
    SESSION(g, p).read_number = 0;
    SESSION(g, p).read_term = 0;
  }
}
#endif

// Rule 40: the lease is over for the server by then.
#ifdef NO_WAIT_BEFORE_FREEING
#define LEASE_IS_OVER(g, p) true
#else
#ifdef RENEWALS
#define LEASE_IS_OVER(g, p) (!shard[g].seen_lately)
#else
#define LEASE_IS_OVER(g, p) (!process[p].lease)
#endif
#endif
// Rule 62: neither current nor fenced, in one statement.
#if defined(PROOF) || defined(ORDERLY_END)
#define OVER
#endif
#ifdef TWO_STATEMENTS
#define NOT_LISTED(g, p) shard[g].not_listed
#else
#define NOT_LISTED(g, p) (!process[p].listed)
#endif
#ifdef OVER
#define IS_OVER(g, p) (LEASE_IS_OVER(g, p) || (!process[p].current && NOT_LISTED(g, p)))
#else
#define IS_OVER(g, p) LEASE_IS_OVER(g, p)
#endif

// Requests that have waited for what has changed.
inline AdvanceAll(g) {
#ifdef WAITING
  for (each : 0 .. RECORDS - 1) { Advance(g, each) };
#endif
  skip
}

inline Free(g, p) {
  d_step {
    MAY_SERVE(g) && (SESSION(g, p).state == FENCED || SESSION(g, p).state == FENCED_LISTED) &&
      IS_OVER(g, p) ->
    assert(!process[p].current);
    SESSION(g, p).state = GONE;
    process[p].listed = false;
    for (each : 0 .. RECORDS - 1) { ENTRY(g, p, each).book = INVALID }
    FinishRecovery(g);
    AdvanceAll(g);
  }
}

#ifdef OVER
#ifdef TWO_STATEMENTS
inline FirstStatement(g, p) {
  d_step {
    MAY_SERVE(g) && !process[p].listed && !shard[g].not_listed -> shard[g].not_listed = true
  }
}
#endif

inline SeesThatItIsOver(g, p) {
  d_step {
    MAY_SERVE(g) && (SESSION(g, p).state == LISTED || SESSION(g, p).state == LIVE) &&
      !process[p].current && NOT_LISTED(g, p) ->
    Fence(g, p)
  }
}
#endif

// Rules 40 to 45 (GlobalServer::Judge and OnLogin).
#ifdef NO_START_TERM
#define STARTED_UNDER(g, p) true
#else
#define STARTED_UNDER(g, p) (process[p].start_term == TERM(g))
#endif

#define CONTRADICTS(g, p, x)                                                                       \
  ((p != 0 && CACHE(p, x).named + ENTRY(g, 0, x).book > MODIFY) ||                                 \
   (p != 1 && CACHE(p, x).named + ENTRY(g, 1, x).book > MODIFY) ||                                 \
   (p != LAST && CACHE(p, x).named + ENTRY(g, LAST, x).book > MODIFY))

// Takes what a login names into the book, and whatever contradicts the book out of the cluster.
inline Accept(g, p) {
  Unbind(g, p);
  SESSION(g, p).bound = true;
  contradiction = 0;
  for (each : 0 .. RECORDS - 1) {
    if
    :: SESSION(g, p).state == LISTED ->
       for (one : 0 .. PROCESSES - 1) {
         if
         :: one != p && CACHE(p, each).named + ENTRY(g, one, each).book > MODIFY ->
            contradiction = contradiction | (1 << one) | (1 << p);
         :: else
         fi;
       }
    :: else ->
       if
       :: CACHE(p, each).named > ENTRY(g, p, each).book ->
          contradiction = contradiction | (1 << p)
       :: else
       fi
    fi;
  }
  // Nothing of a contradiction is taken into the book.
  for (each : 0 .. RECORDS - 1) {
    if
    :: contradiction == 0 || (SESSION(g, p).state == LISTED && !CONTRADICTS(g, p, each)) ->
       ENTRY(g, p, each).book = CACHE(p, each).named
    :: else
    fi;
    CACHE(p, each).named = INVALID;
  }
  SESSION(g, p).state = LIVE;
  if
  :: contradiction != 0 ->
     evicted = 0;
     do
     :: evicted == PROCESSES -> break
     :: else ->
        if
        :: ((contradiction >> evicted) & 1) && MAY_SERVE(g) ->
#ifndef NO_PAUSE_AFTER_CONTRADICTION
           // What it has is not in the book: nothing is granted until it is gone (hole 30).
           SESSION(g, evicted).state = LISTED;
           shard[g].phase = RECOVERING;
#endif
           EvictNow(g, evicted)
        :: else
        fi;
        evicted++
     od
  :: else
  fi;
  skip
}


inline OnLogin(g, p) {
  d_step {
    process[p].running && process[p].link == LOGGING_IN && process[p].peer == g && MAY_SERVE(g) ->
    accepted = SESSION(g, p).state == LISTED || SESSION(g, p).state == LIVE ||
               (SESSION(g, p).state == UNKNOWN && STARTED_UNDER(g, p));
#if PROCESSES > 2
    if
    :: p == 0 && SESSION(g, 2).state != UNKNOWN -> accepted = false
    :: p == 2 && accepted && (SESSION(g, 0).state == LISTED || SESSION(g, 0).state == LIVE) ->
       assert(!process[0].current);
       Fence(g, 0)
    :: else
    fi;
#endif
    if
    :: accepted ->
       Accept(g, p);
       if
       :: contradiction != 0 -> Disconnect(p)
       :: contradiction == 0 && NEWEST_TERM(g, p) ->
          FinishRecovery(g);
          process[p].link = READY;
          process[p].seen_term = TERM(g);
#if YIELDS > 0
          SESSION(g, p).says = process[p].number;
#endif
#ifdef LATE_LOGINS
#ifndef NO_LOGIN_SERIAL
          if
          :: p == 0 && late_login == g + 1 -> ForgetLateLogin()
          :: else
          fi;
#endif
#endif
          AdvanceAll(g);
       :: else -> FinishRecovery(g); Disconnect(p)
       fi
    :: else -> Disconnect(p)
    fi;
  }
}

#ifdef LATE_LOGINS
inline ForgetLateLogin() {
  late_login = 0;
  late_named = INVALID;
  late_says = 0;
}

#if YIELDS > 0 && !defined(NO_LOGIN_SERIAL)
#define LATE_NUMBER_COUNTS(g) (late_says >= SESSION(g, 0).says)
#else
#define LATE_NUMBER_COUNTS(g) true
#endif

// Whoever sent it has closed that connection.
inline OnLateLogin(g) {
  d_step {
    late_login == g + 1 && MAY_SERVE(g) ->
    if
    :: (SESSION(g, 0).state == LISTED || SESSION(g, 0).state == LIVE) && LATE_NUMBER_COUNTS(g) ->
       kept = CACHE(0, 0).named;
       CACHE(0, 0).named = late_named;
       Accept(g, 0);
       CACHE(0, 0).named = kept;
#if YIELDS > 0
       SESSION(g, 0).says = late_says;
#endif
       FinishRecovery(g);
       Unbind(g, 0);
       AdvanceAll(g)
    :: else
    fi;
    ForgetLateLogin();
  }
}
#endif

// Rule 43. Who raised the term is the shard's Global, by compare-and-swap.
inline RaiseTerm(g) {
  d_step {
    shard[g].phase == OFF && term == TERM(g) - 1 ->
    term = TERM(g);
    shard[g].phase = STARTING;
  }
}

#ifdef NO_FENCED_LEASES
#define LIST_FENCED(p) false
#else
#define LIST_FENCED(p) process[p].listed
#endif

inline ListServers(g) {
  for (each : 0 .. PROCESSES - 1) {
    if
    :: process[each].current -> SESSION(g, each).state = LISTED; ReadRenewals(g, each)
    :: !process[each].current && LIST_FENCED(each) ->
       SESSION(g, each).state = FENCED_LISTED;
       ReadRenewals(g, each)
    :: else
    fi;
  };
  skip
}

inline ListLive(g) {
  d_step {
    shard[g].phase == STARTING ->
    ListServers(g);
    shard[g].phase = RECOVERING;
    FinishRecovery(g);
  }
}

#ifdef LIST_BEFORE_TERM
inline ListTooEarly(g) {
  d_step {
    shard[g].phase == OFF && term == TERM(g) - 1 -> ListServers(g); shard[g].phase = STARTING
  }
}
inline RaiseTooLate(g) {
  d_step {
    shard[g].phase == STARTING -> term = TERM(g); shard[g].phase = RECOVERING; FinishRecovery(g)
  }
}
#endif

// It looks whether its term has passed.
inline NoticesItsSuccessor(g) {
  d_step { MAY_SERVE(g) && term > TERM(g) -> Depose(g) }
}

#if RECORDS > 1
#define BOTH(Step, g, p) Step(g, p, 0) :: Step(g, p, 1)
#else
#define BOTH(Step, g, p) Step(g, p, 0)
#endif

inline GlobalStep(g) {
  if
  :: BOTH(Serve, g, 0) :: BOTH(Hear, g, 0)
  :: Close(g, 0) :: Evict(g, 0) :: Free(g, 0) :: OnLogin(g, 0)
  :: BOTH(Serve, g, 1) :: BOTH(Hear, g, 1)
  :: Close(g, 1) :: Evict(g, 1) :: Free(g, 1) :: OnLogin(g, 1)
#if PROCESSES > 2
  :: BOTH(Serve, g, 2) :: BOTH(Hear, g, 2)
  :: Close(g, 2) :: Evict(g, 2) :: Free(g, 2) :: OnLogin(g, 2)
#endif
#ifdef WAITING
  :: NoticesTheEnd(g, 0) :: NoticesTheEnd(g, 1) :: NoticesTheEnd(g, LAST)
#endif
#ifdef SLOW_EVICTIONS
  :: EvictionRuns(g, 0) :: EvictionRuns(g, 1)
#endif
#ifdef RENEWALS
  :: SeeRenewal(g, 0)
#ifdef SEEN_FROM_QUESTION
  :: AskForRenewals(g)
#endif
#endif
#ifdef OVER
  :: SeesThatItIsOver(g, 0)
#ifdef TWO_STATEMENTS
  :: FirstStatement(g, 0)
#endif
#endif
#if YIELDS > 0
  :: Want(g, 0) :: WriteWanted(g, 0) :: RemoveWanted(g, 0) :: ReadMark(g, 0) :: BelieveMark(g, 0)
#ifdef BOTH_YIELD
  :: Want(g, 1) :: WriteWanted(g, 1) :: RemoveWanted(g, 1) :: ReadMark(g, 1) :: BelieveMark(g, 1)
#endif
#endif
#ifdef LATE_LOGINS
  :: OnLateLogin(g)
#endif
#if GLOBALS > 1
#ifdef LIST_BEFORE_TERM
  :: ListTooEarly(g) :: RaiseTooLate(g)
#else
  :: RaiseTerm(g) :: ListLive(g)
#endif
  :: NoticesItsSuccessor(g)
#endif
  fi
}

// --- properties ----------------------------------------------------------------------------------

// Who can change the database or answer a client.
#define CAN_USE(p) (process[p].running && (process[p].current || MAY_ANSWER(p)))
#define BESIDE(p, s, x) (CACHE(p, x).right + CACHE(s, x).right > MODIFY && CAN_USE(p) && CAN_USE(s))
#define STALE(p, x)                                                                                \
  (CACHE(p, x).right != INVALID && CACHE(p, x).loaded && !CACHE(p, x).dirty &&                     \
   CACHE(p, x).value != ROW(x) && CAN_USE(p))

#if PROCESSES > 2
#define A_RIGHT_BESIDE_MODIFY                                                                      \
  (BESIDE(0, 1, 0) || BESIDE(0, 1, 1) || BESIDE(0, 2, 0) || BESIDE(0, 2, 1) ||                     \
   BESIDE(1, 2, 0) || BESIDE(1, 2, 1))
#define A_STALE_READ                                                                               \
  (STALE(0, 0) || STALE(0, 1) || STALE(1, 0) || STALE(1, 1) || STALE(2, 0) || STALE(2, 1))
#else
#define A_RIGHT_BESIDE_MODIFY (BESIDE(0, 1, 0) || BESIDE(0, 1, 1))
#define A_STALE_READ (STALE(0, 0) || STALE(0, 1) || STALE(1, 0) || STALE(1, 1))
#endif

// When nothing can happen any more, nobody waits for anything.
#define QUIET_RECORD(p, x)                                                                         \
  (CACHE(p, x).asking == NOTHING && !CACHE(p, x).owes && !CACHE(p, x).dirty)
// (What is blocked by one that has lost the database for ever is for its Global to see.)
#define QUIET(p)                                                                                   \
  (!process[p].running || !HAS_DATABASE(p) ||                                                      \
   (process[p].current && (process[p].link == READY || !HAS_GLOBAL(p)) && process[p].cut == 0 &&   \
    QUIET_RECORD(p, 0) && QUIET_RECORD(p, 1)))
#define SETTLED(g, p)                                                                              \
  (SESSION(g, p).state == UNKNOWN || SESSION(g, p).state == LIVE ||                                \
   SESSION(g, p).state == GONE)
#define AT_REST(g)                                                                                 \
  (shard[g].phase == DEPOSED || (shard[g].phase == SERVING && SETTLED(g, 0) && SETTLED(g, 1) &&    \
                                 SETTLED(g, LAST) && KEY(g, 0).serving == 0 &&                     \
                                 KEY(g, 1).serving == 0))

active proctype Cluster() {
  d_step {
    for (each : 0 .. 1) {
      process[each].current = true;
      process[each].running = true;
      process[each].lease = true;
      process[each].start_term = 1;
      process[each].seen_term = 1;
      process[each].link = READY;
      SESSION(0, each).state = LIVE;
      SESSION(0, each).bound = true;
    }
    shard[0].phase = SERVING;
#ifdef RENEWALS
    shard[0].seen_last = true;
    shard[0].seen_lately = true;
#endif
#ifdef SECOND_SHARD
    CACHE(0, 1).right = MODIFY;
    CACHE(0, 1).told = MODIFY;
    CACHE(0, 1).loaded = true;
#endif
  }
end:
  do
  :: d_step {
       A_RIGHT_BESIDE_MODIFY -> no_right_beside_modify = false; assert(no_right_beside_modify)
     }
  :: d_step { A_STALE_READ -> no_stale_read = false; assert(no_stale_read) }
  :: d_step {
       timeout -> all_is_served = QUIET(0) && QUIET(1) && QUIET(LAST) && AT_REST(0) &&
                                  AT_REST(GLOBALS / 2) && AT_REST(GLOBALS - 1);
       assert(all_is_served)
     }
  :: ServerStep(0)
  :: ServerStep(1)
#if PROCESSES > 2
  :: ServerStep(2)
#endif
  :: DatabaseStep()
  :: GlobalStep(0)
#if GLOBALS > 1
  :: GlobalStep(1)
#endif
#if GLOBALS > 2
  :: GlobalStep(2)
#endif
  od
}
