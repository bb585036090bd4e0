//! Threads that belong to one batch.

use std::hint;
use std::process;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rayon_core::{ThreadPool, ThreadPoolBuilder};

/// The games that a thread must have to be worth waking.
const GAMES: usize = 4_096;

/// How long a thread stays awake after a step for the next one. To wake it takes as long
/// as it takes to step thousands of games.
const AWAKE: Duration = Duration::from_millis(1);

/// The tasks of some threads. Each begins with a share of its own, the same one every
/// time, so that what it works on stays in its cache; then it helps the others, of
/// which one may have been slow to wake.
struct Shares<T>(Vec<Mutex<Vec<T>>>);

impl<T> Shares<T> {
    /// Shares of the tasks for `count` threads, or as many as there are tasks.
    fn of(mut tasks: Vec<T>, count: usize) -> Shares<T> {
        let count = count.min(tasks.len());
        let share = tasks.len().div_ceil(count);
        let share_of = |i| tasks.split_off(tasks.len().min((count - 1 - i) * share)).into();
        Shares((0..count).map(share_of).collect())
    }

    fn empty(count: usize) -> Shares<T> {
        Shares((0..count).map(|_| Mutex::default()).collect())
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn len(&self) -> usize {
        self.0.iter().map(|share| lock(share).len()).sum()
    }

    fn put(&self, share: usize, task: T) {
        lock(&self.0[share]).push(task);
    }

    /// Takes tasks, each with the number of its share, until there are no more.
    fn take(&self, own: usize, mut work: impl FnMut(usize, T)) {
        for i in 0..self.count() {
            let share = (own + i) % self.count();
            let next = || lock(&self.0[share]).pop();
            while let Some(task) = next() {
                work(share, task);
            }
        }
    }
}

/// Locks what stays whole when a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts one down when it is dropped, even by a panic, lest others wait for ever.
struct CountDown<'a>(&'a AtomicUsize);

impl Drop for CountDown<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

/// Waits for other threads without going to sleep; leaves the core to them if it takes long.
fn spin_while(waits: impl Fn() -> bool) {
    let mut turns = 0_u32;
    while waits() {
        turns += 1;
        if turns.is_multiple_of(1024) {
            thread::yield_now();
        }
        hint::spin_loop();
    }
}

/// A number of threads, of which all but the calling one are started when they
/// are first used.
pub(crate) struct Threads {
    count: usize,
    /// With the process it was started in: a fork does not take threads along.
    pool: Option<(u32, ThreadPool)>,
    /// Rises with every piece of work.
    works: Arc<AtomicU64>,
}

impl Threads {
    /// `count` threads.
    pub(crate) fn new(count: usize) -> Threads {
        Threads { count: count.max(1), pool: None, works: Arc::default() }
    }

    /// As many threads as pay off for `n` games on this machine.
    pub(crate) fn for_games(n: usize) -> Threads {
        let available = thread::available_parallelism().map_or(1, usize::from);
        Threads::new(available.min(n / GAMES))
    }

    /// How many threads there are, with the calling one.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Keeps the other threads awake for a moment, in case more work is to come.
    pub(crate) fn stay_awake(&mut self) {
        let works = Arc::clone(&self.works);
        let so_far = works.load(Ordering::Relaxed);
        if self.count > 1
            && let Some(pool) = self.pool()
        {
            pool.spawn_broadcast(move |_| {
                let start = Instant::now();
                while works.load(Ordering::Relaxed) == so_far && start.elapsed() < AWAKE {
                    hint::spin_loop();
                }
            });
        }
    }

    /// What `work` makes of every task, in no certain order.
    pub(crate) fn map<T: Send, R: Send>(
        &mut self,
        tasks: impl Iterator<Item = T>,
        work: impl Fn(T) -> R + Sync,
    ) -> Vec<R> {
        let tasks: Vec<T> = tasks.collect();
        if self.count.min(tasks.len()) < 2 {
            return tasks.into_iter().map(work).collect();
        }
        let shares = Shares::of(tasks, self.count);
        let results = Mutex::new(Vec::new());
        self.everywhere(shares.count(), |own| {
            let mut mine = Vec::new();
            shares.take(own, |_, task| mine.push(work(task)));
            lock(&results).append(&mut mine);
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Threads::map`], once `check` has found nothing in any task; else the least
    /// that it has found, and no task is worked on.
    pub(crate) fn check_and_map<T: Send, R: Send, E: Copy + Ord + Send>(
        &mut self,
        tasks: impl Iterator<Item = T>,
        check: impl Fn(&mut T) -> Option<E> + Sync,
        work: impl Fn(T) -> R + Sync,
    ) -> Result<Vec<R>, E> {
        let mut tasks: Vec<T> = tasks.collect();
        if self.count.min(tasks.len()) < 2 {
            return match tasks.iter_mut().filter_map(check).min() {
                Some(found) => Err(found),
                None => Ok(tasks.into_iter().map(work).collect()),
            };
        }
        let shares = Shares::of(tasks, self.count);
        let checked = Shares::empty(shares.count());
        let left = AtomicUsize::new(shares.len());
        let (found, results) = (Mutex::new(None), Mutex::new(Vec::new()));
        self.everywhere(shares.count(), |own| {
            shares.take(own, |share, mut task| {
                let _done = CountDown(&left);
                if let Some(new) = check(&mut task) {
                    let mut found = lock(&found);
                    *found = Some(found.map_or(new, |old: E| old.min(new)));
                }
                checked.put(share, task);
            });
            spin_while(|| left.load(Ordering::Acquire) > 0);
            if lock(&found).is_none() {
                let mut mine = Vec::new();
                checked.take(own, |_, task| mine.push(work(task)));
                lock(&results).append(&mut mine);
            }
        });
        match found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(found) => Err(found),
            None => Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Lets `count` threads do `work`, each with its own number.
    fn everywhere(&mut self, count: usize, work: impl Fn(usize) + Sync) {
        let works = Arc::clone(&self.works);
        let Some(pool) = self.pool() else {
            return work(0);
        };
        let left = AtomicUsize::new(pool.current_num_threads());
        pool.in_place_scope(|scope| {
            scope.spawn_broadcast(|_, thread| {
                let _done = CountDown(&left);
                if thread.index() + 1 < count {
                    work(thread.index() + 1);
                }
            });
            // Now those that stay awake find it.
            works.fetch_add(1, Ordering::Release);
            work(0);
            // The scope would put this thread to sleep, which takes longer than the rest
            // of the others' work as a rule.
            let start = Instant::now();
            spin_while(|| left.load(Ordering::Acquire) > 0 && start.elapsed() < AWAKE);
            for _ in 0..20 {
                hint::spin_loop(); // as long as they take to leave the scope
            }
        });
    }

    /// The threads beside the calling one; `None` if the system gives us none,
    /// in which case the calling one does the work.
    fn pool(&mut self) -> Option<&ThreadPool> {
        let here = process::id();
        if self.pool.as_ref().is_some_and(|(process, _)| *process != here) {
            // Its threads did not live through the fork: nothing may wait for them.
            std::mem::forget(self.pool.take());
        }
        if self.pool.is_none() {
            let pool = ThreadPoolBuilder::new()
                .num_threads(self.count - 1)
                .thread_name(|i| format!("katro-{i}"))
                .build();
            self.pool = pool.ok().map(|pool| (here, pool));
        }
        self.pool.as_ref().map(|(_, pool)| pool)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.pool.as_ref().is_some_and(|(process, _)| *process != process::id()) {
            std::mem::forget(self.pool.take());
        }
    }
}

impl Clone for Threads {
    /// The same number of threads, not the same threads.
    fn clone(&self) -> Threads {
        Threads::new(self.count)
    }
}
